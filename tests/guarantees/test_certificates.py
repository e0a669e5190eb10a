"""What a certificate says, about which cells, and in which words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import hocal
from hocal import Mixtures, TopLabelPartition
from hocal.cells.partitions import CellLayout
from hocal.cells.statistics import CellStatistics, Histogram, align_counts
from hocal.guarantees.bernstein import bernstein_estimator
from hocal.guarantees.bounds import epsilon_bound
from hocal.guarantees.cell_error import cell_epsilon
from hocal.guarantees.cell_folds import advise_folds, assign_folds
from hocal.guarantees.cell_uncertainty import (
    Advice,
    Sample,
    Target,
    advise,
    cell_intervals,
    estimator_sizes,
)
from hocal.guarantees.certificates import Certificate, certify
from hocal.guarantees.effective_items import fewer_items
from hocal.guarantees.item_statistics import statistic_values
from hocal.guarantees.promises import FIXED_NUMBER, KNOWN_NUMBERS
from hocal.uncertainty.snapshots import sub_snapshots

EVERY = [
    (quantity, entropy)
    for quantity in ("predictive", "aleatoric", "epistemic")
    for entropy in ("shannon", "brier")
]


@pytest.mark.parametrize("leader", [None, 0])
def test_a_statistic_of_many_labels_is_its_mean_over_their_snapshots(leader: int | None) -> None:
    estimator = bernstein_estimator("shannon", 3, 4, side="upper", leader=leader)
    counts = np.array([[3, 2, 0, 2], [0, 0, 7, 0], [5, 1, 1, 0]])
    thinned = sub_snapshots(counts, 3)
    advice = Advice({("upper", 3): estimator})

    values, _ = statistic_values(Sample(counts, np.ones(3)), advice, "upper")

    each = thinned.probabilities * estimator(thinned.snapshots)
    assert values == pytest.approx(np.bincount(thinned.items, each), rel=1e-12)


def test_a_statistic_of_a_trillion_labels_is_that_of_their_shares() -> None:
    estimator = bernstein_estimator("shannon", 5, 2, side="lower")
    advice = Advice({("lower", 5): estimator})
    shares = np.array([[0.5, 0.5], [0.25, 0.75]])

    values = [
        statistic_values(Sample((n * shares).astype(np.int64), np.ones(2)), advice, "lower")[0]
        for n in (10**8, 10**12)
    ]

    assert values[0] == pytest.approx(values[1], rel=1e-6)


def statistics_of(counts: Any, cells: NDArray[np.int64], n_cells: int) -> CellStatistics:
    """Cells of one level; the classes are already in order of falling prediction."""
    n_classes = counts.shape[1]
    p = np.tile(
        np.arange(n_classes, 0, -1) / (n_classes * (n_classes + 1) / 2), (counts.shape[0], 1)
    )
    layout = CellLayout(np.arange(n_cells), np.zeros(n_cells, dtype=np.intp))
    return CellStatistics.from_items(p, counts, cells, layout)


def world(
    k: int | list[int] = 5, *, n_items: int = 400, n_classes: int = 3, seed: int = 0
) -> CellStatistics:
    """Four filled cells and an empty one."""
    generator = np.random.default_rng(seed)
    totals = generator.choice(np.atleast_1d(k), n_items)
    counts = generator.multinomial(
        totals, generator.dirichlet(np.r_[2, np.full(n_classes - 1, 0.5)], n_items)
    )
    return statistics_of(counts, np.arange(n_items) % 4, 5)


def empirical(statistics: CellStatistics) -> Mixtures:
    rows = np.repeat(np.arange(len(statistics.observed.cells)), statistics.observed.multiplicity)
    counts, cells = statistics.observed.counts[rows], statistics.observed.cells[rows]
    return Mixtures.from_snapshots(counts, cells, n_cells=statistics.n_cells).stored()


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    statistics = world()
    return certify(statistics, empirical(statistics))


@pytest.mark.parametrize(("quantity", "entropy"), EVERY)
def test_intervals_lie_inside_the_possible_range(
    certificate: Certificate, quantity: str, entropy: str
) -> None:
    lower, upper = certificate.interval(quantity, entropy)
    largest = {"shannon": np.log(3), "brier": 2 / 3}[entropy]

    assert (lower[:4] >= 0).all()
    assert (lower[:4] <= upper[:4]).all()
    assert (upper[:4] <= largest + 1e-12).all()


@pytest.mark.parametrize(("quantity", "entropy"), EVERY)
def test_a_cell_without_items_has_no_interval(
    certificate: Certificate, quantity: str, entropy: str
) -> None:
    lower, upper = certificate.interval(quantity, entropy)

    assert np.isnan([lower[4], upper[4], certificate.epsilon[4], certificate.set_coverage[4]]).all()
    assert certificate.vacuous(quantity, entropy)[4]
    assert not certificate.inside(quantity, entropy)[4]


def test_all_cells_at_once_cost_wider_intervals(certificate: Certificate) -> None:
    statistics = world()
    wider = certify(statistics, empirical(statistics), simultaneous=True)

    for quantity, entropy in EVERY:
        (lower, upper), (low, high) = (
            certificate.interval(quantity, entropy),
            wider.interval(quantity, entropy),
        )
        assert (low[:4] <= lower[:4] + 1e-9).all()
        assert (high[:4] >= upper[:4] - 1e-9).all()


def test_higher_confidence_costs_wider_intervals(certificate: Certificate) -> None:
    statistics = world()
    lower, upper = certify(statistics, empirical(statistics), confidence=0.999).interval(
        "aleatoric"
    )

    assert (upper - lower)[:4].min() > (
        certificate.interval("aleatoric")[1] - certificate.interval("aleatoric")[0]
    )[:4].max() * 0.9


def test_a_certificate_does_not_depend_on_the_order_of_the_items() -> None:
    statistics = world()
    observed = statistics.observed
    rows = np.random.default_rng(1).permutation(
        np.repeat(np.arange(len(observed.cells)), observed.multiplicity)
    )
    shuffled = statistics_of(np.asarray(observed.counts)[rows], observed.cells[rows], 5)

    first, second = (certify(each, empirical(each)) for each in (statistics, shuffled))

    for quantity, entropy in EVERY:
        np.testing.assert_array_equal(
            first.interval(quantity, entropy), second.interval(quantity, entropy)
        )


def test_sparse_counts_give_the_same_certificate() -> None:
    dense = world()
    observed = dense.observed
    rows = np.repeat(np.arange(len(observed.cells)), observed.multiplicity)
    counts = sparse.csr_array(np.asarray(observed.counts)[rows])
    thin = statistics_of(counts, observed.cells[rows], 5)

    first, second = (
        certify(each, empirical(dense)).interval("aleatoric")[1] for each in (dense, thin)
    )

    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_an_estimate_outside_its_interval_is_flagged_and_kept() -> None:
    statistics = world()
    torn = Mixtures.from_points(np.full((5, 3), 1 / 3))
    certificate = certify(statistics, torn)

    assert not certificate.inside("aleatoric").any()
    assert certificate.estimate("aleatoric") == pytest.approx(np.full(5, np.log(3)))
    assert "!1.099" in certificate.table()


def test_one_label_per_item_leaves_the_split_open() -> None:
    statistics = world(1)
    certificate = certify(statistics, empirical(statistics))

    for entropy in ("shannon", "brier"):
        lower, upper = certificate.interval("aleatoric", entropy)
        assert (lower[:4] == 0).all()
        assert (upper[:4] <= certificate.interval("predictive", entropy)[1][:4] + 1e-9).all()


def test_ragged_totals_are_used_and_their_assumption_is_stated() -> None:
    statistics = world([1, 2, 4, 30], n_items=800)
    certificate = certify(statistics, empirical(statistics))

    assert any("one label" in sentence for sentence in certificate.assumptions)
    assert not certificate.vacuous("aleatoric")[:4].any()


def test_epsilon_uses_no_more_labels_than_asked_for_or_listable(certificate: Certificate) -> None:
    statistics = world()

    assert certificate.epsilon_k.tolist() == [5, 5, 5, 5, 0]
    assert certify(statistics, empirical(statistics), k=2).epsilon_k.tolist() == [2, 2, 2, 2, 0]
    wide = world(n_classes=20)
    assert certify(wide, empirical(wide)).epsilon_k.tolist() == [2, 2, 2, 2, 0]


def test_epsilon_grows_with_a_wrong_mixture(certificate: Certificate) -> None:
    wrong = certify(world(), Mixtures.from_points(np.tile([[0.0, 0.0, 1.0]], (5, 1))))

    assert (wrong.epsilon[:4] > certificate.epsilon[:4] + 0.5).all()


def test_many_items_with_many_labels_certify_prediction_sets() -> None:
    """Two classes, 400 labels each, 20,000 items that agree: slack and epsilon are small."""
    counts = np.tile([[400, 0]], (20_000, 1))
    statistics = statistics_of(counts, np.zeros(len(counts), dtype=np.int64), 1)
    certificate = certify(statistics, Mixtures.from_points([[1.0, 0.0]]))

    assert 0 < certificate.set_coverage[0] < 1
    assert certificate.interval("aleatoric")[1][0] < 0.02


def test_more_items_than_can_be_paired_still_have_narrow_brier_intervals() -> None:
    statistics = world(n_items=24_000)
    lower, upper = certify(statistics, empirical(statistics)).interval("epistemic", "brier")

    assert (upper - lower)[:4].max() < 0.12


def test_advice_from_elsewhere_is_never_needed() -> None:
    sample = Sample(np.array([[5, 0, 0], [4, 1, 0]]), np.array([300.0, 100.0]))
    alone = advise(None, estimator_sizes(sample.totals), n_classes=3, n_items=400)

    lower, upper = cell_intervals(sample, alone, 0.05)[Target("aleatoric", "shannon")]

    assert 0 < lower < upper < np.log(3)


@pytest.mark.parametrize("k", [2, 5])
def test_a_cell_unlike_its_advisers_has_useful_intervals(k: int) -> None:
    """Advisers agree nine times in ten; people are torn about the items of the cell itself."""
    generator = np.random.default_rng(0)
    others = Sample(generator.multinomial(k, [0.9, 0.06, 0.04], 300), np.ones(300))
    torn = Sample(generator.multinomial(k, [0.48, 0.48, 0.04], 150), np.ones(150))
    advice = advise(others, (k,), n_classes=3, n_items=150, same_order=True)

    found = cell_intervals(torn, advice, 0.05)

    for quantity, least, largest in (
        ("predictive", 0.65, 1.0),
        ("aleatoric", 0.6, 1.07),
        ("epistemic", 0.0, 0.35),
    ):
        lower, upper = found[Target(quantity, "shannon")]
        assert least <= lower < upper < largest


def test_only_labels_of_other_cells_choose_the_statistics() -> None:
    """A cell's coefficients do not change when its own labels are replaced."""
    first = world()
    rows = np.repeat(np.arange(len(first.observed.cells)), first.observed.multiplicity)
    counts, cells = np.asarray(first.observed.counts)[rows].copy(), first.observed.cells[rows]
    counts[cells == 2] = [0, 0, 5]
    second = statistics_of(counts, cells, 5)
    fold = assign_folds(first)

    before, after = (
        advise_folds(each, each.observed, fold, same_order=False)[fold[2]]
        for each in (first, second)
    )

    assert isinstance(before, Advice)
    for key, estimator in before.estimators.items():
        np.testing.assert_array_equal(estimator.values, after.estimators[key].values)


