"""The house has one direction of flow: a module imports only modules above it in this list."""

import ast
from pathlib import Path

import pytest

FLOW = [
    "_files",
    "_frames",
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
    "npmle",
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
    "__init__",
]
SOURCE = Path(__file__).parents[1] / "src" / "hocal"


def imported_modules(path: Path) -> set[str]:
    """Return the hocal modules a file imports, at any depth."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    inside = {name.removeprefix("hocal.").split(".")[0] for name in names if name.startswith("hocal.")}
    return inside & set(FLOW)


def test_every_module_has_a_place_in_the_flow() -> None:
    assert {path.stem for path in SOURCE.glob("*.py")} <= set(FLOW)


@pytest.mark.parametrize("module", FLOW)
def test_a_module_imports_only_modules_above_it(module: str) -> None:
    allowed = set(FLOW[: FLOW.index(module)])

    assert imported_modules(SOURCE / f"{module}.py") <= allowed
