"""The benchmarks' page says what their stored results say; `make bench-tiny` runs the benchmarks themselves."""

import importlib.util
from pathlib import Path
from types import ModuleType

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load_tables() -> ModuleType:
    """Import the script that writes the tables."""
    spec = importlib.util.spec_from_file_location("benchmark_tables", BENCHMARKS / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_those_of_the_results() -> None:
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")

    assert load_tables().fill(page) == page


def test_every_benchmark_has_a_result() -> None:
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - {"measure", "tables"}

    assert {path.stem for path in (BENCHMARKS / "results").glob("*.json")} == scripts