def test_sizes_of_estimators_are_few() -> None:
    assert estimator_sizes(np.arange(1, 100)) == (2, 3, 5, 10, 20)
    assert estimator_sizes(np.array([50, 50])) == (20,)
    assert estimator_sizes(np.array([1, 1])) == ()


def test_the_table_fits_a_terminal_and_names_the_assumptions(certificate: Certificate) -> None:
    lines = certificate.table().splitlines()

    assert max(map(len, lines[:-1])) <= 100
    assert len(lines) == 6
    assert "independent" in lines[-1]


def test_a_frame_has_one_row_per_cell(certificate: Certificate) -> None:
    frame = certificate.to_frame("brier")

    assert len(frame) == len(certificate) == 5
    assert {"aleatoric", "aleatoric_lower", "aleatoric_upper", "epsilon", "source"} <= set(
        frame.columns
    )


def test_rows_hold_the_columns_of_the_cells_with_items(certificate: Certificate) -> None:
    rows = certificate.rows("brier")
    columns = certificate.as_dict("brier")

    assert [row.cell for row in rows] == [0, 1, 2, 3]
    for row in rows:
        assert row.n_items == columns["n_items"][row.cell]
        assert row.epsilon == columns["epsilon"][row.cell]
        assert row.aleatoric.estimate == columns["aleatoric"][row.cell]
        assert row.aleatoric.upper == columns["aleatoric_upper"][row.cell]


