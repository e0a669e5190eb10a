"""A command reads its table of predictions once, however many things it wants from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import narwhals as nw
import pytest

from command_line import Run, Study

OPTIONS = ["--label", "label", "--random-state", "0"]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the queries that go through all rows of the predictions."""
    queries: list[str] = []
    collect = nw.LazyFrame.collect

    def collect_and_note(self: Any, *arguments: Any, **options: Any) -> Any:
        native = self.to_native()
        query = native.sql_query() if hasattr(native, "sql_query") else ""
        if "predictions.csv" in query and not query.rstrip().endswith("LIMIT 1"):
            queries.append(query)
        return collect(self, *arguments, **options)

    monkeypatch.setattr(nw.LazyFrame, "collect", collect_and_note)
    return queries


@pytest.mark.parametrize("rule", ["error", "drop"])
def test_an_evaluation_reads_its_predictions_once(
    run: Run, study: Study, passes: list[str], rule: str
) -> None:
    files = [study / "model.hocal", study / "labels.csv", study / "predictions.csv"]
    outcome = run("evaluate", *files, *OPTIONS, "--n-resamples", "2", "--unlabelled", rule)

    assert outcome.code == 0
    assert len(passes) == 1


def test_a_fit_on_counts_reads_its_predictions_once(
    run: Run, study: Study, tmp_path: Path, passes: list[str]
) -> None:
    files = [study / "counts.csv", study / "predictions.csv"]
    counts = ["--item", "item", "--count-columns", "ant,bee,cat"]
    outcome = run("fit", *files, *counts, "-o", str(tmp_path / "m.hocal"))

    assert outcome.code == 0
    assert len(passes) == 1


def test_a_report_with_labels_and_texts_reads_its_predictions_once(
    run: Run, study: Study, passes: list[str]
) -> None:
    files = [study / "model.hocal", study / "predictions.csv"]
    more = ["--labels", study / "labels.csv", "--text", "item", "--no-planning", "--json"]
    outcome = run("report", *files, *OPTIONS, *more)

    assert outcome.code == 0, outcome.err
    assert len(passes) == 1
