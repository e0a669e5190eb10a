"""What `import hocal` offers and what it costs."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import hocal


def test_public_names_are_sorted() -> None:
    assert hocal.__all__ == sorted(hocal.__all__)


def test_public_names_are_few() -> None:
    assert len(hocal.__all__) <= 40


def test_every_public_object_is_listed() -> None:
    """Whatever the package shows without an underscore, modules apart, is in `__all__`."""
    ours = {
        name for name in dir(hocal) if name[0] != "_" and not inspect.ismodule(getattr(hocal, name))
    }

    assert ours - {"Any", "TYPE_CHECKING", "import_module"} == set(hocal.__all__)


def test_every_public_name_is_imported_for_type_checkers() -> None:
    """The lazy table, the imports that type checkers see, and `__all__` agree."""
    tree = ast.parse(Path(str(hocal.__file__)).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: str(node.module)
        for node in ast.walk(guarded)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert imported == {name: f"hocal.{module}" for name, module in hocal._HOME_OF.items()}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'hocal' has no attribute 'nothing'"):
        hocal.nothing  # noqa: B018


def test_a_module_that_was_not_imported_says_so() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", "import hocal; hocal.plot"], capture_output=True, text=True
    )

    assert "module 'hocal' has no attribute 'plot' before `import hocal.plot`" in finished.stderr


@pytest.mark.parametrize("name", hocal.__all__)
def test_public_name_has_a_docstring_with_a_running_example(name: str) -> None:
    """Doctests run the example; here it must exist and use the package the way users import it."""
    documentation = inspect.getdoc(getattr(hocal, name)) or ""

    assert ">>> import hocal" in documentation or ">>> from hocal" in documentation


def test_import_leaves_heavy_packages_alone() -> None:
    heavy = {"torch", "matplotlib", "ot", "duckdb", "pandas"}
    code = f"import sys, hocal; print(*({heavy} & sys.modules.keys()))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_package_is_typed() -> None:
    from importlib.resources import files

    assert files("hocal").joinpath("py.typed").is_file()