def test_the_estimates_are_those_of_the_mixtures(certificate: Certificate) -> None:
    parts = hocal.decompose(empirical(world()), "brier")

    np.testing.assert_array_equal(
        certificate.estimates[Target("epistemic", "brier")], parts.epistemic
    )


def test_a_table_can_name_its_cells(certificate: Certificate) -> None:
    head, *lines, _ = certificate.table(names=["one", "two", "three", "four", "empty"]).splitlines()

    assert head.endswith("  name")
    assert [line.split()[-1] for line in lines] == ["one", "two", "three", "four"]
    assert [line.rsplit("  ", 1)[0] for line in lines] == certificate.table().splitlines()[1:5]


def test_the_short_form_says_how_wide_the_intervals_are(certificate: Certificate) -> None:
    assert repr(certificate).startswith(
        "Certificate(0.95 for each cell, 4 of 5 cells, 400 items, mean width"
    )


@pytest.mark.parametrize("confidence", [0, 1, 1.5, "high"])
def test_confidence_must_lie_between_0_and_1(confidence: float) -> None:
    statistics = world()

    with pytest.raises(ValueError, match=r"`confidence` must lie strictly between 0 and 1, got"):
        certify(statistics, empirical(statistics), confidence=confidence)


def test_an_unknown_quantity_is_named(certificate: Certificate) -> None:
    with pytest.raises(
        ValueError,
        match="`quantity` must be one of 'predictive', 'aleatoric', 'epistemic', got 'total'",
    ):
        certificate.interval("total")


