"""Mixtures of items: means, order of rows, worlds of known truth, items of the fit."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

import hocal
from hocal._base.errors import InputError
from hocal._base.fingerprints import balanced_folds, fingerprint
from hocal._base.saved_arrays import SavedArrays
from hocal._base.typing import Array, Index, IntArray
from hocal.calibration.by_item.fitting import fit_items
from hocal.calibration.by_item.mixtures import ItemMixtures
from hocal.calibration.by_item.model import ItemModel, Items
from hocal.calibration.by_item.top_shares import top_shares
from hocal.calibration.first_order.recalibration import fit_recalibration
from hocal.datasets import make_mixture_world

N_FOLDS = 5


class World(NamedTuple):
    """Items, what is known of them, and their true label distributions."""

    members: Array  #: (n_items, n_members, n_classes)
    features: Array | None
    truth: Array  #: (n_items, n_classes)

    def take(self, rows: Any) -> "World":
        """Return some of the items."""
        features = None if self.features is None else self.features[rows]
        return World(self.members[rows], features, self.truth[rows])


class Fitted(NamedTuple):
    """A model, and how it was fitted."""

    model: ItemModel
    folds: Index
    partition: Any

    def predict(self, world: World) -> ItemMixtures:
        """Return the mixtures of fresh items."""
        cells = self.partition.assign(mean_of(world.members))
        return self.model.predict(world.members, world.features, cells)

    def predict_fitted(self, world: World) -> ItemMixtures:
        """Return the mixtures of items of the fit."""
        cells = self.partition.assign(mean_of(world.members))
        return self.model.predict_without(self.folds, world.members, world.features, cells)


def mean_of(members: Array) -> Array:
    mean = members.mean(axis=1)
    return np.asarray(mean / mean.sum(axis=1, keepdims=True))


def draw(truth: Array, k: Any, seed: int = 0) -> IntArray:
    shares = truth / truth.sum(axis=1, keepdims=True)
    return np.random.default_rng(seed).multinomial(k, shares)


def level_of(members: Array, counts: Any) -> tuple[Array, Any]:
    """Return Brier and Shannon uncertainty of cells, (n_cells, 2), and the partition."""
    calibrator = hocal.SnapshotCalibrator(method="cells").fit(mean_of(members), counts)
    mixtures = calibrator.cell_mixtures_
    parts = [hocal.decompose(mixtures, entropy=name).aleatoric for name in ("brier", "shannon")]
    return np.stack(parts, axis=1), calibrator.partition_


def learn(items: Items, counts: Any, levels: Array, folds: Index) -> ItemModel:
    """Recalibrate, and learn the mixtures."""
    first = fit_recalibration(items.members, counts, items.features, folds)
    return fit_items(items, counts, first, levels, folds)


def fit(world: World, counts: Any, *, folds: Index | None = None) -> Fitted:
    """Fit, with levels of cells of their own for folds that are given."""
    members = world.members
    level, partition = level_of(members, counts)
    levels = [level] * (1 + N_FOLDS)
    if folds is None:
        folds = balanced_folds(fingerprint(members, counts), N_FOLDS)
    else:
        rows = [np.flatnonzero(folds != fold) for fold in range(N_FOLDS)]
        levels[1:] = [level_of(members[some], counts[some])[0] for some in rows]
    cells = partition.assign(mean_of(members))
    model = learn(Items(members, world.features, cells), counts, np.stack(levels), folds)
    return Fitted(model, folds, partition)


def dirichlet_world(n_items: int, n_classes: int, precision: float = 6.0, seed: int = 0) -> World:
    """Label distributions that vary around the prediction."""
    rng = np.random.default_rng(seed)
    predictions = rng.dirichlet(np.full(n_classes, 0.5), n_items) + 1e-4
    predictions /= predictions.sum(axis=1, keepdims=True)
    gammas = rng.gamma(precision * predictions) + 1e-12
    return World(predictions[:, None], None, gammas / gammas.sum(axis=1, keepdims=True))


def entropy(p: Array) -> Array:
    return np.asarray(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=1))


def explained(predicted: Array, truth: Array) -> float:
    """R2 of predicted Brier uncertainty."""
    actual = 1 - (truth**2).sum(axis=1)
    return float(1 - ((actual - predicted) ** 2).mean() / actual.var())


@cache
def small() -> tuple[World, IntArray, Fitted]:
    world = dirichlet_world(800, 4)
    counts = draw(world.truth, 3)
    folds = np.asarray(balanced_folds(fingerprint(world.members, counts), N_FOLDS))
    return world, counts, fit(world, counts, folds=folds)


def test_the_mean_of_the_components_is_the_prediction() -> None:
    world, _, fitted = small()
    mixtures = fitted.predict(world)
    top = top_shares(mixtures.prediction)

    means = (mixtures.weights * top.outside_by_component()).sum(axis=1)

    np.testing.assert_allclose(means, top.outside, atol=5e-6)


def test_weights_sum_to_one() -> None:
    world, _, fitted = small()
    mixtures = fitted.predict(world)

    np.testing.assert_allclose(mixtures.weights.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(mixtures.split_weights.sum(axis=1), 1, atol=1e-5)


def test_the_order_of_rows_does_not_matter() -> None:
    world, counts, fitted = small()
    shuffled = np.random.default_rng(1).permutation(len(counts))
    again = fit(world.take(shuffled), counts[shuffled], folds=fitted.folds[shuffled])
    arrays = again.model.arrays()

    for name, array in fitted.model.arrays().items():
        expected = array[:, shuffled] if name == "out_of_fold" else array
        np.testing.assert_array_equal(arrays[name], expected, err_msg=name)


def test_sparse_counts_are_as_good_as_dense_ones() -> None:
    world, counts, fitted = small()
    again = fit(world, sparse.csr_array(counts), folds=fitted.folds)

    np.testing.assert_array_equal(again.model.anchors, fitted.model.anchors)


def test_items_may_have_different_numbers_of_labels() -> None:
    world = dirichlet_world(600, 3)
    counts = draw(world.truth, np.arange(600) % 5 + 1)
    aleatoric = fit(world, counts).predict(world).aleatoric()

    assert aleatoric.mean() == pytest.approx(entropy(world.truth).mean(), abs=0.06)


def test_two_classes_are_enough() -> None:
    world = dirichlet_world(1500, 2)
    mixtures = fit(world, draw(world.truth, 3)).predict(world)

    assert mixtures.aleatoric().mean() == pytest.approx(entropy(world.truth).mean(), abs=0.05)


def test_one_label_per_item_leaves_the_level_to_the_prior() -> None:
    world = dirichlet_world(500, 3)
    unknown = np.full((1 + N_FOLDS, 1, 2), np.nan)
    cells = np.zeros(500, dtype=np.intp)
    folds = np.arange(500) % N_FOLDS
    model = learn(Items(world.members, None, cells), draw(world.truth, 1), unknown, folds)
    mixtures = model.predict(world.members, None, cells)
    aleatoric = mixtures.aleatoric()

    assert np.isfinite(aleatoric).all()
    assert (aleatoric < entropy(mixtures.mean()) + 1e-6).all()


@pytest.mark.parametrize("n_classes", [3, 10, 20])
def test_uncertainties_are_right_on_average_where_labels_vary_around_predictions(
    n_classes: int,
) -> None:
    world = dirichlet_world(2500, n_classes)
    mixtures = fit(world, draw(world.truth, 3)).predict(world)
    aleatoric = mixtures.aleatoric().mean()
    predictive = entropy(mixtures.mean()).mean()
    true_predictive = entropy(world.members[:, 0]).mean()  # predictions are the truth's mean

    assert aleatoric == pytest.approx(entropy(world.truth).mean(), abs=0.05)
    assert predictive == pytest.approx(true_predictive, abs=0.05)


def test_uncertainties_are_right_where_a_model_takes_classes_for_one_another() -> None:
    rng = np.random.default_rng(0)
    certain = rng.uniform(0.6, 0.99, size=(1500, 1))
    own = np.eye(14)[rng.integers(14, size=1500)]
    mean = certain * own + (1 - certain) * (1 - own) / 13
    truth = np.stack([rng.dirichlet(8 * row) for row in mean])
    said = mean[:, [1, 0, 3, 2, 5, 4, *range(6, 14)]]
    calibrator = hocal.SnapshotCalibrator().fit(said, draw(truth, 5))
    aleatoric = calibrator.decompose(said).aleatoric.mean()

    assert aleatoric == pytest.approx(entropy(truth).mean(), abs=0.04)  # by said ranks .05 more


def log_loss(mean: Array, truth: Array) -> float:
    """Return what is expected over labels, in nats."""
    return float(-(truth * np.log(mean)).sum(axis=1).mean())


def test_the_mean_is_right_where_a_model_exchanges_the_names_of_all_classes() -> None:
    """No temperature tells which floor of the logarithms is best there: the matrix must say it."""
    world = dirichlet_world(2000, 5)
    sure = world.members**3
    sure /= sure.sum(axis=2, keepdims=True)
    named = world._replace(members=np.roll(sure, 1, axis=2))
    mean = fit(named, draw(world.truth, 2)).predict(named).mean()
    best = log_loss(world.members[:, 0], world.truth)  # predictions are the mean of the truth

    assert log_loss(mean, world.truth) == pytest.approx(best, rel=0.02)


@pytest.mark.parametrize("n_classes", [3, 10, 20])
def test_items_follow_the_levels_of_their_cells(n_classes: int) -> None:
    """Three labels leave the level open where people lapse; the cells' levels settle it."""
    made = make_mixture_world(2500, n_classes, n_cells=8, random_state=0)
    truth = made.label_distributions
    members = made.predictions[:, None]
    measures = ("brier", "shannon")
    level = [hocal.decompose(made.mixtures, entropy=name).aleatoric for name in measures]
    first = np.unique(made.cells, return_index=True)[1]
    levels = np.tile(np.stack(level, axis=1)[first], (1 + N_FOLDS, 1, 1))
    folds = np.arange(2500) % N_FOLDS
    model = learn(Items(members, None, made.cells), draw(truth, 3), levels, folds)
    mixtures = model.predict(members, None, made.cells)
    aleatoric = mixtures.aleatoric().mean()
    epistemic = entropy(mixtures.mean()).mean() - aleatoric
    true_aleatoric = entropy(truth).mean()

    assert aleatoric == pytest.approx(true_aleatoric, abs=0.05)
    assert epistemic == pytest.approx(entropy(members[:, 0]).mean() - true_aleatoric, abs=0.05)


