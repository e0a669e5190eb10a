"""What people read has no "1 cells" in it, and no term that only statisticians know."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hocal
from hocal.cli.evaluate import _certificate_table
from hocal.report import Report, Summary, summarise, summarise_labels

PLURALS = "items|cells|labels|judgements|annotators|classes|people|pairs|warnings|dots|rows|others"
ONE_OF_MANY = re.compile(rf"(?<![\w.,])1 (?:more |held-out |calibration )?({PLURALS})\b")
JARGON = re.compile(r"epsilon|Holm|family-wise|false discovery", re.IGNORECASE)


def one_of_many(text: str) -> list[str]:
    """Return what says "1 cells"; "of 1 items" counts, "1 of 2 items" does not."""
    return [found.group() for found in ONE_OF_MANY.finditer(re.sub(r"<[^>]*>", "", text))]


def judgements(n_items: int, n_people: int, seed: int = 0) -> pd.DataFrame:
    """Return a table in which everybody judges everything."""
    generator = np.random.default_rng(seed)
    items, people = np.meshgrid(np.arange(n_items), np.arange(n_people), indexing="ij")
    return pd.DataFrame(
        {
            "item": items.ravel(),
            "who": people.ravel(),
            "label": generator.choice(["a", "b"], items.size),
        }
    )


def small_check(n_items: int, n_people: int) -> Any:
    table = judgements(n_items, n_people)
    return hocal.check_annotations(table, item="item", label="label", annotator="who")


@pytest.fixture(scope="module")
def of_one_item() -> Summary:
    """Return the summary of one item in the only cell, with all that can be said about it."""
    calibrator = hocal.SnapshotCalibrator(hocal.PrecomputedPartition(1), method="cells")
    p, counts = np.array([[0.6, 0.4]]), np.array([[1, 1]])
    calibrator.fit(p, counts, cells=[0])
    check = small_check(1, 2).as_dict()
    return summarise(calibrator, p, counts, cells=[0], check=check, n_listed=1, n_gallery=1)


def test_a_report_on_one_item_says_one_item(of_one_item: Summary) -> None:
    report = Report(of_one_item)
    visible = report.html().split('<script type="application/json"')[0]

    assert "1 item" in visible
    assert one_of_many(visible) == []
    assert one_of_many(report.markdown()) == []


def test_a_report_on_the_labels_of_one_item_says_one_item() -> None:
    table = judgements(1, 2)
    columns = {"item": "item", "label": "label", "annotator": "who"}
    report = Report(summarise_labels(table, classes=["a", "b"], **columns))
    visible = report.html().split('<script type="application/json"')[0]

    assert one_of_many(visible) == []
    assert one_of_many(report.markdown()) == []


@pytest.mark.parametrize(("n_items", "n_people"), [(1, 1), (1, 2), (2, 1), (30, 3)])
def test_a_check_counts_in_words(n_items: int, n_people: int) -> None:
    check = small_check(n_items, n_people)

    assert one_of_many(check.table()) == []
    assert one_of_many(repr(check)) == []


def test_a_repeated_judgement_is_one_judgement() -> None:
    table = judgements(20, 3)
    again = pd.concat([table, table.iloc[:1]], ignore_index=True)

    check = hocal.check_annotations(again, item="item", label="label", annotator="who")

    messages = [finding.message for finding in check.findings if finding.topic == "repeats"]
    assert messages[0].startswith(
        "1 judgement repeats an annotator and item, over 1 pair, of which 1 agrees with itself."
    )


def test_a_check_has_no_terms_of_statisticians() -> None:
    text = " ".join(small_check(40, 6).table().split())

    assert JARGON.findall(text) == []
    assert "names anybody by mere chance in 5% of studies at most" in text
    assert re.search(r"a design effect of [\d.]+, by which the number of items is divided", text)


def test_a_report_has_no_terms_of_statisticians(summary: Summary) -> None:
    report = Report(summary)
    visible = report.html().split('<script type="application/json"')[0]

    assert JARGON.findall(visible) == []
    assert JARGON.findall(report.markdown()) == []


def test_evaluate_says_what_its_last_number_is() -> None:
    calibrator = hocal.SnapshotCalibrator(hocal.PrecomputedPartition(1), method="cells")
    counts = np.tile([[2, 1], [1, 2]], (20, 1))
    calibrator.fit(np.full((40, 2), 0.5), counts, cells=np.zeros(40, dtype=int))

    table = _certificate_table(calibrator.certify(), "shannon", ["all"])

    assert JARGON.findall(table) == []
    assert "error up to: predicted and true snapshots of k labels are no further apart" in table
