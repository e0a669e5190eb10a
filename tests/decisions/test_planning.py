"""Plans come true: calibrating gives the widths and errors that were forecast."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hocal
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.cells.statistics import CellStatistics
from hocal.decisions.budget import BudgetPlan, Split, plan_budget
from hocal.decisions.planning import interval_width, items_needed
from hocal.guarantees.bounds import epsilon_bound
from hocal.guarantees.certificates import certify
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import draw_labels

BINARY = Mixtures.from_dirichlet([[0.3, 0.3]])
TERNARY = Mixtures.from_dirichlet([[0.3, 0.3, 0.3]])
WORLD = Mixtures.from_dirichlet([[2, 1, 0.5], [0.3, 0.3, 0.3], [0.2, 5, 1], [4, 4, 4]])


def certified_width(
    mixture: Mixtures, n_items: int, k: int, entropy: str, *, n_cells: int = 8
) -> float:
    """Return the mean width in cells with the same mixture, from labels really drawn."""
    generator, n_classes = np.random.default_rng(0), mixture.n_classes
    cells = np.repeat(np.arange(n_cells), n_items)
    points = mixture.points[generator.choice(len(mixture.points), len(cells), p=mixture.weights)]
    counts = draw_labels(points, k, random_state=generator)
    predictions = np.full(counts.shape, 1 / n_classes)
    partition = hocal.PrecomputedPartition(n_cells).fit(predictions)
    statistics = CellStatistics.from_items(predictions, counts, cells, partition.layout_)
    lower, upper = certify(statistics, mixture[[0] * n_cells], k=1).interval("aleatoric", entropy)
    return float((upper - lower).mean())


def pilot_study(method: Any) -> SnapshotCalibrator:
    """Return a calibrator fitted to 600 items in two of the four cells of a binary partition."""
    generator = np.random.default_rng(3)
    first = np.where(np.arange(600) < 450, 0.6, 0.9)
    truth = np.clip(first + generator.normal(0, 0.1, 600), 0.01, 0.99)
    counts = draw_labels(np.column_stack([truth, 1 - truth]), 4, random_state=generator)
    partition = hocal.UniformPartition(n_bins=4)
    return SnapshotCalibrator(partition, method=method).fit(
        np.column_stack([first, 1 - first]), counts
    )


def test_binary_epsilon_of_a_tenth_needs_738_items() -> None:
    """2 ln(2 / 0.05) / 0.1^2 = 737.8 (spec 3.2)."""
    assert items_needed(k=10, epsilon=0.1, n_classes=2) == 738


def test_no_items_are_planned_for_an_epsilon_that_no_distance_exceeds() -> None:
    with pytest.raises(hocal.InputError, match=r"`epsilon` must be below 2, .* got 3"):
        items_needed(k=2, epsilon=3, n_classes=2)


def test_items_for_epsilon_are_the_inverse_of_the_bound() -> None:
    n_items = items_needed(k=3, epsilon=0.2, n_classes=4, confidence=0.9)

    assert (
        epsilon_bound(n_items, 0.1, 3, 4).value <= 0.2 < epsilon_bound(n_items - 1, 0.1, 3, 4).value
    )


def test_a_mixture_tells_the_number_of_classes() -> None:
    assert items_needed(k=2, epsilon=0.1, mixture=TERNARY) == items_needed(
        k=2, epsilon=0.1, n_classes=3
    )


@pytest.mark.parametrize(
    "options", [{"mixture": TERNARY}, {"n_classes": 3}], ids=["assumed", "worst case"]
)
@pytest.mark.parametrize("entropy", ["shannon", "brier"])
def test_more_items_give_a_narrower_interval(options: dict[str, Any], entropy: str) -> None:
    widths = [
        interval_width(n, k=5, entropy=entropy, **options) for n in (50, 200, 1000, 5000, 50_000)
    ]

    assert (np.diff(widths) < 0).all()


def test_more_labels_give_a_narrower_interval() -> None:
    widths = [interval_width(1000, k=k, mixture=TERNARY) for k in (1, 2, 3, 5, 10)]

    assert (np.diff(widths) < 0).all()


def test_more_confidence_gives_a_wider_interval() -> None:
    assert interval_width(300, k=3, mixture=BINARY, confidence=0.99) > interval_width(
        300, k=3, mixture=BINARY
    )


def test_a_narrower_interval_needs_more_items() -> None:
    assert items_needed(k=5, width=0.2, mixture=BINARY) > items_needed(
        k=5, width=0.4, mixture=BINARY
    )


@pytest.mark.parametrize(
    "options", [{"mixture": BINARY}, {"n_classes": 2}], ids=["assumed", "worst case"]
)
@pytest.mark.parametrize(("entropy", "width"), [("shannon", 0.3), ("brier", 0.1)])
def test_items_needed_and_interval_width_are_inverse(
    options: dict[str, Any], entropy: str, width: float
) -> None:
    options = {"k": 4, "entropy": entropy, **options}
    n_items = items_needed(width=width, **options)

    assert interval_width(n_items, **options) <= width < interval_width(n_items - 1, **options)


@pytest.mark.slow
@pytest.mark.parametrize("entropy", ["shannon", "brier"])
@pytest.mark.parametrize("k", [2, 5, 10])
@pytest.mark.parametrize("mixture", [BINARY, TERNARY], ids=["two classes", "three classes"])
def test_certificates_are_as_wide_as_foretold(mixture: Mixtures, k: int, entropy: str) -> None:
    foretold = interval_width(300, k=k, mixture=mixture, entropy=entropy)

    assert certified_width(mixture, 300, k, entropy) == pytest.approx(foretold, rel=0.15)


@pytest.mark.parametrize("entropy", ["shannon", "brier"])
@pytest.mark.parametrize(
    "atoms", [[[0.5, 0.5]], [[1.0, 0.0]], [[0.9, 0.1]], [[0.5, 0.5], [1.0, 0.0]]]
)
def test_no_cell_on_its_own_is_wider_than_the_worst_case(
    atoms: list[list[float]], entropy: str
) -> None:
    width = certified_width(Mixtures.from_ensemble([atoms]), 400, 5, entropy, n_cells=1)

    assert width <= interval_width(400, k=5, n_classes=2, entropy=entropy)


def test_brier_interval_of_many_items_has_no_width() -> None:
    """Two labels per item identify Brier's aleatoric uncertainty."""
    assert interval_width(10**9, k=2, mixture=TERNARY, entropy="brier") < 1e-3


