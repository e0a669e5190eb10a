"""Pages say what the stored results of benchmarks say; `make bench-tiny` runs the benchmarks."""

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import hocal

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load_tables() -> ModuleType:
    """Import the script that writes the tables."""
    spec = importlib.util.spec_from_file_location("benchmark_tables", BENCHMARKS / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "document", ["benchmarks/README.md", "docs/comparison.md", "docs/limits.md"]
)
def test_documents_hold_the_stored_results(document: str) -> None:
    tables = load_tables()
    path = BENCHMARKS.parent / document
    text = path.read_text(encoding="utf-8")

    assert tables.fill(text, tables.DOCUMENTS[path]) == text


def test_every_benchmark_has_a_result() -> None:
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - {"measure", "tables"}

    assert {path.stem for path in (BENCHMARKS / "results").glob("*.json")} == scripts


def test_every_public_function_is_measured_on_large_data_or_excused() -> None:
    script = (BENCHMARKS / "sizes.py").read_text(encoding="utf-8")
    functions = {name for name in hocal.__all__ if inspect.isfunction(getattr(hocal, name))}

    assert {
        name for name in functions if f"hocal.{name}" not in script and f'"{name}"' not in script
    } == set()


def test_large_data_have_three_sizes() -> None:
    rows = load_tables().stored("sizes")["rows"]

    found = {(row["n_items"], row["n_classes"]) for row in rows}
    assert found == {(1_000_000, 10), (100_000, 100), (50_000, 1_000)}
