"""Nothing is called good that is not: fitted labels, dependent labels, estimates outside limits."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import hocal
from hocal.report import Report, Summary, summarise, words
from report.groups import make_groups

WORLD = make_groups(3, k=3)
FITTED = slice(0, 500)
MIXED = slice(300, 900)


@pytest.fixture(scope="module")
def calibrator() -> hocal.SnapshotCalibrator:
    partition = hocal.TopLabelPartition(3)
    return hocal.SnapshotCalibrator(partition, method="cells").fit(
        WORLD.predictions[FITTED], WORLD.counts[FITTED]
    )


def report_on(calibrator: hocal.SnapshotCalibrator, rows: slice, **options: Any) -> Summary:
    p, counts = WORLD.predictions[rows], WORLD.counts[rows]
    return summarise(calibrator, p, counts, planning=False, n_listed=3, n_gallery=2, **options)


def dependence(effect: float | None) -> dict[str, Any]:
    """Return a check that warns of dependent labels."""
    finding = {"topic": "sharing", "severity": "warning", "message": "So.", "action": "Widen."}
    return {
        "n_judgements": 1500,
        "n_items": 500,
        "n_annotators": 9,
        "sharing": {"design_effect": effect},
        "findings": [finding],
    }


def tones(summary: Summary) -> dict[str, str]:
    return {finding.title: finding.tone for finding in words.about_trust(summary)}


@pytest.fixture(scope="module")
def trained(calibrator: hocal.SnapshotCalibrator) -> Summary:
    """Return a report on the very labels of the fit."""
    return report_on(calibrator, FITTED)


def test_labels_of_the_fit_are_called_a_training_figure(trained: Summary) -> None:
    found = tones(trained)

    assert found["A training figure, no test"] == "caution"
    assert found["Disagreement, predicted and seen"] == "caution"
    assert "No sign of miscalibration" not in found


def test_a_training_figure_says_how_many_items_were_fitted_on(trained: Summary) -> None:
    assert trained["trust"]["calibration"]["training"]  # type: ignore[index]
    assert "500 items with labels were fitted on" in Report(trained).markdown()
    assert "held-out item" not in words.about_trust(trained)[0].text


def test_the_loss_of_calibrated_predictions_is_not_told_for_fitted_items(trained: Summary) -> None:
    assert trained["headroom"]["calibrated"] is None


def test_items_of_the_fit_are_left_out_where_enough_others_are_there(
    calibrator: hocal.SnapshotCalibrator,
) -> None:
    mixed = report_on(calibrator, MIXED)
    fresh = report_on(calibrator, slice(500, 900))

    measured, alone = mixed["trust"]["calibration"], fresh["trust"]["calibration"]
    assert measured is not None
    assert alone is not None
    assert (measured["n_fitted"], measured["n_items"], measured["training"]) == (200, 400, False)
    assert measured["mean"] == pytest.approx(alone["mean"], rel=1e-9)
    assert "200 items with labels were fitted on and left out." in Report(mixed).markdown()


def test_new_items_are_no_training_figure(calibrator: hocal.SnapshotCalibrator) -> None:
    calibration = report_on(calibrator, slice(500, 900))["trust"]["calibration"]

    assert calibration is not None
    assert (calibration["n_fitted"], calibration["training"]) == (0, False)


def test_dependent_labels_widen_the_limits_and_nothing_is_called_proved(
    calibrator: hocal.SnapshotCalibrator,
) -> None:
    plain = report_on(calibrator, MIXED)
    widened = report_on(calibrator, MIXED, check=dependence(4.0))

    part = widened["trust"]["certificate"]
    certificate = calibrator.certify(design_effect=4.0)
    lower, upper = certificate.interval("aleatoric")
    for row in widened["cells"]:
        ends = [lower[row["cell"]], upper[row["cell"]]]
        assert row["aleatoric_interval"] == pytest.approx(ends, rel=1e-5)
    before = plain["trust"]["certificate"]
    assert part["mean_width"] > 1.5 * before["mean_width"]  # type: ignore[operator]
    assert part["effective_items"] == certificate.effective_items.sum()
    text = Report(widened).markdown()
    assert f"500 calibration items count as {part['effective_items']}" in text
    assert not any(title.startswith("Proved") for title in tones(widened))


def test_dependence_of_unknown_size_is_not_called_proved(
    calibrator: hocal.SnapshotCalibrator,
) -> None:
    summary = report_on(calibrator, MIXED, check=dependence(None))

    finding = words.about_trust(summary)[2]
    assert finding.tone == "caution"
    assert finding.text.endswith("how much too narrow they are is not known.")


def test_an_effect_without_a_warning_widens_nothing(calibrator: hocal.SnapshotCalibrator) -> None:
    calm = dependence(4.0)
    calm["findings"][0]["severity"] = "note"

    assert report_on(calibrator, MIXED, check=calm)["trust"]["certificate"]["design_effect"] == 1


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_an_estimate_outside_its_limits_is_marked_with_the_remedy(
    trained: Summary, form: str
) -> None:
    summary = deepcopy(trained)
    row = summary["cells"][0]
    row |= {"aleatoric_interval": [0.1, 0.2], "aleatoric_vacuous": False}
    row |= {"aleatoric_inside": False, "stands_out": ["aleatoric"]}
    summary["leaders"]["aleatoric"] = [row]
    summary["trust"]["certificate"]["n_outside"] = 1

    text = getattr(Report(summary), form)()

    assert "! 0.100 to 0.200" in text
    assert "In 1 cell, marked with !, the estimate lies outside its limits." in text
    assert "label more items of the cell or make fewer, larger cells" in text


def test_an_average_of_items_outside_the_limits_of_its_cell_is_marked() -> None:
    """Where a report holds only the clear items of a cell, its limits are about others as well."""
    rng = np.random.default_rng(0)
    p = np.sort(rng.uniform(0.5, 1, 2_000))
    p = np.column_stack([p, 1 - p])
    partition = hocal.TopLabelPartition(1)
    calibrator = hocal.SnapshotCalibrator(partition).fit(p, rng.multinomial(4, p))

    summary = summarise(calibrator, p[-40:], planning=False)

    assert calibrator.certify().inside("aleatoric")[0]
    assert not summary["cells"][0]["aleatoric_inside"]
    assert summary["trust"]["certificate"]["n_outside"] == 1


def test_all_but_two_of_1500_items_are_not_all(trained: Summary) -> None:
    summary = deepcopy(trained)
    summary["trust"]["certificate"] |= {"informed_share": 1498 / 1500, "informed_items": 1498}

    finding = words.about_trust(summary)[2]

    assert finding.title == "Proved for 99.9% of the items"
    assert "which hold 1,498 items." in finding.text