def test_one_label_per_item_proves_nothing_in_the_worst_case() -> None:
    assert interval_width(1000, k=1, n_classes=3) == pytest.approx(np.log(3))


def test_too_many_snapshots_to_list_are_drawn_instead() -> None:
    """1.8 million snapshots of 25 labels in 7 classes are no obstacle."""
    mixture = Mixtures.from_dirichlet([[0.2] * 7])

    assert (
        0 < interval_width(1000, k=25, mixture=mixture) < interval_width(1000, k=5, mixture=mixture)
    )


def test_a_mixture_out_of_many_is_read_alone() -> None:
    alone = Mixtures.from_dirichlet([[0.3, 0.3, 0.3]])

    assert interval_width(200, k=3, mixture=WORLD[1]) == pytest.approx(
        interval_width(200, k=3, mixture=alone)
    )


def test_an_unreachable_width_names_the_labels_that_would_do() -> None:
    with pytest.raises(
        ValueError, match=r"`width` must exceed 0\.\d+, what is left open by k=2 labels"
    ) as caught:
        items_needed(k=2, width=0.05, mixture=BINARY)

    named = re.search(r"Give k=(\d+) labels per item", str(caught.value))
    assert named is not None
    assert items_needed(k=int(named[1]), width=0.05, mixture=BINARY) > 1000


def test_a_width_that_no_number_of_labels_reaches_says_so() -> None:
    with pytest.raises(ValueError, match=r"got 1e-06\. No k up to 20 will do"):
        items_needed(k=19, width=1e-6, n_classes=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"k": 2, "n_classes": 2},
            "`epsilon` and `width` must be given one without the other, got None and None",
        ),
        (
            {"k": 2, "n_classes": 2, "epsilon": 0.1, "width": 0.1},
            "one without the other, got 0.1 and 0.1",
        ),
        ({"k": 2, "width": 0.1}, "`n_classes` must be given, or a `mixture` instead of it"),
        (
            {"k": 2, "width": 0.1, "mixture": WORLD},
            "`mixture` must be Mixtures of one item, got Mixtures\\(4 items",
        ),
        (
            {"k": 2, "width": 0.1, "mixture": BINARY, "n_classes": 3},
            "`n_classes` must be that of the mixture, 2, got 3",
        ),
        ({"k": 0, "width": 0.1, "n_classes": 2}, "`k` must be an integer of at least 1, got 0"),
        (
            {"k": 2, "width": 0.0, "n_classes": 2},
            "`width` must be a number greater than 0, got 0.0",
        ),
        (
            {"k": 2, "width": 0.1, "n_classes": 2, "confidence": 1},
            "`confidence` must lie strictly between 0 and 1",
        ),
        (
            {"k": 2, "width": 0.1, "n_classes": 2, "entropy": "tsallis"},
            "`entropy` must be one of 'shannon', 'brier'",
        ),
    ],
)
def test_items_needed_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        items_needed(**options)


