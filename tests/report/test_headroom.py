"""The first figure of a report and its table of classes, held against truth and the library."""

import copy
from typing import Any, cast

import numpy as np
import pytest
from scipy import sparse

import hocal
from hocal.datasets import make_mixture_world
from hocal.report import Report, Summary, headroom_words, summarise
from hocal.report.charts import draw_gains
from hocal.report.schema import Gains
from report.example import Example


def quick(example: Example, counts: Any = None, **options: Any) -> Summary:
    return summarise(example.calibrator, example.probabilities, counts, planning=False, **options)


@pytest.fixture
def changed(summary: Summary) -> Any:
    """Return a copy of the summary that a test may change."""
    return copy.deepcopy(cast("dict[str, Any]", summary))


@pytest.mark.parametrize("name", ["loss", "irreducible", "remaining"])
def test_the_three_numbers_are_those_of_headroom(
    example: Example, summary: Summary, name: str
) -> None:
    found = getattr(hocal.headroom(example.probabilities, example.counts), name)
    shown = summary["headroom"]["gains"][name]  # type: ignore[literal-required]

    assert list(shown.values()) == pytest.approx(list(found), rel=1e-5)


def test_agreement_is_that_of_headroom(example: Example, summary: Summary) -> None:
    found = hocal.headroom(example.probabilities, example.counts)
    agreement, best = summary["headroom"]["agreement"], summary["headroom"]["best_agreement"]

    assert agreement is not None
    assert best is not None
    assert list(agreement.values()) == pytest.approx(list(found.accuracy), rel=1e-5)
    assert list(best.values()) == pytest.approx(list(found.best_accuracy), rel=1e-5)


def test_the_limits_hold_the_truth_of_a_known_world() -> None:
    world = make_mixture_world(2500, 3, random_state=3)
    p = world.label_distributions
    counts = world.draw(4, random_state=4)
    cells = hocal.SnapshotCalibrator(method="cells")
    calibrator = cells.fit(world.predictions[:500], counts[:500])
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean()
    loss = -(p * np.log(world.predictions)).sum(axis=1).mean()

    summary = summarise(calibrator, world.predictions[500:], counts[500:], planning=False)

    truth = {"loss": loss, "irreducible": entropy, "remaining": loss - entropy}
    for name, value in truth.items():
        limits = summary["headroom"]["gains"][name]  # type: ignore[literal-required]
        assert limits["lower"] < value < limits["upper"]


def test_without_labels_the_numbers_are_the_parts_and_have_no_limits(example: Example) -> None:
    summary = quick(example)
    headroom, parts = summary["headroom"], summary["parts"]

    assert not headroom["measured"]
    for name, part in (
        ("loss", parts["predictive"]),
        ("irreducible", parts["aleatoric"]),
        ("remaining", parts["epistemic"]),
    ):
        shown = headroom["gains"][name]  # type: ignore[literal-required]
        assert shown == {"estimate": part["mean"], "lower": None, "upper": None}


def test_without_labels_the_page_and_markdown_say_that_it_is_an_estimate(example: Example) -> None:
    report = Report(quick(example))

    for text in (report.html(), report.markdown()):
        assert "Calibrated, your model should have a log loss of" in text
        assert "This is an estimate for the 400 items of this page" in text


def test_empty_rows_of_labels_are_no_labels(example: Example) -> None:
    assert not quick(example, np.zeros_like(example.counts))["headroom"]["measured"]


def test_a_prediction_of_zero_is_measured_by_the_brier_score(example: Example) -> None:
    p = example.probabilities.copy()
    p[7] = [1.0, 0.0, 0.0, 0.0]

    summary = summarise(example.calibrator, p, example.counts, planning=False)

    found = hocal.headroom(p, example.counts, loss="brier")
    assert summary["headroom"]["loss_name"] == "Brier score"
    assert summary["headroom"]["gains"]["loss"]["estimate"] == pytest.approx(
        found.loss.estimate, rel=1e-5
    )
    assert "Your model's Brier score is" in Report(summary).markdown()


def test_single_labels_tell_nothing_of_what_nobody_can_avoid(example: Example) -> None:
    counts = np.eye(4, dtype=int)[example.counts.argmax(axis=1)]

    summary = quick(example, counts)

    assert summary["headroom"]["gains"]["irreducible"]["estimate"] is None
    text = Report(summary).markdown()
    assert "No item has two labels, so nothing tells what no model can avoid." in text
    assert "?</b> <span>nobody can avoid" in Report(summary).html()


def test_the_sentence_is_said_in_full(changed: Any) -> None:
    changed["headroom"]["gains"] = {
        "loss": {"estimate": 0.45, "lower": 0.44, "upper": 0.46},
        "irreducible": {"estimate": 0.15, "lower": 0.14, "upper": 0.17},
        "remaining": {"estimate": 0.3, "lower": 0.26, "upper": 0.31},
    }

    assert headroom_words.about_headroom(changed)[0] == (
        "Your model's log loss is 0.450. No model can go below 0.150. "
        "At most 0.310 is left to gain, at least 0.260."
    )


