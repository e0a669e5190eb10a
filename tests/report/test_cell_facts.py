"""Facts about cells are computed once per report, however many rows speak of them."""

from collections.abc import Callable
from typing import Any

import pytest

from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.cells.partitions import Partition
from hocal.guarantees import certificates
from hocal.guarantees.certificates import Certificate
from hocal.report import Summary, cells, study, summarise
from report.example import CLASSES, Example
from report.groups import make_groups, summarise_groups

#: who computes what a report says about cells
SOURCES = [
    (Partition, "cell_names"),
    (cells, "_row"),
    (study, "check_counts"),
    (certificates, "decompose"),
    (Certificate, "vacuous"),
    (Certificate, "inside"),
    (SnapshotCalibrator, "certify"),
]


def label(owner: Any, name: str) -> str:
    """Return a short name, as in "cells._row"."""
    return f"{owner.__name__.split('.')[-1]}.{name}"


def counting(function: Callable[..., Any], key: str, calls: dict[str, int]) -> Callable[..., Any]:
    """Return a function that does the same and counts its calls."""

    def counted(*args: Any, **options: Any) -> Any:
        calls[key] += 1
        return function(*args, **options)

    return counted


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count the calls of every source from here on."""
    found = {label(*source): 0 for source in SOURCES}
    for owner, name in SOURCES:
        counter = counting(getattr(owner, name), label(owner, name), found)
        monkeypatch.setattr(owner, name, counter)
    return found


def described(summary: Summary) -> set[int]:
    """Return the cells that have a row anywhere in a summary."""
    rows = [*summary["cells"], *summary["leaders"]["epistemic"], *summary["leaders"]["aleatoric"]]
    return {row["cell"] for row in rows}


def test_a_report_computes_each_fact_once(example: Example, calls: dict[str, int]) -> None:
    calibrator, probabilities, counts, _ = example

    summary = summarise(calibrator, probabilities, counts, classes=CLASSES, planning=False)

    assert calls == {
        "Partition.cell_names": 1,
        "cells._row": len(described(summary)),
        "study.check_counts": 1,
        "certificates.decompose": 2,  # Shannon and Brier
        "Certificate.vacuous": 2,  # aleatoric and epistemic
        "Certificate.inside": 2,
        "SnapshotCalibrator.certify": 1,
    }


def test_a_leader_has_the_row_of_its_cell() -> None:
    summary = summarise_groups(make_groups(0, torn=True))
    rows = {row["cell"]: row for row in summary["cells"]}
    leaders = summary["leaders"]["epistemic"] + summary["leaders"]["aleatoric"]

    assert leaders
    assert all(leader == rows[leader["cell"]] for leader in leaders)