def test_interval_width_refuses_no_items() -> None:
    with pytest.raises(ValueError, match="`n_items` must be an integer of at least 1, got 0"):
        interval_width(0, k=2, n_classes=2)


def test_one_label_per_item_makes_the_empirical_error_the_mean_entropy() -> None:
    """Every 1-snapshot has entropy 0 (errata E2)."""
    row = plan_budget(WORLD, 500, k=1, method="empirical", n_simulations=2, random_state=0).best

    assert row.error == pytest.approx(hocal.decompose(WORLD).aleatoric.mean())


def test_empirical_error_falls_with_labels_per_item() -> None:
    plan = plan_budget(
        WORLD, 4000, k=(1, 2, 3, 5, 10), method="empirical", n_simulations=5, random_state=0
    )

    assert (np.diff(plan.as_dict()["error"]) < 0).all()


def test_deconvolution_needs_fewer_labels_per_item_than_the_empirical_method() -> None:
    options: dict[str, Any] = {"k": (2, 5, 20), "n_simulations": 8, "random_state": 0}
    best = {
        name: plan_budget(WORLD, 2000, method=name, **options).best
        for name in ("cells", "empirical")
    }

    assert best["cells"].k < best["empirical"].k


def test_a_large_budget_leaves_the_bias_of_the_empirical_method() -> None:
    """With k labels the estimate tends to the mean entropy of the projection."""
    row = plan_budget(WORLD, 400_000, k=2, method="empirical", n_simulations=2, random_state=0).best
    bias = hocal.decompose(WORLD).aleatoric - hocal.decompose(WORLD.project(2)).aleatoric

    assert row.error == pytest.approx(bias.mean(), rel=0.02)


def test_standard_error_falls_with_simulations() -> None:
    few, many = (
        plan_budget(
            WORLD, 300, k=3, method="empirical", n_simulations=n, random_state=0
        ).best.standard_error
        for n in (10, 160)
    )

    assert many == pytest.approx(few / 4, rel=0.5)


def test_a_cell_counts_as_often_as_its_items() -> None:
    certain, split = [1.0, 0.0], [0.5, 0.5]
    world = Mixtures.from_points([certain, split])[[0, 0, 0, 1]]

    row = plan_budget(world, 400, k=1, method="empirical", n_simulations=2, random_state=0).best
    assert row.error == pytest.approx(np.log(2) / 4)


@pytest.mark.parametrize("method", ["cells", "empirical"])
def test_a_fitted_calibrator_is_a_world(method: Any) -> None:
    """The empirical method with one label misses all of the aleatoric uncertainty."""
    calibrator = pilot_study(method)
    n_items = calibrator.statistics_.n_items
    aleatoric = hocal.decompose(calibrator.cell_mixtures_).aleatoric

    row = plan_budget(
        calibrator, 300, k=1, method="empirical", n_simulations=2, random_state=0
    ).best
    assert row.error == pytest.approx(n_items @ aleatoric / n_items.sum())


def test_planning_leaves_the_calibrator_as_it_was() -> None:
    calibrator = pilot_study("empirical")
    before = calibrator.cell_mixtures_

    plan_budget(calibrator, 300, k=2, method="empirical", n_simulations=2, random_state=0)
    assert calibrator.cell_mixtures_ is before


def test_the_same_seed_gives_the_same_plan() -> None:
    first, second = (
        plan_budget(WORLD, 500, k=(2, 5), n_simulations=2, random_state=7) for _ in range(2)
    )

    assert repr(first) == repr(second)


def test_width_is_foretold_on_request() -> None:
    world = TERNARY[[0, 0]]
    row = plan_budget(
        world, 2000, k=2, method="empirical", n_simulations=2, confidence=0.95, random_state=0
    ).best

    assert row.width == pytest.approx(interval_width(1000, k=2, mixture=TERNARY), rel=0.15)


@pytest.fixture(scope="module")
def plan() -> BudgetPlan:
    return plan_budget(WORLD, 100, k=(2, 5), method="empirical", n_simulations=2, random_state=0)


def test_every_split_spends_the_budget(plan: BudgetPlan) -> None:
    assert [(row.k, row.n_items) for row in plan.rows] == [(2, 50), (5, 20)]


def test_best_split_is_marked_in_the_table() -> None:
    plan = BudgetPlan((Split(2, 50, 0.3, 0.01, 0.5), Split(5, 20, 0.2, 0.02, 0.6)), 100, "cells")
    marked = [line for line in repr(plan).splitlines() if line.endswith("*")]

    assert [line.split()[0] for line in marked] == ["5"]
    assert plan.contenders == (plan.best,)