def test_where_nothing_may_be_left_the_sentence_says_so(changed: Any) -> None:
    changed["headroom"]["gains"]["remaining"] |= {"lower": 0.0001, "upper": 0.2}

    sentence = headroom_words.about_headroom(changed)[0]

    assert sentence.endswith("At most 0.200 is left to gain, perhaps nothing.")


def test_dependent_labels_are_said_to_make_limits_too_narrow(changed: Any) -> None:
    warning = "The labels do not look independent: the limits may be too narrow."

    assert warning in headroom_words.about_headroom(changed)
    changed["trust"]["check"] = None
    assert warning not in headroom_words.about_headroom(changed)


def test_labels_of_the_fit_are_no_test_of_the_calibrated_prediction() -> None:
    world = make_mixture_world(120, 3, random_state=5)
    counts = world.draw(3, random_state=6)
    calibrator = hocal.SnapshotCalibrator(method="cells").fit(world.predictions, counts)

    summary = summarise(calibrator, world.predictions, counts, planning=False)

    assert summary["headroom"]["n_fitted"] == 120
    assert summary["headroom"]["calibrated"] is None
    said = "The calibration was fitted on labels of 120 of 120 items."
    assert said in Report(summary).markdown()


def test_of_many_items_some_are_measured_and_the_page_says_how_many(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocal.report.headroom.MAX_ITEMS", 100)

    summary = quick(example, example.counts)

    assert (summary["headroom"]["n_items"], summary["headroom"]["n_available"]) == (100, 400)
    assert "Measured on 100 items drawn from 400 with labels" in Report(summary).markdown()


def test_sparse_labels_give_the_same_figure(example: Example) -> None:
    dense = quick(example, example.counts)
    thin = quick(example, sparse.csr_array(example.counts))

    assert thin["headroom"] == dense["headroom"]
    assert thin["classes"] == dense["classes"]


def test_classes_are_the_sums_over_items_by_what_is_predicted(
    example: Example, summary: Summary
) -> None:
    parts = example.calibrator.decompose(example.probabilities)
    top = example.probabilities.argmax(axis=1)
    names = summary["data"]["classes"]

    assert sum(row["n_items"] for row in summary["classes"]) == 400
    for row in summary["classes"]:
        own = top == names.index(row["name"])
        assert row["n_items"] == own.sum()
        assert row["share"] == pytest.approx(own.mean())
        assert row["aleatoric"] == pytest.approx(parts.aleatoric[own].mean(), rel=1e-5)
        assert row["epistemic"] == pytest.approx(parts.epistemic[own].mean(), rel=1e-5)
        share = parts.epistemic[own].sum() / parts.epistemic.sum()
        assert row["epistemic_share"] == pytest.approx(share, rel=1e-5)


def test_the_losses_of_classes_are_those_of_headroom(example: Example, summary: Summary) -> None:
    found = hocal.headroom(example.probabilities, example.counts).per_class
    names = summary["data"]["classes"]

    for row in summary["classes"]:
        part = found[names.index(row["name"])]
        assert row["n_measured"] == part.n_items
        assert row["gains"] is not None
        assert list(row["gains"]["remaining"].values()) == pytest.approx(
            list(part.remaining), rel=1e-4
        )


def test_a_class_with_few_items_has_no_losses(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocal.report.headroom.FEWEST_OF_A_CLASS", 60)

    summary = quick(example, example.counts)

    for row in summary["classes"]:
        assert (row["gains"] is None) == (row["n_items"] < 60)
    assert {row["gains"] is None for row in summary["classes"]} == {True, False}


def test_the_most_uncertain_class_in_total_comes_first(summary: Summary) -> None:
    totals = [row["n_items"] * row["predictive"] for row in summary["classes"]]

    assert totals == sorted(totals, reverse=True)


def test_what_is_left_is_drawn_from_the_floor_to_the_loss() -> None:
    gains: Gains = {
        "loss": {"estimate": 0.4, "lower": 0.3, "upper": 0.5},
        "irreducible": {"estimate": 0.1, "lower": 0.05, "upper": 0.2},
        "remaining": {"estimate": 0.3, "lower": 0.2, "upper": 0.35},
    }

    drawn = draw_gains(gains)

    unit = 100 / drawn.top
    assert (drawn.loss.start, drawn.loss.width) == pytest.approx((0, 0.4 * unit), abs=1e-3)
    assert drawn.irreducible.width == pytest.approx(0.1 * unit, abs=1e-3)
    assert drawn.remaining.start == pytest.approx(0.1 * unit, abs=1e-3)
    assert drawn.remaining.start + drawn.remaining.width == pytest.approx(0.4 * unit, abs=1e-3)
    # at most .35 is left, so that the floor is at .05 at least
    assert drawn.remaining.range_start == pytest.approx(0.05 * unit, abs=1e-3)
    assert drawn.remaining.range_width == pytest.approx(0.15 * unit, abs=1e-3)
    assert drawn.top == pytest.approx(0.52)


def test_the_first_figure_of_the_page_is_what_is_left_to_gain(summary: Summary) -> None:
    page = Report(summary).html()

    assert page.index('<figure class="gains"') == page.index("<figure")
    assert page.index('id="gain"') < page.index('id="parts"') < page.index('id="by-class"')