def test_an_unknown_entropy_is_named(certificate: Certificate) -> None:
    with pytest.raises(
        ValueError, match="`entropy` must be one of 'shannon', 'brier', got 'tsallis'"
    ):
        certificate.estimate("aleatoric", "tsallis")


def test_mixtures_must_match_the_cells() -> None:
    with pytest.raises(
        ValueError, match="`mixtures` must hold one mixture of 3 classes for each of 5 cells, got 2"
    ):
        certify(world(), Mixtures.from_points(np.full((2, 3), 1 / 3)))


@pytest.mark.slow
@pytest.mark.skipif(
    "HOCAL_DATA" not in os.environ, reason="HOCAL_DATA does not point at the real data"
)
@pytest.mark.parametrize(("k", "widest"), [(5, 0.19), (10, 0.14)])
def test_cifar10h_intervals_are_narrow(k: int, widest: float) -> None:
    folder = Path(os.environ["HOCAL_DATA"]) / "cifar10h"
    p = np.load(folder / "cifar10-test-softmax.npz")["resnet18"].astype(np.float64)
    p, full = p / p.sum(axis=1, keepdims=True), np.load(folder / "cifar10h-counts.npy")
    generator = np.random.default_rng(k)
    half = generator.permutation(10_000)[:5000]
    labels = generator.multinomial(k, full[half] / full[half].sum(axis=1, keepdims=True))
    partition = TopLabelPartition(n_slices=10).fit(p)
    cells = partition.assign(p[half])
    statistics = CellStatistics.from_items(p[half], labels, cells, partition.layout_)
    mixtures = Mixtures.from_snapshots(
        align_counts(p[half], labels), cells, n_cells=partition.n_cells_
    ).stored()

    lower, upper = certify(statistics, mixtures, aligned=True).interval("aleatoric")
    large = statistics.n_items >= 200

    assert np.mean((upper - lower)[large]) <= widest