def test_no_split_is_marked_inside_the_noise() -> None:
    rows = (Split(2, 50, 0.3, 0.01, 0.5), Split(3, 33, 0.23, 0.02, 0.5), Split(5, 20, 0.2, 0.02, 1))
    plan = BudgetPlan(rows, 100, "cells")

    assert "*" not in repr(plan)
    assert [row.k for row in plan.contenders] == [3, 5]


def test_a_budget_adds_to_the_study_at_hand() -> None:
    """New items and the same ones are tried."""
    options: dict[str, Any] = {"method": "empirical", "n_simulations": 2, "random_state": 0}
    added = plan_budget(WORLD, 300, k=(2, 3), start=np.full(200, 2), **options)

    assert [(row.items, row.k, row.n_items) for row in added.rows] == [
        ("new", 2, 150),
        ("new", 3, 100),
        ("same", 2, 150),
        ("same", 3, 100),
    ]


def test_labels_that_are_added_lower_the_error() -> None:
    options: dict[str, Any] = {"n_simulations": 4, "random_state": 0}
    alone = plan_budget(WORLD, 200, k=2, **options).best
    added = plan_budget(WORLD, 2_000, k=2, start=np.full(100, 2), **options).best

    assert added.error < alone.error - 2 * alone.standard_error


def test_the_same_items_cannot_take_more_than_there_are() -> None:
    added = plan_budget(
        WORLD, 300, k=(1, 3), start=[2] * 120, method="empirical", n_simulations=2, random_state=0
    )

    assert [(row.items, row.k) for row in added.rows] == [("new", 1), ("new", 3), ("same", 3)]


@pytest.mark.parametrize("start", [[0, 0], [[1, 2]]])
def test_a_study_at_hand_has_labels(start: Any) -> None:
    with pytest.raises(ValueError, match="`start` must hold the number of labels of each item"):
        plan_budget(WORLD, 300, start=start)


def test_frame_has_a_row_for_each_split(plan: BudgetPlan) -> None:
    frame = plan.to_frame()

    assert list(frame.columns) == ["k", "n_items", "error", "standard_error", "width", "items"]
    assert len(frame) == len(plan) == 2


@pytest.mark.parametrize(
    ("world", "budget", "options", "message"),
    [
        (
            [[0.5, 0.5]],
            100,
            {},
            "`world` must be a SnapshotCalibrator or Mixtures without empty ones, got \\[\\[",
        ),
        (
            Mixtures.from_snapshots([[1, 1]], [0], n_cells=2).stored(),
            100,
            {},
            "`world` must be .* without empty ones",
        ),
        (SnapshotCalibrator(), 100, {}, "`world` must be fitted"),
        (WORLD, 0, {}, "`budget` must be an integer of at least 1, got 0"),
        (
            WORLD,
            4,
            {"k": (2, 5)},
            "`k` must be an integer from 1 to 4, got .*5.* It may not exceed the budget",
        ),
        (WORLD, 100, {"k": 2.0}, r"`k` must be an integer from 1 to 100, got [^ ]*2\.0[^ ]*$"),
        (WORLD, 100, {"k": ()}, "`k` must hold at least one number of labels per item, got none"),
        (
            WORLD,
            100,
            {"n_simulations": 1},
            "`n_simulations` must be an integer of at least 2, got 1",
        ),
        (WORLD, 100, {"n_simulations": 10**6}, "`n_simulations` must be at most 1,000, got"),
        (WORLD, 100, {"k": [[1, 2], [3]]}, "`k` must be an array, got rows of different lengths"),
        (
            WORLD,
            10**9,
            {"k": 2},
            r"`budget` must need at most 4 GB, got [\d.]+ GB for 500,000,000 simulated items",
        ),
        (WORLD, 2**61, {"k": 2}, "`budget` must need at most 4 GB"),
        (
            WORLD,
            100,
            {"method": "guess"},
            "`method` must be one of 'cells', 'empirical', got 'guess'",
        ),
        (WORLD, 100, {"confidence": 95}, "`confidence` must lie strictly between 0 and 1, got 95"),
        (
            WORLD,
            100,
            {"entropy": "tsallis"},
            "`entropy` must be one of 'shannon', 'brier', got 'tsallis'",
        ),
        (WORLD, 100, {"random_state": "dice"}, "`random_state` must be None"),
    ],
)
def test_plan_budget_refuses(
    world: Any, budget: int, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plan_budget(world, budget, **options)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_more_labels_never_leave_more_open(n_classes: int) -> None:
    """Of very many items, whatever the mixture; limits of disagreement are a little wider at 3."""
    widths = [interval_width(10**8, k=k, n_classes=n_classes) for k in (2, 3, 5, 10)]

    assert all(after <= before + 1e-3 for before, after in pairwise(widths))