def test_atoms_are_as_uncertain_as_the_closed_form_where_they_hardly_reach_so_far() -> None:
    """People are torn for certain, or of one mind: one component has nearly all weight."""
    rng = np.random.default_rng(0)
    torn = np.arange(600) % 2 == 0
    first = np.where(torn, 0.5, 0.7) + rng.uniform(-1e-3, 1e-3, 600)
    predictions = np.column_stack([first, 1 - first])
    one_mind = np.eye(2)[(rng.random(600) > 0.7).astype(int)]
    truth = np.where(torn[:, None], 0.5, one_mind)
    calibrator = hocal.SnapshotCalibrator().fit(predictions, rng.multinomial(6, truth))
    own = np.tile([2, 0], (600, 1))

    listed = hocal.decompose(calibrator.predict_mixture(predictions, counts=own)).aleatoric

    exact = calibrator.decompose(predictions, counts=own).aleatoric
    assert listed == pytest.approx(exact, abs=2e-3)


def test_items_beat_cells_where_the_whole_prediction_matters() -> None:
    world = dirichlet_world(2000, 6, precision=30.0)
    fresh = dirichlet_world(2000, 6, precision=30.0, seed=1)
    counts = draw(world.truth, 3)
    items = fit(world, counts).predict(fresh).aleatoric("brier")
    cells = hocal.SnapshotCalibrator(method="cells").fit(world.members[:, 0], counts)
    by_cell = cells.decompose(fresh.members[:, 0], entropy="brier").aleatoric

    assert explained(items, fresh.truth) > explained(by_cell, fresh.truth) + 0.05