def test_epsilon_of_the_papers_predictor_is_its_sample_bound() -> None:
    """The empirical mixture is the observed snapshots: only their own error is left."""
    p = np.tile([[0.6, 0.4]], (400, 1))
    counts = np.random.default_rng(0).multinomial(3, [0.6, 0.4], size=400)
    calibrator = hocal.SnapshotCalibrator(hocal.UniformPartition(1), method="empirical").fit(
        p, counts
    )

    assert calibrator.certify(0.95).epsilon[0] == pytest.approx(
        epsilon_bound(400, 0.05, 3, 2).value
    )


def test_epsilon_of_snapshots_of_another_size_is_refused() -> None:
    calibrator = hocal.SnapshotCalibrator(method="empirical").fit([[0.6, 0.4]] * 4, [[2, 1]] * 4)

    with pytest.raises(
        ValueError, match="`k` must be the size of the predicted snapshots, 3, got 2"
    ):
        calibrator.certify(k=2)


def test_a_cell_unlike_its_neighbours_keeps_an_interval_nearly_as_narrow_as_alone() -> None:
    """Neighbours that people agree about choose statistics useless for an ambiguous cell."""
    generator = np.random.default_rng(0)
    ambiguous = np.repeat([False, True, False], 300)
    heads = np.where(ambiguous, 0.5, generator.random(900) < 0.5)
    says = np.where(ambiguous, 0.45, np.repeat([0.4, 0.4, 0.5], 300))
    labels = generator.multinomial(3, np.column_stack([1 - heads, heads]))
    p = np.column_stack([1 - says, says])
    together = hocal.SnapshotCalibrator(hocal.UniformPartition(n_bins=20)).fit(p, labels).certify()
    alone = (
        hocal.SnapshotCalibrator(hocal.UniformPartition(n_bins=20))
        .fit(p[ambiguous], labels[ambiguous])
        .certify()
    )
    widths = [
        float(np.subtract(*each.interval("aleatoric")[::-1])[9]) for each in (together, alone)
    ]

    assert together.n_items[9] == alone.n_items[9] == 300
    assert widths[0] < 1.5 * widths[1]


def test_the_error_of_single_labels_is_that_of_listed_ones() -> None:
    """W1 between mixtures of single labels is the l1 distance between their means."""
    generator = np.random.default_rng(5)
    counts = generator.multinomial(3, generator.dirichlet(np.ones(4), 60))
    cells = np.repeat([0, 1, 2], 20)
    mixtures = Mixtures.from_ensemble(generator.dirichlet(np.ones(4), (3, 5)))
    found = cell_epsilon(Histogram.of(cells, counts), mixtures, delta=0.05, k=1)
    shares = np.stack([counts[cells == cell].mean(axis=0) / 3 for cell in range(3)])
    observed = Mixtures.from_ensemble(shares[:, None]).project(1)
    listed = hocal.wasserstein(mixtures.project(1), observed)
    bound = epsilon_bound(20, 0.05, 1, 4).value

    assert found.values == pytest.approx(listed + bound)


@pytest.mark.parametrize("anytime", [False, True])
def test_no_guess_is_claimed_where_classes_do_not_mean_the_same(anytime: bool) -> None:
    statistics = world()

    found = certify(statistics, empirical(statistics), anytime=anytime).bounds["predictive shannon"]

    assert "limits of each class" in found
    assert "guess" not in found


def test_bets_are_named_where_other_cells_give_a_guess() -> None:
    statistics = world()

    bounds = certify(statistics, empirical(statistics), aligned=True).bounds

    assert bounds["predictive shannon"].startswith("bets on the least favourable mean (lower)")


