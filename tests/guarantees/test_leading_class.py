"""Statistics with coefficients of their own for a leading class, against exhaustive versions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from hocal._base.errors import InputError
from hocal._base.typing import Array, IntArray
from hocal.guarantees.bernstein import (
    BernsteinEstimator,
    Side,
    bernstein_estimator,
)
from hocal.guarantees.bernstein_proofs import simplex_excess
from hocal.guarantees.cell_advice import advise
from hocal.guarantees.samples import Sample
from hocal.guarantees.snapshot_marginals import snapshot_marginal
from hocal.uncertainty.entropy import Shannon
from hocal.uncertainty.snapshots import enumerate_snapshots, sub_snapshots

SIDES: tuple[Side, ...] = ("upper", "lower")


def leading_labels(n_items: int, n_classes: int, k: int, seed: int = 0) -> IntArray:
    """Return labels of items that mostly agree on class 1, and sometimes on another."""
    generator = np.random.default_rng(seed)
    heads = np.full(n_classes, 0.15)
    heads[1] = 3.0
    p = generator.dirichlet(heads, n_items)
    return np.asarray(generator.multinomial(k, p))


def led(counts: IntArray, k: int, side: Side, n_items: float = 400) -> BernsteinEstimator:
    reference = snapshot_marginal(counts, k, leader=1)
    return bernstein_estimator(
        "shannon", k, counts.shape[1], side=side, reference=reference, n_items=n_items, leader=1
    )


def means(estimator: BernsteinEstimator, p: Array) -> Array:
    """Return E[Z] at label distributions, class by class."""
    chances = stats.binom.pmf(np.arange(estimator.k + 1), estimator.k, p[..., None])
    total = np.zeros(len(p))
    for label in range(p.shape[1]):
        beta = estimator.leading if label == estimator.leader else estimator.values
        total += chances[:, label] @ beta
    return total


def label_distributions(n_classes: int) -> Array:
    """Return some with any share of the leader, class 1, and others of at most two sizes."""
    small = np.geomspace(1e-9, 0.5, 25)
    shares = np.concatenate([[0.0], small, 1 - small])
    found = []
    others = np.delete(np.arange(n_classes), 1)
    for n_large, n_small in itertools.product((1, 2), (1, n_classes - 2)):
        large, rest = others[:n_large], others[n_large : n_large + n_small]
        if len(rest) == 0:
            continue
        lead, part = (each.ravel() for each in np.meshgrid(shares, shares))
        p = np.zeros((len(lead), n_classes))
        p[:, 1] = lead
        p[:, large] = ((1 - lead) * part / len(large))[:, None]
        p[:, rest] = ((1 - lead) * (1 - part) / len(rest))[:, None]
        found.append(p)
    generator = np.random.default_rng(1)
    return np.concatenate([*found, generator.dirichlet(np.full(n_classes, 0.3), 5000)])


@pytest.mark.parametrize(("k", "n_classes"), [(2, 3), (3, 3), (3, 10), (5, 10), (7, 4), (5, 30)])
@pytest.mark.parametrize("side", SIDES)
def test_sums_keep_to_their_side_on_the_simplex(k: int, n_classes: int, side: Side) -> None:
    p = label_distributions(n_classes)
    sign = 1 if side == "upper" else -1

    for n_items in (30, 400, np.inf):
        estimator = led(leading_labels(500, n_classes, k), k, side, n_items)
        gap = sign * (means(estimator, p) - Shannon().value(p))
        assert gap.min() >= -1e-10
        assert estimator.bias >= gap.max() - 1e-9


@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_the_bound_with_a_leader_is_above_the_sum_on_the_whole_simplex(n_classes: int) -> None:
    generator = np.random.default_rng(n_classes)
    points = np.concatenate(
        [generator.dirichlet(np.full(n_classes, 0.5), 20_000), label_distributions(n_classes)]
    )
    for _ in range(10):
        x = np.concatenate([[0.0], np.sort(generator.random(9)), [1.0]])
        heights, leading = generator.normal(size=(2, 11))
        sums = np.interp(points, x, heights).sum(axis=1)
        lead = points[:, 1]
        largest = (sums - np.interp(lead, x, heights) + np.interp(lead, x, leading)).max()

        assert simplex_excess(x, heights, n_classes, leading).bound.max() >= largest


def test_a_statistic_of_all_snapshots_has_the_stated_ends_and_slope() -> None:
    snapshots = enumerate_snapshots(4, 3)
    first, second = np.array(list(itertools.combinations(range(len(snapshots)), 2))).T
    losses = np.array([0.3, 2.0, 5.0])
    for side in SIDES:
        estimator = led(leading_labels(300, 3, 4), 4, side)

        z = estimator(snapshots)

        by_class = [estimator.values, estimator.leading, estimator.values]
        expected = sum(beta[snapshots[:, j]] for j, beta in enumerate(by_class))
        assert z == pytest.approx(expected)
        assert (estimator.minimum, estimator.maximum) == pytest.approx((z.min(), z.max()))
        distance = np.abs(snapshots[first] - snapshots[second]).sum(axis=1) / 4
        slope = (np.abs(z[first] - z[second]) / distance).max()
        assert slope == pytest.approx(estimator.lipschitz)
        rest = snapshots / 4 @ losses - z
        assert estimator.rest_ends(losses) == pytest.approx((rest.min(), rest.max()))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_ends_of_a_rest_are_those_of_all_snapshots(n_classes: int) -> None:
    estimator = bernstein_estimator("shannon", 5, n_classes, side="lower")
    snapshots = enumerate_snapshots(5, n_classes)
    losses = np.linspace(0.1, 4.0, n_classes)

    rest = snapshots / 5 @ losses - estimator(snapshots)

    assert estimator.rest_ends(losses) == pytest.approx((rest.min(), rest.max()))


def test_the_marginal_of_a_leader_equals_exhaustive_thinning() -> None:
    counts = np.array([[3, 2, 1], [0, 7, 0], [2, 2, 2]])
    weights = np.array([1.0, 2.0, 5.0])
    parts = sub_snapshots(counts, 3)
    mass = parts.probabilities * (weights / weights.sum())[parts.items]
    hits = [(mass[:, None] * (parts.snapshots == i)).sum(axis=0) for i in range(4)]

    others, leader = snapshot_marginal(counts, 3, weights=weights, leader=2)

    assert leader == pytest.approx([each[2] for each in hits])
    assert others == pytest.approx([each[:2].sum() for each in hits])
    assert others + leader == pytest.approx(snapshot_marginal(counts, 3, weights=weights))


def test_the_mean_from_the_marginal_is_the_mean_over_items() -> None:
    counts = leading_labels(300, 4, 5)
    estimator = led(counts, 5, "upper")

    found = estimator.mean(snapshot_marginal(counts, 5, leader=1))

    assert found == pytest.approx(estimator(counts).mean())


@pytest.mark.parametrize(("k", "gained"), [(3, 0.15), (5, 0.05)])
def test_a_leader_brings_statistics_nearer_together(k: int, gained: float) -> None:
    """Of a known distribution, the means above and below it are what labels leave open."""
    counts = leading_labels(4000, 10, k)
    width = {}
    for leader in (None, 1):
        reference = snapshot_marginal(counts, k, leader=leader)
        upper, lower = (
            bernstein_estimator(
                "shannon", k, 10, side=side, reference=reference, n_items=1e6, leader=leader
            )(counts).mean()
            for side in SIDES
        )
        width[leader] = upper - lower

    assert width[1] < (1 - gained) * width[None]


def test_the_class_that_leads_is_found_among_advisers() -> None:
    sample = Sample(leading_labels(400, 5, 3), np.ones(400))

    known = advise(sample, (3,), n_classes=5, n_items=100, same_order=True)
    unknown = advise(sample, (3,), n_classes=5, n_items=100)

    assert {each.leader for each in known.estimators.values()} == {1}
    assert {each.leader for each in known.plain.values()} == {None}
    assert {each.leader for each in unknown.estimators.values()} == {None}


@pytest.mark.parametrize(("entropy", "side"), [("brier", "upper"), ("shannon", "minimax")])
def test_statistics_that_treat_all_classes_alike_have_no_leader(entropy: str, side: Side) -> None:
    estimator = bernstein_estimator(entropy, 3, 4, side=side, leader=2)

    assert estimator is bernstein_estimator(entropy, 3, 4, side=side)


def test_wrong_leaders_and_references_are_refused() -> None:
    with pytest.raises(InputError, match=r"leader.*None for two classes.*got 1"):
        bernstein_estimator("shannon", 3, 2, side="upper", leader=1)
    with pytest.raises(InputError, match=r"leader.*from 0 to 3"):
        snapshot_marginal([[1, 1, 1, 0]], 2, leader=4)
    for reference in ([1, 1, 1, 1], np.ones((3, 4)), np.ones((2, 3))):
        with pytest.raises(InputError, match=r"reference.*shape \(2, 4\)"):
            bernstein_estimator("shannon", 3, 4, side="upper", leader=1, reference=reference)
    with pytest.raises(InputError, match=r"reference.*sum to 3"):
        bernstein_estimator("shannon", 3, 4, side="upper", leader=1, reference=np.ones((2, 4)))
