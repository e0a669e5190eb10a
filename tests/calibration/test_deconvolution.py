"""Deconvolution: the mixture behind few labels per item, against references and known truths."""

import tracemalloc
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, sparse, special
from scipy.linalg import block_diag

from hocal.calibration.by_cell import deconvolution, pool, pool_atoms, tilts
from hocal.calibration.by_cell.deconvolution import Deconvolution, deconvolve
from hocal.calibration.by_cell.pool import fit_pool
from hocal.calibration.by_cell.pool_atoms import N_LEADING
from hocal.calibration.by_cell.tilts import _Objective

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


def entropy(p: Array) -> Array:
    return np.asarray(special.entr(p).sum(axis=-1))


def fit_one_cell(labels: IntArray) -> Deconvolution:
    return deconvolve(labels, np.zeros(len(labels)), np.ones(len(labels)), group=[0], level=[0])


def aleatoric(fit: Deconvolution) -> Array:
    return np.asarray(fit.weights @ entropy(fit.atoms))


def draw_world(n_items: int, n_classes: int, totals: Any, seed: int = 0) -> dict[str, Any]:
    """Draw items of three groups by four levels; higher levels disagree less."""
    generator = np.random.default_rng(seed)
    cells = generator.integers(0, 11, n_items)  # cell 11 stays empty
    sharpness = np.array([1.0, 2.0, 4.0, 8.0])[cells % 4] / np.where(cells // 4 == 2, 2, 1)
    concentration = np.full((n_items, n_classes), 0.5)
    concentration[:, 0] += sharpness
    p = generator.standard_gamma(concentration)
    p /= p.sum(axis=1, keepdims=True)
    labels = generator.multinomial(generator.choice(totals, n_items), p)
    return {
        "p": p,
        "labels": labels,
        "cells": cells,
        "group": np.arange(12) // 4,
        "level": np.arange(12) % 4,
    }


def fit_world(world: dict[str, Any], rows: Any = slice(None), **options: Any) -> Deconvolution:
    labels, cells = world["labels"][rows], world["cells"][rows]
    return deconvolve(
        labels, cells, np.ones(len(cells)), group=world["group"], level=world["level"], **options
    )


def cell_means(values: Array, cells: NDArray[np.intp]) -> Array:
    return np.asarray(np.bincount(cells, values, minlength=11) / np.bincount(cells, minlength=11))


def draw_problem(n_rows: int, k: int, n_atoms: int = 400) -> tuple[Array, Array]:
    """Return likelihoods of drawn k-snapshots under random atoms, and frequencies."""
    generator = np.random.default_rng(0)
    labels = generator.multinomial(k, generator.dirichlet([2.0, 1.0, 0.5], size=n_rows))
    logs = labels @ np.log(generator.dirichlet([1.0, 1.0, 1.0], size=n_atoms)).T
    return np.exp(logs - logs.max(axis=1, keepdims=True)), generator.integers(1, 50, n_rows).astype(
        np.float64
    )


def slope(weights: Array, likelihood: Array, frequency: Array, prior: float) -> Array:
    """Return the gain an item of moving weight to each atom, which at the maximum is 0 for all."""
    gradient = (frequency / (likelihood @ weights)) @ likelihood + prior / len(weights) / weights
    return np.asarray(gradient / (frequency.sum() + prior) - 1)


@pytest.fixture
def problem() -> tuple[Array, Array]:
    """Return the likelihood of 66 snapshots of ten labels under 40 atoms, and their frequencies."""
    generator = np.random.default_rng(0)
    labels = generator.multinomial(10, generator.dirichlet([2.0, 1.0, 0.5], size=500))
    snapshots, frequency = np.unique(labels, axis=0, return_counts=True)
    atoms = generator.dirichlet([1.0, 1.0, 1.0], size=40)
    return np.exp(snapshots @ np.log(atoms).T), frequency.astype(np.float64)


def objective(weights: Array, likelihood: Array, frequency: Array, prior: float) -> float:
    return float(frequency @ np.log(likelihood @ weights) + prior * np.log(weights).mean())


def expectation_maximisation(
    likelihood: Array, frequency: Array, prior: float, steps: int
) -> Array:
    weights = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(steps):
        found = weights * ((frequency / (likelihood @ weights)) @ likelihood)
        weights = (found + prior / len(weights)) / (frequency.sum() + prior)
    return weights


def test_pool_of_disjoint_atoms_is_the_smoothed_frequency() -> None:
    """Each snapshot has its own atom, so w = (n + prior / n_atoms) / (sum n + prior)."""
    fit = fit_pool(np.eye(3), np.array([6.0, 3.0, 1.0]), prior=2.0)

    np.testing.assert_allclose(fit.weights, (np.array([6, 3, 1]) + 2 / 3) / 12, rtol=1e-6)


def test_pool_has_the_likelihood_that_many_steps_of_em_reach(problem: tuple[Array, Array]) -> None:
    slow = expectation_maximisation(*problem, prior=5.0, steps=20_000)

    fast = fit_pool(*problem, prior=5.0).weights

    assert objective(fast, *problem, 5.0) == pytest.approx(objective(slow, *problem, 5.0), abs=1e-6)


def test_pool_beats_a_general_convex_solver(problem: tuple[Array, Array]) -> None:
    def loss(logits: Array) -> float:
        return -objective(special.softmax(logits), *problem, 5.0)

    general = optimize.minimize(loss, np.zeros(40), method="L-BFGS-B", options={"maxfun": 100_000})

    assert objective(fit_pool(*problem, prior=5.0).weights, *problem, 5.0) >= -general.fun - 1e-6


def test_gap_bounds_the_distance_to_the_maximum(
    problem: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    best = objective(fit_pool(*problem, prior=5.0).weights, *problem, 5.0)
    monkeypatch.setattr(pool, "TOLERANCE", 1e-2)
    rough = fit_pool(*problem, prior=5.0)

    short = best - objective(rough.weights, *problem, 5.0)

    assert 1e-9 < short <= rough.gap * (problem[1].sum() + 5)


def test_gap_is_a_bound_where_the_steps_run_out(
    problem: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three steps from the start, still far from the maximum."""
    monkeypatch.setattr(pool, "MAX_STEPS", 3)
    rough = fit_pool(*problem, prior=5.0)
    monkeypatch.undo()

    best = fit_pool(*problem, prior=5.0)

    distance = objective(best.weights, *problem, 5.0) - objective(rough.weights, *problem, 5.0)
    assert rough.gap > 1e-6
    assert distance <= rough.gap * (problem[1].sum() + 5) + 1e-9


@pytest.mark.parametrize("n_rows", [1, 100, 300])
@pytest.mark.parametrize("k", [2, 50, 20_000])
@pytest.mark.parametrize("prior", [1e-6, 1.0, 1e6])
def test_no_atom_deserves_another_weight_than_it_has(n_rows: int, k: int, prior: float) -> None:
    """Few and many snapshots and labels, a prior that says nothing or everything."""
    problem = draw_problem(n_rows, k)

    fit = fit_pool(*problem, prior=prior)

    assert fit.weights.min() > 0
    np.testing.assert_allclose(slope(fit.weights, *problem, prior), 0, atol=1e-5)


def test_a_billion_items_are_no_problem() -> None:
    likelihood, frequency = draw_problem(200, 10)

    assert fit_pool(likelihood, 1e9 * frequency, prior=1.0).gap < 1e-9


def test_a_factor_of_a_row_of_the_likelihood_does_not_matter(problem: tuple[Array, Array]) -> None:
    likelihood, frequency = problem
    factors = 10.0 ** np.random.default_rng(1).integers(-50, 50, size=(len(likelihood), 1))

    first, second = (
        fit_pool(factor * likelihood, frequency, prior=5.0).weights for factor in (1, factors)
    )

    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_likelihood_of_the_tail_is_the_mean_over_the_ranks_it_may_lie_on() -> None:
    """Mass .3 on two of four tail ranks, for the tails (1, 2, 0, 0) and (3, 0, 0, 0)."""
    leading = np.full(N_LEADING, 0.7 / N_LEADING)
    atoms = [np.append(leading, 0.3), np.append(leading, 0.3)]
    dictionary = pool_atoms.Atoms(np.array(atoms), np.array([2.0, 1.0]), 4)
    labels = np.array([[1, 2, 0, 0], [3, 0, 0, 0]])
    snapshots = np.column_stack([np.zeros((2, N_LEADING), dtype=int), [3, 3], [2, 1]])

    found = pool_atoms.snapshot_likelihood(snapshots, dictionary)

    expected = np.zeros((2, 2))
    for atom, width in enumerate((2, 1)):
        for ranks in combinations(range(4), width):
            tail = np.where(np.isin(np.arange(4), ranks), 0.3 / width, 0.0)
            expected[:, atom] += (tail**labels).prod(axis=1) / comb(4, width)
    np.testing.assert_allclose(found, expected / expected.max(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize(("n_classes", "k"), [(2, 2), (3, 5), (10, 2), (10, 10), (40, 3)])
def test_the_gap_is_small(n_classes: int, k: int) -> None:
    assert 0 <= fit_world(draw_world(1000, n_classes, [k])).gap < 1e-5


def test_ambiguous_and_clear_items_with_the_same_mean_are_told_apart_by_two_labels() -> None:
    """The X-ray example: all scans ambiguous, or half clear yes and half clear no."""
    ambiguous = np.repeat([[2, 0], [1, 1], [0, 2]], [250, 500, 250], axis=0)
    clear = np.repeat([[2, 0], [0, 2]], 500, axis=0)

    found = [float(aleatoric(fit_one_cell(labels))[0]) for labels in (ambiguous, clear)]

    np.testing.assert_allclose(found, [np.log(2), 0], atol=0.03)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("k", [2, 5, 10])
def test_flat_dirichlet_truth_is_recovered(n_classes: int, k: int) -> None:
    """E[H(p)] for p ~ Dirichlet(1, ..., 1) is digamma(n_classes + 1) - digamma(2)."""
    generator = np.random.default_rng(1)
    labels = generator.multinomial(k, generator.dirichlet(np.ones(n_classes), size=4000))

    expected = special.digamma(n_classes + 1) - special.digamma(2)

    assert aleatoric(fit_one_cell(labels))[0] == pytest.approx(expected, abs=0.07)


def test_cells_are_estimated_better_than_by_plug_in() -> None:
    world = draw_world(3000, 4, [3])
    truth = cell_means(entropy(world["p"]), world["cells"])

    found = np.abs(aleatoric(fit_world(world))[:11] - truth).mean()

    plug_in = np.abs(cell_means(entropy(world["labels"] / 3), world["cells"]) - truth).mean()
    assert found < plug_in / 4


def test_ragged_totals_are_used_natively() -> None:
    world = draw_world(4000, 4, [1, 2, 3, 5, 8])
    truth = cell_means(entropy(world["p"]), world["cells"])

    np.testing.assert_allclose(aleatoric(fit_world(world))[:11], truth, atol=0.1)


def test_a_hundred_classes_are_estimated_from_five_labels() -> None:
    """Truth: mass .5 to 1 on the top class, the rest on one to four of 99 others."""
    generator = np.random.default_rng(2)
    p = np.zeros((2000, 100))
    p[:, 0] = generator.uniform(0.5, 1, 2000)
    for i, others in enumerate(generator.integers(1, 5, 2000)):
        p[i, 1 + generator.choice(99, others, replace=False)] = (1 - p[i, 0]) / others

    found = aleatoric(fit_one_cell(generator.multinomial(5, p)))[0]

    assert found == pytest.approx(entropy(p).mean(), abs=0.1)


def test_more_labels_than_atoms_can_underflow_are_no_problem() -> None:
    generator = np.random.default_rng(3)
    p = generator.dirichlet([0.5, 0.5, 0.5], size=300)

    found = aleatoric(fit_one_cell(generator.multinomial(1000, p)))[0]

    assert found == pytest.approx(entropy(p).mean(), abs=0.02)


def test_unanimous_labels_leave_almost_no_disagreement() -> None:
    assert aleatoric(fit_one_cell(np.tile([3, 0, 0, 0], (500, 1))))[0] < 0.02


def test_one_item_is_enough() -> None:
    assert np.isfinite(aleatoric(fit_one_cell(np.array([[1, 1]])))[0])


def test_weights_are_mixtures() -> None:
    fit = fit_world(draw_world(500, 5, [2, 4]))

    assert fit.weights.min() >= 0
    np.testing.assert_allclose(fit.weights.sum(axis=1), 1)
    np.testing.assert_allclose(fit.atoms.sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [11, 12, 13, 30])
def test_atoms_have_every_class_and_sum_to_one(n_classes: int) -> None:
    atoms = fit_world(draw_world(200, n_classes, [3])).atoms

    assert atoms.shape[1] == n_classes
    np.testing.assert_allclose(atoms.sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [3, 30])
def test_the_order_of_rows_does_not_matter(n_classes: int) -> None:
    world = draw_world(400, n_classes, [1, 2, 5])

    first, second = fit_world(world), fit_world(world, np.random.default_rng(4).permutation(400))

    assert np.array_equal(first.weights, second.weights)


def test_rounding_errors_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred small cells, solved to the optimum, so that all machines agree."""
    generator, level = np.random.default_rng(7), np.arange(100) % 10
    cells = generator.integers(0, 100, 1000)
    p = generator.standard_gamma(np.column_stack([1 + 2 * level[cells], np.full((1000, 3), 0.5)]))
    labels = generator.multinomial(3, p / p.sum(axis=1, keepdims=True))
    predicted = np.column_stack(
        [(level + 1) / 12, np.outer(1 - (level + 1) / 12, np.full(3, 1 / 3))]
    )
    likelihood = pool_atoms.snapshot_likelihood

    def fit(noise: float) -> Array:
        def rounded(*arguments: Any) -> Array:
            exact = likelihood(*arguments)
            return exact * (1 + noise * generator.normal(size=exact.shape))

        monkeypatch.setattr(deconvolution, "snapshot_likelihood", rounded)
        layout = {"group": np.arange(100) // 10, "level": level}
        return aleatoric(
            deconvolve(labels, cells, np.ones(1000), **layout, mean_prediction=predicted)
        )

    np.testing.assert_allclose(fit(1e-13), fit(0.0), atol=1e-8)


@pytest.mark.parametrize("block", [1, 40])
def test_cells_looked_at_together_do_not_affect_each_other(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = draw_world(500, 4, [3])
    together = fit_world(world)
    monkeypatch.setattr(tilts, "BLOCK", block)

    np.testing.assert_allclose(fit_world(world).weights, together.weights, atol=1e-9)


@pytest.fixture(params=["3x5", "5x3", "3x1", "1x3", "1x1", "15x4"])
def layout(request: pytest.FixtureRequest) -> list[NDArray[np.intp]]:
    """Return groups and levels of 15 cells; one for all, or one each, has no effect."""
    return [np.arange(15) % int(size) for size in request.param.split("x")]


@pytest.fixture(params=["predicted", "not predicted"])
def system(layout: list[NDArray[np.intp]], request: pytest.FixtureRequest) -> Any:
    """Return objective, design and precision of 15 cells, and the matrix of their effects."""
    generator, n_items = np.random.default_rng(0), np.arange(15.0)  # the first cell is empty
    mean = generator.dirichlet(np.ones(4), size=15) if request.param == "predicted" else None
    _, kind, design = tilts.make_design(layout[0], layout[1], mean, n_items)
    root = generator.normal(size=(15, 2, 2)) * n_items[:, None, None]
    curvature, precision = root @ root.transpose(0, 2, 1), generator.uniform(1, 9, len(kind) + 15)
    dense = np.kron(np.hstack([design.common, design.family.toarray(), np.eye(15)]), np.eye(2))
    whole = dense.T @ block_diag(*curvature) @ dense + np.diag(np.repeat(precision, 2))
    return (
        _Objective(0.0, generator.normal(size=(len(precision), 2)), curvature),
        design,
        precision,
        whole,
    )


def test_the_newton_step_is_that_of_a_dense_solve(system: Any) -> None:
    at, design, precision, whole = system

    found = tilts._newton_direction(at, design, precision)

    np.testing.assert_allclose(
        found.reshape(-1), np.linalg.solve(whole, at.gradient.reshape(-1)), atol=1e-10
    )


def test_the_posterior_variance_is_that_of_a_dense_inverse(system: Any) -> None:
    at, design, precision, whole = system

    found = tilts._posterior_variance(at.curvature, design, precision)

    np.testing.assert_allclose(
        found, np.diag(np.linalg.inv(whole)).reshape(-1, 2).sum(axis=1), atol=1e-10
    )


def draw_many_groups(n_items: int = 900) -> dict[str, Any]:
    """Draw items of 300 groups by three levels; most cells have one item or none."""
    generator = np.random.default_rng(8)
    cells = generator.integers(0, 900, n_items)
    p = generator.standard_gamma(
        np.column_stack([1 + 3.0 * (cells % 3), np.full((n_items, 3), 0.5)])
    )
    labels = generator.multinomial(4, p / p.sum(axis=1, keepdims=True))
    return {
        "labels": labels,
        "cells": cells,
        "group": np.arange(900) // 3,
        "level": np.arange(900) % 3,
    }


def test_the_order_of_three_hundred_groups_does_not_matter() -> None:
    world = draw_many_groups()
    first = fit_world(world)
    world["group"] = np.random.default_rng(9).permutation(300)[world["group"]]

    np.testing.assert_allclose(fit_world(world).weights, first.weights, atol=1e-8)


def test_groups_and_levels_may_change_places() -> None:
    world = draw_many_groups()
    turned = world | {"group": world["level"], "level": world["group"]}

    first, second = fit_world(world), fit_world(turned)

    np.testing.assert_allclose(second.weights, first.weights, atol=1e-8)
    assert second.scales["level"] == pytest.approx(first.scales["group"])


def test_one_group_for_all_cells_or_one_for_each_has_no_effects() -> None:
    world = draw_world(200, 3, [2])
    layouts = [
        (np.zeros(12), np.arange(12)),
        (np.arange(12), world["level"]),
        (world["level"], np.zeros(12)),
    ]

    found = [
        list(fit_world(world | {"group": group, "level": level}).scales) for group, level in layouts
    ]

    assert found == [["cell"], ["level", "cell"], ["group", "cell"]]


def test_a_thousand_groups_take_little_memory() -> None:
    """A dense column for each of 1,000 groups of 10,000 cells would take 80 MB."""
    group, level = np.divmod(np.arange(10_000), 10)
    tracemalloc.start()
    tilts.make_design(group, level, None, np.ones(10_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 10e6


def test_multiplicity_means_repetition() -> None:
    rows, cells, times = [[2, 0], [1, 1], [1, 1]], [0, 0, 1], [5, 3, 2]
    repeated = np.repeat(rows, times, axis=0), np.repeat(cells, times), np.ones(10)

    first = deconvolve(rows, cells, times, group=[0, 0], level=[0, 1])
    second = deconvolve(*repeated, group=[0, 0], level=[0, 1])

    assert np.array_equal(first.weights, second.weights)


@pytest.mark.parametrize("n_classes", [4, 40])
def test_sparse_counts_give_the_same_as_dense_ones(n_classes: int) -> None:
    world = draw_world(300, n_classes, [1, 4])
    dense = fit_world(world)
    world["labels"] = sparse.csr_array(world["labels"])

    cells = {"group": world["group"], "level": world["level"]}
    thin = deconvolve(world["labels"], world["cells"], np.ones(300), **cells)

    assert np.array_equal(dense.weights, thin.weights)


def test_an_empty_cell_lies_between_its_relatives() -> None:
    """Cell 11 is in the group that disagrees most and the level that disagrees least."""
    fit = fit_world(draw_world(5000, 4, [5]))
    found = aleatoric(fit)

    assert fit.source[11] == "neighbours"
    assert found[3] < found[11] < found[8]


def test_a_cell_without_relatives_gets_the_pool() -> None:
    labels = np.repeat([[2, 0], [1, 1]], 50, axis=0)

    fit = deconvolve(labels, np.zeros(100), np.ones(100), group=[0, 1], level=[0, 1])

    assert fit.source.tolist() == ["cell", "pool"]
    np.testing.assert_allclose(
        fit.weights[1] @ entropy(fit.atoms), fit.pool @ entropy(fit.atoms), atol=1e-3
    )


def test_cells_average_to_the_pool() -> None:
    world = draw_world(1000, 4, [2])
    fit = fit_world(world)

    assert aleatoric(fit)[world["cells"]].mean() == pytest.approx(
        fit.pool @ entropy(fit.atoms), abs=1e-5
    )


def test_equal_cells_are_shrunk_together() -> None:
    """Without differences between cells, scales are small and estimates nearly equal."""
    world = draw_world(600, 3, [3])
    world["cells"] = np.random.default_rng(5).integers(0, 12, 600)
    fit = fit_world(world)

    assert max(fit.scales.values()) < 0.3
    assert np.ptp(aleatoric(fit)) < 0.1


def test_cells_with_many_items_are_hardly_shrunk() -> None:
    world = draw_world(30_000, 3, [10])
    truth = cell_means(entropy(world["p"]), world["cells"])

    np.testing.assert_allclose(aleatoric(fit_world(world))[:11], truth, atol=0.03)


def test_what_the_model_predicts_helps_cells_with_few_items() -> None:
    """Forty cells of seven items whose disagreement follows the model's confidence."""
    generator = np.random.default_rng(6)
    cells = np.repeat(np.arange(40), 7)
    confidence = np.linspace(0.4, 0.98, 40)
    p = generator.beta(10 * confidence[cells], 10 * (1 - confidence[cells]))
    labels = generator.multinomial(2, np.column_stack([p, 1 - p]))
    layout = {"group": np.zeros(40), "level": np.arange(40)}
    truth = np.bincount(cells, entropy(np.column_stack([p, 1 - p]))) / 7
    predicted = np.column_stack([confidence, 1 - confidence])

    errors = [
        np.abs(
            aleatoric(deconvolve(labels, cells, np.ones(280), **layout, mean_prediction=mean))
            - truth
        ).mean()
        for mean in (predicted, None)
    ]

    assert errors[0] < 0.9 * errors[1]


def test_held_out_labels_are_likelier_than_under_the_empirical_mixture() -> None:
    world, k = draw_world(4000, 4, [3]), 3
    train, test = np.arange(4000) < 2000, np.arange(4000) >= 2000
    fit = fit_world(world, train)

    def score(atoms: Array, weights: Array) -> float:
        likelihood = np.exp(world["labels"][test] @ np.log(atoms).T)
        return float(np.log((likelihood * weights[world["cells"][test]]).sum(axis=1)).mean())

    snapshots, member = np.unique(world["labels"][train], axis=0, return_inverse=True)
    shares = np.zeros((12, len(snapshots)))
    np.add.at(shares, (world["cells"][train], member), 1)
    shares[:11] /= shares[:11].sum(axis=1, keepdims=True)
    empirical = max(
        score((snapshots / k * (1 - e)) + e / 4, shares) for e in (0.01, 0.03, 0.1, 0.3)
    )
    assert score(fit.atoms, fit.weights) > empirical


def test_thinning_many_distinct_snapshots_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    world = draw_world(3000, 4, [8])  # 163 distinct snapshots
    full = aleatoric(fit_world(world))
    monkeypatch.setattr(pool, "MAX_POOL_ROWS", 120)

    np.testing.assert_allclose(aleatoric(fit_world(world)), full, atol=0.05)


def test_a_negative_multiplicity_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`multiplicity` must be non-negative, got -1 in row 0"):
        deconvolve([[1, 1]], [0], [-1], group=[0], level=[0])


@pytest.mark.parametrize("n_classes", [20, 100])
def test_the_mean_over_the_tail_is_that_of_the_labels(n_classes: int) -> None:
    """Every rank beyond the leading ones gets its share, not a few of them all of it."""
    generator = np.random.default_rng(9)
    concentration = 3 / np.arange(1, n_classes + 1)
    p = generator.dirichlet(concentration, size=3000)

    fit = fit_one_cell(generator.multinomial(3, p))

    tail = (fit.weights @ fit.atoms)[0, N_LEADING:]
    assert np.abs(tail - p.mean(axis=0)[N_LEADING:]).sum() < 0.15 * tail.sum()


def test_lapses_are_found_with_enough_labels() -> None:
    """Every item is clear, but a tenth of the labels is given blindly: H = .545 for ten classes."""
    generator = np.random.default_rng(10)
    p = np.full((10_000, 10), 0.1 / 9)
    p[np.arange(10_000), generator.integers(0, 10, 10_000)] = 0.9

    found = aleatoric(fit_one_cell(generator.multinomial(5, p)))[0]

    assert found == pytest.approx(entropy(p)[0], abs=0.06)