def test_a_design_effect_gives_the_limits_of_as_many_items_as_they_are_worth() -> None:
    """Every count vector occurs twice as often in the large world: the same shares."""
    generator = np.random.default_rng(0)
    counts = generator.multinomial(3, generator.dirichlet([2, 1, 1], 200))
    cells = np.arange(200) % 2
    small = statistics_of(counts, cells, 2)
    large = statistics_of(np.concatenate([counts] * 2), np.concatenate([cells] * 2), 2)
    mixtures = empirical(small)

    halved = certify(large, mixtures, design_effect=2)

    assert halved.effective_items.tolist() == small.n_items.tolist()
    for quantity, entropy in EVERY:
        found = halved.limits[Target(quantity, entropy)]
        expected = certify(small, mixtures).limits[Target(quantity, entropy)]
        assert found == pytest.approx(expected)


def test_a_design_effect_widens_and_is_said(certificate: Certificate) -> None:
    statistics = world()

    wider = certify(statistics, empirical(statistics), design_effect=2.5)

    for quantity, entropy in EVERY:
        narrow = certificate.limits[Target(quantity, entropy)][:4]
        wide = wider.limits[Target(quantity, entropy)][:4]
        assert (wide[:, 1] - wide[:, 0] > narrow[:, 1] - narrow[:, 0] - 1e-9).all()
    assert "400 items count as 160 independent ones." in wider.table()
    assert wider.assumptions[0].startswith("2.5 items of a cell are worth one independent draw")
    assert (wider.epsilon[:4] >= certificate.epsilon[:4] - 0.05).all()


def test_a_certificate_for_all_times_says_that_numbers_of_labels_must_be_known() -> None:
    statistics = world()

    assumptions = certify(statistics, empirical(statistics), anytime=True).assumptions

    assert KNOWN_NUMBERS in assumptions
    assert FIXED_NUMBER not in assumptions


def test_a_design_effect_below_one_is_refused() -> None:
    statistics = world()

    with pytest.raises(hocal.InputError, match="`design_effect` must be a number at least 1"):
        certify(statistics, empirical(statistics), design_effect=0.9)


def test_fewer_items_keep_the_shares_of_a_cell() -> None:
    cells = np.array([0, 0, 0, 2, 2])
    histogram = Histogram(cells, np.eye(5, dtype=np.int64), np.array([50, 30, 20, 1, 8]))

    kept = fewer_items(histogram, 3.0)

    assert kept.cells.tolist() == [0, 0, 0, 2]
    assert kept.multiplicity.tolist() == [17, 9, 7, 3]


def test_a_certificate_says_that_one_quantity_at_a_time_is_meant(certificate: Certificate) -> None:
    assert "for each cell on its own, one quantity at a time." in certificate.table()
    assert any("fixed in advance" in sentence for sentence in certificate.assumptions)


def test_limits_at_any_time_are_wider_and_leave_epsilon_open(certificate: Certificate) -> None:
    statistics = world()

    lasting = certify(statistics, empirical(statistics), anytime=True)

    lower, upper = lasting.interval("aleatoric")
    low, high = certificate.interval("aleatoric")
    assert np.mean((upper - lower)[:4]) > np.mean((high - low)[:4])
    assert np.isnan(lasting.epsilon).all()
    assert not any("fixed in advance" in sentence for sentence in lasting.assumptions)


def test_rows_in_another_order_give_the_same_certificate_to_the_bit() -> None:
    generator = np.random.default_rng(3)
    counts = generator.multinomial(3, generator.dirichlet([2, 1, 1], 120))
    shuffled = generator.permutation(120)
    cells = np.arange(120) % 2

    found = [
        certify(each, empirical(each)).limits
        for each in (
            statistics_of(counts, cells, 2),
            statistics_of(counts[shuffled], cells[shuffled], 2),
        )
    ]

    for target, limits in found[0].items():
        assert limits.tolist() == found[1][target].tolist()
