"""What `summarise` says, held against the library's own numbers."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import hocal
from hocal.datasets import make_mixture_world, make_xray
from hocal.decisions.budget import BudgetPlan, Split
from hocal.report import Summary, summarise
from report.example import CLASSES, Example


def quick(example: Example, **options: object) -> Summary:
    return summarise(example.calibrator, example.probabilities, planning=False, **options)


def test_means_are_those_of_the_decomposition(example: Example, summary: Summary) -> None:
    parts = example.calibrator.decompose(example.probabilities)

    for name, values in parts.as_dict().items():
        shown = summary["parts"][name]["mean"]  # type: ignore[literal-required]
        assert shown == pytest.approx(values.mean(), rel=1e-5)


def test_the_share_is_that_of_the_means(summary: Summary) -> None:
    parts = summary["parts"]

    assert parts["epistemic_share"] == pytest.approx(
        parts["epistemic"]["mean"] / parts["predictive"]["mean"], rel=1e-4
    )


def test_a_tenth_of_the_items_lies_above_the_high_value(example: Example, summary: Summary) -> None:
    epistemic = example.calibrator.decompose(example.probabilities).epistemic

    assert (epistemic > summary["parts"]["epistemic"]["high"] + 1e-5).mean() <= 0.1


@pytest.mark.parametrize("kind", ["aleatoric", "epistemic"])
def test_steps_are_the_shares_of_items_with_at_least_as_much(
    example: Example, summary: Summary, kind: str
) -> None:
    values = example.calibrator.decompose(example.probabilities).as_dict()[kind]
    steps = summary["parts"][f"{kind}_steps"]  # type: ignore[literal-required]

    assert [value for value, _ in steps] == np.unique(values).tolist()
    assert [share for _, share in steps] == pytest.approx(
        [(values >= value).mean() for value in np.unique(values)], rel=1e-5
    )


def test_the_map_holds_every_item(summary: Summary) -> None:
    assert sum(point["n_items"] for point in summary["parts"]["map"]) == 400


def test_many_cells_are_gathered_in_squares(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocal.report.parts.MAX_POINTS", 3)
    monkeypatch.setattr("hocal.report.parts.N_SQUARES", 2)

    summary = quick(example)

    points, n_cells = summary["parts"]["map"], summary["data"]["n_cells_used"]
    assert len(points) < n_cells
    assert sum(point["n_cells"] for point in points) == n_cells
    assert sum(point["n_items"] for point in points) == 400


def test_cells_that_come_with_the_data_are_taken_as_they_are() -> None:
    world = make_mixture_world(60, 3, random_state=0)
    cells, counts = np.arange(60) % 4, world.draw(2, random_state=1)
    calibrator = hocal.SnapshotCalibrator(hocal.PrecomputedPartition(4)).fit(
        world.predictions, counts, cells=cells
    )

    summary = summarise(calibrator, world.predictions, counts, cells=cells, planning=False)

    assert {item["cell"] == cells[item["row"]] for item in summary["items"]} == {True}


def test_the_summary_is_json_and_comes_back_the_same(summary: Summary) -> None:
    again = json.loads(json.dumps(summary, allow_nan=False))

    assert json.dumps(again) == json.dumps(summary)


def test_the_same_seed_gives_the_same_summary(example: Example) -> None:
    first, second = (quick(example, counts=example.counts, random_state=5) for _ in range(2))

    assert first == second


def test_the_calibration_error_is_that_of_the_calibrator(
    example: Example, summary: Summary
) -> None:
    error = example.calibrator.calibration_error(
        example.probabilities, example.counts, k=2, random_state=0
    )
    measured = summary["trust"]["calibration"]

    assert measured is not None
    assert measured["k"] == 2
    assert measured["mean"] == pytest.approx(error.mean, rel=1e-5)


def test_observed_disagreement_is_the_share_of_pairs_that_differ(example: Example) -> None:
    counts = np.tile([2, 2, 0, 0], (400, 1))  # of six pairs of labels four differ
    measured = quick(example, counts=counts)["trust"]["calibration"]

    assert measured is not None
    assert measured["observed_disagreement"] == pytest.approx(4 / 6, rel=1e-5)


def test_predicted_disagreement_is_the_brier_part_of_the_decomposition(
    example: Example, summary: Summary
) -> None:
    brier = example.calibrator.decompose(example.probabilities, "brier").aleatoric.mean()
    measured = summary["trust"]["calibration"]

    assert measured is not None
    assert measured["predicted_disagreement"] == pytest.approx(brier, rel=1e-5)


def test_aleatoric_error_needs_ten_labels_per_item(example: Example) -> None:
    few = quick(example, counts=example.counts)["trust"]["calibration"]
    many = quick(example, counts=5 * example.counts)["trust"]["calibration"]

    assert few is not None
    assert many is not None
    assert few["aleatoric_error"] is None
    assert many["aleatoric_error"] is not None


def test_items_without_labels_are_not_measured(example: Example) -> None:
    counts = example.counts.copy()
    counts[:100] = 0

    measured = quick(example, counts=counts)["trust"]["calibration"]

    assert measured is not None
    assert measured["n_items"] == 300


def test_of_many_items_a_sample_is_measured(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocal.report.trust.MAX_MEASURED", 100)

    measured = quick(example, counts=example.counts)["trust"]["calibration"]

    assert measured is not None
    assert (measured["n_items"], measured["n_available"]) == (100, 400)


def test_of_items_with_many_classes_fewer_are_measured(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_classes = example.probabilities.shape[1]
    monkeypatch.setattr("hocal.report.trust.MAX_MEASURED_NUMBERS", 50 * n_classes)

    measured = quick(example, counts=example.counts)["trust"]["calibration"]

    assert measured is not None
    assert (measured["n_items"], measured["n_available"]) == (50, 400)


def test_single_labels_are_measured_one_by_one(example: Example) -> None:
    measured = quick(example, counts=np.eye(4, dtype=int)[np.arange(400) % 4])["trust"][
        "calibration"
    ]

    assert measured is not None
    assert measured["k"] == 1
    assert measured["observed_disagreement"] is None


def test_without_any_label_nothing_is_measured(example: Example) -> None:
    assert quick(example)["trust"]["calibration"] is None
    assert quick(example, counts=np.zeros((400, 4), dtype=int))["trust"]["calibration"] is None


def test_more_labels_than_any_item_has_cannot_be_asked_for(example: Example) -> None:
    with pytest.raises(
        ValueError, match="`k` must be at most 4, the most held-out labels of an item, got 9"
    ):
        quick(example, counts=example.counts, k=9)


def test_sparse_labels_give_the_same_summary(example: Example) -> None:
    assert quick(example, counts=sparse.csr_array(example.counts)) == quick(
        example, counts=example.counts
    )


def test_a_snapshot_predictor_is_measured_at_its_own_k() -> None:
    world = make_mixture_world(400, 3, random_state=0)
    counts = world.draw(3, random_state=1)
    calibrator = hocal.SnapshotCalibrator(method="empirical").fit(world.predictions, counts)

    measured = summarise(calibrator, world.predictions, counts, planning=False)["trust"][
        "calibration"
    ]

    assert measured is not None
    assert measured["k"] == 3
    with pytest.raises(ValueError, match="`k` must be an integer from 3 to 3, got 2"):
        summarise(calibrator, world.predictions, counts, k=2, planning=False)


def test_the_certificate_is_counted_cell_by_cell(example: Example, summary: Summary) -> None:
    certificate, part = example.calibrator.certify(0.95), summary["trust"]["certificate"]
    filled = certificate.n_items > 0

    assert part["n_cells"] == filled.sum()
    assert part["n_vacuous"] == (filled & certificate.vacuous("aleatoric")).sum()
    assert part["assumptions"] == list(certificate.assumptions)


def test_cells_that_borrow_are_counted() -> None:
    world = make_mixture_world(400, 3, random_state=0)
    sure = world.predictions.max(axis=1) > 0.6
    calibrator = hocal.SnapshotCalibrator().fit(
        world.predictions[sure], world.draw(3, random_state=1)[sure]
    )

    trust = summarise(calibrator, world.predictions, planning=False)["trust"]

    located = calibrator.source_[calibrator.partition_.assign(world.predictions)]
    assert trust["borrowed_items"] == (located != "cell").sum() > 0


def test_cells_hold_the_intervals_of_the_certificate(example: Example, summary: Summary) -> None:
    lower, upper = example.calibrator.certify(0.95).interval("aleatoric")

    for row in summary["cells"]:
        if row["aleatoric_interval"] is not None:
            assert row["aleatoric_interval"] == pytest.approx(
                [lower[row["cell"]], upper[row["cell"]]], rel=1e-5
            )


def test_cells_come_in_order_of_the_uncertainty_they_hold(summary: Summary) -> None:
    weights = [row["n_items"] * row["predictive"] for row in summary["cells"]]

    assert weights == sorted(weights, reverse=True)


def test_people_who_always_mix_up_two_classes_are_found() -> None:
    p = np.tile([0.6, 0.3, 0.1], (50, 1))
    calibrator = hocal.SnapshotCalibrator().fit(p, [[1, 0, 1]] * 25 + [[2, 0, 0]] * 25)

    confusions = summarise(calibrator, p, classes=["a", "b", "c"], planning=False)["confusions"]

    assert confusions == [{"first": "a", "second": "c", "share": 1.0, "rate": 0.5}]


def test_each_cell_has_the_confusion_of_its_own_labels_where_counts_are_sparse() -> None:
    p = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]] * 20
    counts = sparse.csr_array([[1, 0, 1], [1, 1, 0]] * 20)
    partition = hocal.PrecomputedPartition(2)
    calibrator = hocal.SnapshotCalibrator(partition, method="cells").fit(
        p, counts, cells=np.arange(40) % 2
    )

    summary = summarise(calibrator, p, cells=np.arange(40) % 2, classes=list("abc"), planning=False)
    pairs = {row["cell"]: row["confusion"] for row in summary["cells"]}

    assert (pairs[0]["first"], pairs[0]["second"]) == ("a", "c")
    assert (pairs[1]["first"], pairs[1]["second"]) == ("a", "b")


def test_single_labels_confuse_nobody() -> None:
    with pytest.warns(UserWarning, match="No item has two labels"):
        calibrator = hocal.SnapshotCalibrator().fit([[0.6, 0.4]] * 20, [[1, 0]] * 20)

    assert summarise(calibrator, [[0.6, 0.4]], planning=False)["confusions"] == []


def test_a_world_without_doubt_has_no_share() -> None:
    p = np.tile([1.0, 0.0], (30, 1))
    calibrator = hocal.SnapshotCalibrator(method="empirical").fit(p, [[3, 0]] * 30)

    summary = summarise(calibrator, p, planning=False)

    assert summary["parts"]["epistemic_share"] is None
    assert summary["cells"][0]["epistemic_share"] == 0


def test_ambiguous_scans_stand_out_as_aleatoric() -> None:
    world = make_xray(200, scenario="ambiguous", random_state=0)
    calibrator = hocal.SnapshotCalibrator().fit(world.predictions, world.draw(5, random_state=1))

    galleries = summarise(calibrator, world.predictions, planning=False)["galleries"]

    assert {gallery["standing"]: gallery["n_items"] for gallery in galleries} == {
        "epistemic": 0,
        "aleatoric": 200,
    }


def test_items_have_their_own_values_alone_and_with_their_labels(
    example: Example, summary: Summary
) -> None:
    calibrator, p, counts, _ = example
    alone = calibrator.decompose(p)
    known = calibrator.decompose(p, counts=counts)

    for item in summary["items"]:
        row = item["row"]
        assert item["alone"]["aleatoric"] == pytest.approx(alone.aleatoric[row], abs=1e-5)
        assert item["aleatoric"] == pytest.approx(known.aleatoric[row], abs=1e-5)
        assert item["epistemic"] == pytest.approx(known.epistemic[row], abs=1e-5)


def test_an_item_without_labels_has_the_values_of_its_prediction(example: Example) -> None:
    counts = example.counts.copy()
    counts[::2] = 0

    items = quick(example, counts=counts)["items"]

    assert all(
        item["alone"]["aleatoric"] == item["aleatoric"] for item in items if not item["n_labels"]
    )
    assert any(item["alone"]["aleatoric"] != item["aleatoric"] for item in items)


def test_cells_have_the_averages_of_their_items(example: Example, summary: Summary) -> None:
    parts = example.calibrator.decompose(example.probabilities)
    cells = example.calibrator.partition_.assign(example.probabilities)

    for row in summary["cells"]:
        own = cells == row["cell"]
        assert row["aleatoric"] == pytest.approx(parts.aleatoric[own].mean(), rel=1e-5)
        assert row["epistemic"] == pytest.approx(parts.epistemic[own].mean(), rel=1e-5)


def test_blocks_of_items_do_not_change_their_values(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = quick(example, counts=example.counts)["parts"]["aleatoric"]
    monkeypatch.setattr("hocal.report.item_values.NUMBERS", 200)
    blocks = quick(example, counts=example.counts)["parts"]["aleatoric"]

    assert blocks == pytest.approx(whole, abs=1e-5)


def test_an_ensemble_with_features_is_summarised() -> None:
    world = make_mixture_world(300, 3, random_state=0)
    members = np.stack([world.predictions, world.predictions[:, [1, 0, 2]]], axis=1)
    features = world.features
    counts = world.draw(3, random_state=1)
    calibrator = hocal.SnapshotCalibrator().fit(members, counts, features=features)

    summary = summarise(calibrator, members, counts, features=features, planning=False)

    expected = calibrator.decompose(members, features=features).aleatoric.mean()
    assert summary["parts"]["aleatoric"]["mean"] == pytest.approx(expected, rel=1e-5)


def test_items_carry_what_people_said(example: Example, summary: Summary) -> None:
    item = summary["items"][0]
    counts = dict(zip(CLASSES, example.counts[item["row"]], strict=True))

    assert item["labels"]
    assert all(counts[name] == n for name, n in item["labels"])
    assert item["n_labels"] == 4


def test_planning_starts_from_the_mean_number_of_labels() -> None:
    p, counts = [[0.8, 0.2]] * 60, [[1, 0]] * 5 + [[2, 1]] * 50 + [[4, 1]] * 5
    calibrator = hocal.SnapshotCalibrator(method="empirical").fit(p, counts)

    planning = summarise(calibrator, p)["planning"]

    assert planning is not None
    (row,) = planning["widths"]
    assert row["k"] == 3
    assert row["four_times_items"] < row["twice_items"] < row["now"]
    assert row["twice_labels"] < row["now"]


def test_planning_tells_splits_apart_as_a_budget_plan_does(summary: Summary) -> None:
    planning = summary["planning"]

    assert planning is not None
    rows = tuple(Split(**row, width=np.nan) for row in planning["splits"])
    contenders = BudgetPlan(rows, planning["budget"], "cells").contenders
    assert {row.k for row in contenders} == {planning["best_k"], *planning["near_k"]}


def test_planning_speaks_of_the_cells_with_most_items(summary: Summary) -> None:
    planning = summary["planning"]

    assert planning is not None
    assert planning["best_k"] == min(planning["splits"], key=lambda row: row["error"])["k"]
    assert all(
        row["four_times_items"] <= row["twice_items"] <= row["now"] for row in planning["widths"]
    )


def test_a_classifier_is_summarised_from_its_features() -> None:
    world = make_mixture_world(300, 3, random_state=0)
    classifier = hocal.HigherOrderCalibratedClassifier(LogisticRegression())
    classifier.fit(world.features, world.draw(3, random_state=1), classes=["cat", "dog", "fox"])

    summary = summarise(classifier, world.features, planning=False)

    assert summary["data"]["classes"] == ["cat", "dog", "fox"]
    assert "models of the folds" in " ".join(summary["trust"]["certificate"]["assumptions"])
    assert summary["parts"]["predictive"]["mean"] == pytest.approx(
        classifier.decompose(world.features).predictive.mean(), rel=1e-5
    )


@pytest.mark.parametrize(
    ("partition", "name"),
    [
        (hocal.TopLabelPartition(4), "dog, 50 to 75%"),
        (hocal.QuantilePartition(2), "dog, 0 to 70%"),
        (hocal.UniformPartition(2), "dog, 50 to 100%"),
        (hocal.LevelSetPartition(), "cell 0, dog near 70%"),
        (hocal.KMeansPartition(2), "cell 0, dog near 70%"),
        (lambda p: np.zeros(len(p), dtype=int), "cell 0"),
    ],
    ids=["top-label", "quantile", "uniform", "level-set", "k-means", "callable"],
)
def test_a_cell_is_named_by_its_predictions(partition: object, name: str) -> None:
    p = np.tile([0.3, 0.7], (20, 1))
    calibrator = hocal.SnapshotCalibrator(partition).fit(p, [[1, 1]] * 20)

    assert (
        summarise(calibrator, p, classes=["cat", "dog"], planning=False)["cells"][0]["name"] == name
    )


def test_a_check_is_kept_as_findings(summary: Summary) -> None:
    check = summary["trust"]["check"]

    assert check is not None
    assert [finding["severity"] for finding in check["findings"]] == ["warning", "ok"]


def test_a_check_object_is_asked_for_its_dict(example: Example, check: dict[str, object]) -> None:
    class Check:
        def as_dict(self) -> dict[str, object]:
            return check

    assert quick(example, check=Check())["trust"]["check"] == check | {"design_effect": None}


def test_planning_is_done_or_not(example: Example) -> None:
    with pytest.raises(hocal.InputError, match="`planning` must be True or False, got 'later'"):
        summarise(example.calibrator, example.probabilities, planning="later")  # type: ignore[arg-type]


class Sulking:
    """A thing without a length, which says so in its own way."""

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __getitem__(self, row: int) -> None:
        raise AssertionError("asked, although there are no rows")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["a", "b"]}, "`classes` must be a list of 4 names, got 2"),
        ({"classes": ["a", "a", "b", "c"]}, "`classes` must hold 4 different names, got 3 in 4"),
        (
            {"items": ["one"]},
            "`items` must be a sequence with an entry for each of 400 items, got 1",
        ),
        ({"items": "x" * 400}, "`items` must be a sequence with an entry for each of 400 items"),
        (
            {"texts": iter([])},
            "`texts` must be a sequence with an entry for each of 400 items, got no length",
        ),
        ({"texts": [1] * 400}, "`texts` must hold strings, got 1 in row"),
        (
            {"counts": [[1, 1, 1, 1]]},
            "`probabilities` and `counts` must describe the same items, got 400 and 1 rows",
        ),
        (
            {"check": {"warnings": []}},
            "which `hocal check --json` prints, got dict without 'n_judgements'",
        ),
        ({"check": "ok"}, "`check` must be an AnnotationCheck or its .*, got str"),
        ({"classes": 4}, "`classes` must be a list of 4 names, got int"),
        (
            {"features": [[0.5, 0.5]]},
            "`probabilities` and `features` must describe the same items, got 400 and 1 rows",
        ),
        (
            {"images": Sulking()},
            "`images` must be a sequence with an entry for each of 400 items, got no length",
        ),
        ({"n_listed": -1}, "`n_listed` must be an integer of at least 0, got -1"),
        ({"n_gallery": 1.5}, "`n_gallery` must be an integer of at least 0, got 1.5"),
        ({"confidence": 2}, "`confidence` must lie strictly between 0 and 1, got 2"),
        (
            {"k": 0, "counts": np.ones((400, 4), dtype=int)},
            "`k` must be an integer of at least 1, got 0",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_refused(example: Example, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(example, **options)


def test_something_else_than_a_calibrator_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`calibrator` must be a SnapshotCalibrator or a HigherOrder.* got 7"
    ):
        summarise(7, [[0.5, 0.5]])


MILLION = """
import resource
import numpy as np
import ot  # brings half a gigabyte of torch along where that is installed
import hocal
from hocal.report import Report, summarise

rng = np.random.default_rng(0)
p = rng.dirichlet([0.3] * 5, 1_000_000)
counts = rng.multinomial(3, p)
calibrator = hocal.SnapshotCalibrator().fit(p[:5000], counts[:5000])
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
page = Report(summarise(calibrator, p, counts, planning=False)).html()
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
print(grown / 1e6, len(page.encode()) / 1e6)
assert " of 1,000,000 items: those with the most" in page
assert "On 10,000 of 995,000 held-out items" in page
"""


@pytest.mark.slow
def test_a_page_of_a_million_items_takes_half_a_gigabyte_and_five_megabytes_at_most() -> None:
    """How long it takes is measured by benchmarks/sizes.py."""
    done = subprocess.run(
        [sys.executable, "-c", MILLION], check=True, capture_output=True, text=True
    )
    gigabytes, megabytes = map(float, done.stdout.split())

    assert gigabytes < 0.5
    assert megabytes < 5