def split_world(n_items: int, seed: int) -> tuple[World, Array]:
    """Predictions that say nothing about which items divide people, and a number that does."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n_items) < 0.5
    certain = np.eye(3)[rng.integers(3, size=n_items)]
    truth = np.where(hard[:, None], 1 / 3, 0.97 * certain + 0.01)
    even = rng.dirichlet(np.full(3, 200.0), n_items)
    return World(even[:, None], None, truth), hard.astype(float)


def test_features_help_where_they_know_who_divides_people() -> None:
    world, hard = split_world(1500, 0)
    fresh, fresh_hard = split_world(1500, 1)
    counts = draw(world.truth, 3)
    without = fit(world, counts).predict(fresh).aleatoric("brier")
    seeing = fit(world._replace(features=hard[:, None]), counts)
    informed = seeing.predict(fresh._replace(features=fresh_hard[:, None])).aleatoric("brier")

    assert explained(without, fresh.truth) < 0.1
    assert explained(informed, fresh.truth) > 0.8


def test_units_and_origins_of_features_change_nothing() -> None:
    world, hard = split_world(300, 0)
    counts = draw(world.truth, 3)
    noisy = hard[:, None] + np.random.default_rng(2).normal(0, 0.3, (300, 2))
    features = np.round(noisy * 2**20) / 2**20  # which an offset leaves exact
    plain = world._replace(features=features)
    moved = world._replace(features=features * [1e-12, 1.0] + [1e-9, 1e6])

    expected = fit(plain, counts).predict(plain)
    found = fit(moved, counts).predict(moved)

    np.testing.assert_allclose(found.mean(), expected.mean(), atol=1e-6)
    np.testing.assert_allclose(found.aleatoric(), expected.aleatoric(), atol=1e-6)


def disagreeing(world: World, hard: Array, seed: int) -> World:
    """Add members that scatter more where people divide, and have the same mean."""
    rng = np.random.default_rng(seed)
    scatter = (0.05 + 0.25 * hard)[:, None] * rng.normal(size=(len(hard), 3))
    scatter -= scatter.mean(axis=1, keepdims=True)
    moved = np.clip(scatter, -0.3, 0.3)
    mean = world.members[:, 0]
    members = np.stack([mean + moved, mean - moved, mean], axis=1)
    members = np.maximum(members, 0.01)
    return world._replace(members=members / members.sum(axis=2, keepdims=True))


def test_members_help_where_their_scatter_knows_who_divides_people() -> None:
    world, hard = split_world(1500, 0)
    fresh, fresh_hard = split_world(1500, 1)
    fitted = fit(disagreeing(world, hard, 2), draw(world.truth, 3))
    informed = fitted.predict(disagreeing(fresh, fresh_hard, 3)).aleatoric("brier")

    assert explained(informed, fresh.truth) > 0.3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_members_that_are_the_same_say_what_one_of_them_says(n_classes: int) -> None:
    """Their scatter is rounding, which differs between the fit and what is predicted later."""
    world = dirichlet_world(400, n_classes)
    fresh = dirichlet_world(600, n_classes, seed=1)
    counts = draw(world.truth, 3)
    one, same = (
        fit(world._replace(members=np.repeat(world.members, number, axis=1)), counts).predict(
            fresh._replace(members=np.repeat(fresh.members, number, axis=1))
        )
        for number in (1, 5)
    )

    loss = log_loss(one.mean(), fresh.truth)
    assert log_loss(same.mean(), fresh.truth) == pytest.approx(loss, rel=0.01)
    assert same.aleatoric().mean() == pytest.approx(one.aleatoric().mean(), rel=0.02)


@pytest.mark.slow
def test_own_labels_count_once_for_items_of_the_fit() -> None:
    """Given their own labels, items of the fit are as well calibrated as fresh ones."""
    gaps = []
    for seed in range(3):
        world = dirichlet_world(1000, 4, seed=seed)
        fresh = dirichlet_world(1000, 4, seed=seed + 100)
        counts = draw(world.truth, 2, seed)
        fitted = fit(world, counts, folds=np.arange(1000) % N_FOLDS)
        own = fitted.predict_fitted(world).condition(counts).aleatoric("brier")
        other = fitted.predict(fresh).condition(draw(fresh.truth, 2, seed)).aleatoric("brier")
        gaps.append([explained(own, world.truth), explained(other, fresh.truth)])
    of_fit, of_fresh = np.mean(gaps, axis=0)

    assert of_fit == pytest.approx(of_fresh, abs=0.03)


def test_uncertainties_kept_are_those_without_the_fold() -> None:
    world, _, fitted = small()
    mixtures = fitted.predict_fitted(world)
    kept = fitted.model.out_of_fold

    np.testing.assert_allclose(kept[0], mixtures.aleatoric(), atol=1e-4)
    np.testing.assert_allclose(kept.sum(axis=0), entropy(mixtures.mean()), atol=1e-4)


def test_an_items_own_labels_do_not_move_its_mixture_without_its_fold() -> None:
    """Recalibration, weights and shifts without a fold see its labels through few numbers only."""
    world, counts, fitted = small()
    inside = fitted.folds == 0
    other = counts.copy()
    other[inside] = draw(world.truth[inside], 3, seed=9)
    again = fit(world, other, folds=fitted.folds)
    before = fitted.predict_fitted(world).aleatoric()[inside]
    after = again.predict_fitted(world).aleatoric()[inside]

    assert np.abs(after - before).mean() < 0.02


def test_arrays_make_the_model_again() -> None:
    world, _, fitted = small()
    again = ItemModel.from_arrays(SavedArrays(fitted.model.arrays()))
    mixtures = Fitted(again, fitted.folds, fitted.partition).predict(world)

    np.testing.assert_array_equal(mixtures.weights, fitted.predict(world).weights)


@pytest.mark.parametrize(
    "name", ["anchors", "weights.without", "coefficients", "columns.spread", "ways"]
)
def test_arrays_of_another_shape_are_refused(name: str) -> None:
    arrays = small()[2].model.arrays()
    arrays[name] = arrays[name][..., :-1]

    with pytest.raises(InputError, match=f"`{name}` must have shape"):
        ItemModel.from_arrays(SavedArrays(arrays))


def test_missing_arrays_are_named() -> None:
    arrays = small()[2].model.arrays()
    del arrays["split.final"]

    with pytest.raises(InputError, match=r"`split\.final` must be among the arrays"):
        ItemModel.from_arrays(SavedArrays(arrays))


def test_levels_of_another_shape_are_refused() -> None:
    world, counts, fitted = small()
    cells = np.zeros(len(counts), dtype=np.intp)

    with pytest.raises(InputError, match=r"`levels` must have shape \(6, n_cells, 2\)"):
        learn(Items(world.members, None, cells), counts, np.ones((5, 3, 2)), fitted.folds)
