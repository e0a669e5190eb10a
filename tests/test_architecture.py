"""The house has one direction of flow: a module imports only modules above it in this list."""

import ast
from pathlib import Path

import pytest

FLOW = [
    "_files",
    "_flows",
    "_frames",
    "_html",
    "_tables",
    "_validation",
    "entropy",
    "snapshots",
    "mixtures",
    "representations",
    "transport",
    "decomposition",
    "moments",
    "estimators",
    "polynomials",
    "limits",
    "intervals",
    "bounds",
    "moment_intervals",
    "prediction_sets",
    "evaluation",
    "partition",
    "statistics",
    "_judgements",
    "annotations",
    "_predictions",
    "cell_tables",
    "npmle",
    "empirical",
    "cell_tilts",
    "deconvolution",
    "cell_intervals",
    "cell_epsilon",
    "certificates",
    "calibration",
    "cross_fitting",
    "classifier",
    "planning",
    "budget",
    "persistence",
    "independence",
    "datasets",
    "torch",
    "plot",
    "report",
    "demo",
    "cli",
    "__init__",
]
LATE = {"decomposition": {"torch"}}  # `decompose` hands tensors to the extra, once somebody has made one
SOURCE = Path(__file__).parents[1] / "src" / "hocal"


def files(module: str) -> list[Path]:
    """Return the files of a module, or of all modules of a package."""
    return sorted((SOURCE / module).glob("**/*.py")) or [SOURCE / f"{module}.py"]


def imported_modules(path: Path) -> set[str]:
    """Return the hocal modules a file imports, at any depth; the package itself stands for its public names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    inside = {name.removeprefix("hocal.").split(".")[0] for name in names if name.startswith("hocal.")}
    return inside & set(FLOW)


def test_every_module_has_a_place_in_the_flow() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}

    assert {path.stem for path in SOURCE.glob("*.py")} | packages == set(FLOW)


@pytest.mark.parametrize("module", FLOW)
def test_a_module_imports_only_modules_above_it(module: str) -> None:
    allowed = set(FLOW[: FLOW.index(module) + 1]) | LATE.get(module, set())

    for path in files(module):
        assert imported_modules(path) <= allowed, path.name
