"""PyTorch is optional: hocal does without it, hocal.torch says how to get it."""

import subprocess
import sys
from types import ModuleType

import hocal.torch

BLOCKED = "import sys; sys.modules['torch'] = None; import hocal; hocal.decompose; "


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_hocal_works_without_torch() -> None:
    finished = run(
        BLOCKED + "print(hocal.decompose(hocal.Mixtures.from_points([[.5, .5]])).aleatoric.shape)"
    )

    assert finished.stdout.strip() == "(1,)", finished.stderr


def test_hocal_torch_without_torch_names_the_pip_command() -> None:
    finished = run(BLOCKED + "import hocal.torch")

    assert (
        'ImportError: `hocal.torch` needs PyTorch. Install it with: pip install "hocal[torch]"'
        in finished.stderr
    )


def test_importing_hocal_does_not_import_torch() -> None:
    assert (
        run("import sys, hocal; hocal.decompose; print('torch' in sys.modules)").stdout.strip()
        == "False"
    )


def test_public_names_are_sorted() -> None:
    assert hocal.torch.__all__ == sorted(hocal.torch.__all__)


def test_every_public_object_is_listed() -> None:
    """Modules of the room apart."""
    ours = {
        name
        for name, value in vars(hocal.torch).items()
        if name[0] != "_" and not isinstance(value, ModuleType)
    }

    assert ours - {"annotations", "find_spec"} == set(hocal.torch.__all__)
