"""Every Python block in the documents runs, and so do the example scripts and small benchmarks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
BENCHMARKS = [path for path in sorted(ROOT.glob("benchmarks/*.py")) if path.name != "measure.py"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_of_a_document_run_in_order(document: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    namespace: dict[str, object] = {"__name__": "document"}

    for block in blocks:
        exec(compile(block, document.name, "exec"), namespace)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(example: Path) -> None:
    finished = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)

    assert finished.returncode == 0, finished.stderr
    assert finished.stdout


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda path: path.name)
def test_benchmark_runs_in_its_tiny_version(benchmark: Path) -> None:
    finished = subprocess.run([sys.executable, str(benchmark), "--tiny"], capture_output=True, text=True, check=False)

    assert finished.returncode == 0, finished.stderr
