"""Mixtures of single items: closed forms against enumeration, draws and atoms."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import softmax

import hocal
from hocal.calibration.by_item.components import (
    BEYOND_TOP,
    LAPSES,
    PRECISIONS,
    SPLIT_PRECISIONS,
)
from hocal.calibration.by_item.likeness import N_ALIKE, Likeness
from hocal.calibration.by_item.likeness import SHARES as ALIKE_SHARES
from hocal.calibration.by_item.mixtures import ItemMixtures
from hocal.calibration.by_item.top_shares import N_COMPONENTS, N_WHOLE, SHARE_PRECISION, top_shares
from hocal.uncertainty.entropy import Brier, Shannon
from hocal.uncertainty.snapshots import enumerate_snapshots


def tilted_weights(logits: np.ndarray, outside: np.ndarray, share: float) -> np.ndarray:
    """Return weights whose mean share outside the top class is given."""

    def gap(eta: float) -> float:
        return float(softmax(logits + eta * outside) @ outside - share)

    return np.asarray(softmax(logits + brentq(gap, -3000, 3000, xtol=1e-13) * outside))


def make_likeness(n_items: int, n_classes: int) -> Likeness:
    """Return a scale, and the same with its classes in another order."""
    place = np.arange(n_classes)
    near = np.exp(-np.abs(place[:, None] - place))
    other = np.random.default_rng(0).permutation(n_classes)
    return Likeness(np.stack([near, near[np.ix_(other, other)]]), np.arange(n_items) % 2)


def make_mixtures(
    n_items: int, n_classes: int, seed: int = 0, *, alike: bool = False
) -> ItemMixtures:
    """Return mixtures with random predictions and weights."""
    rng = np.random.default_rng(seed)
    prediction = rng.dirichlet(np.full(n_classes, 0.5), n_items) * 0.99 + 0.01 / n_classes
    top = top_shares(prediction)
    split_weights = rng.dirichlet(np.ones(len(BEYOND_TOP)), n_items)
    n_more = N_ALIKE if alike else 0
    outside = [top.outside_by_component(), np.repeat(top.outside[:, None], n_more, axis=1)]
    rows = zip(
        rng.normal(size=(n_items, N_COMPONENTS + n_more)),
        np.concatenate(outside, axis=1),
        top.outside,
        strict=True,
    )
    weights = np.stack([tilted_weights(*row) for row in rows])
    likeness = make_likeness(n_items, n_classes) if alike else None
    return ItemMixtures(prediction, split_weights, weights, likeness=likeness)


def relabel(mixtures: ItemMixtures, order: list[int]) -> ItemMixtures:
    """Return the same mixtures of classes in another order."""
    likeness = mixtures.likeness
    if likeness is not None:
        likeness = likeness._replace(matrices=likeness.matrices[:, order][:, :, order])
    prediction = mixtures.prediction[:, order]
    return dataclasses.replace(mixtures, prediction=prediction, likeness=likeness)


def draw_family(
    mean: np.ndarray, component: int, precisions: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw a label distribution from a component around a mean, the obvious way."""
    if component < len(precisions):
        shape = np.maximum(precisions[component] * mean, 1e-9)
        return rng.dirichlet(shape)
    lapse = LAPSES[component - len(precisions)]
    return lapse * mean + (1 - lapse) * np.eye(len(mean))[rng.choice(len(mean), p=mean)]


def chosen_by_likeness(likeness: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the distributions g_J of one item, by scaling rows and columns in turn."""
    flows = likeness * mean
    for _ in range(200):
        flows *= (mean / flows.sum(axis=1))[:, None]
        flows *= mean / flows.sum(axis=0)
    return np.asarray(flows / mean[:, None])


def draw_alike(mixtures: ItemMixtures, component: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the class J of the first item, and return its label distribution."""
    assert mixtures.likeness is not None
    mean = mixtures.prediction[0]
    kernel = chosen_by_likeness(mixtures.likeness.matrices[0], mean)
    certain = rng.choice(len(mean), p=mean)
    share = ALIKE_SHARES[component]
    return np.asarray(share * kernel[certain] + (1 - share) * np.eye(len(mean))[certain])


def draw_item(mixtures: ItemMixtures, rng: np.random.Generator) -> np.ndarray:
    """Draw a label distribution from the first item's mixture, the obvious way."""
    top = top_shares(mixtures.prediction[:1])
    component = rng.choice(mixtures.weights.shape[1], p=mixtures.weights[0])
    if component < N_WHOLE:
        return draw_family(top.prediction[0], component, PRECISIONS, rng)
    if component >= N_COMPONENTS:
        return draw_alike(mixtures, component - N_COMPONENTS, rng)
    share = top.shares[0, component - N_WHOLE]
    outside = rng.beta(SHARE_PRECISION * share, SHARE_PRECISION * (1 - share))
    part = rng.choice(len(BEYOND_TOP), p=mixtures.split_weights[0])
    point = outside * draw_family(top.split[0], part, SPLIT_PRECISIONS, rng)
    point[top.top[0]] += 1 - outside
    return point


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "scale"])
def mixtures(request: pytest.FixtureRequest) -> ItemMixtures:
    return make_mixtures(30, 4, alike=request.param)


@pytest.fixture(scope="module")
def counts(mixtures: ItemMixtures) -> np.ndarray:
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(rng.integers(0, 6, 30), mixtures.prediction)
    drawn[:3] = 0
    return drawn


def test_the_mean_before_labels_is_exactly_the_prediction(mixtures: ItemMixtures) -> None:
    assert np.array_equal(mixtures.mean(), mixtures.prediction)


def test_rows_without_labels_keep_their_mixture(mixtures: ItemMixtures, counts: np.ndarray) -> None:
    posterior = mixtures.condition(counts)

    assert np.array_equal(posterior.mean()[:3], mixtures.mean()[:3])
    for entropy in ("shannon", "brier"):
        before = mixtures.aleatoric(entropy)[:3]
        assert posterior.aleatoric(entropy)[:3] == pytest.approx(before, abs=1e-6)


@pytest.mark.parametrize("alike", [False, True])
def test_draws_have_the_uncertainty_and_mean_of_the_closed_form(alike: bool) -> None:
    """A slow obvious reference, weighted by the likelihood of three labels."""
    mixture = make_mixtures(1, 3, seed=5, alike=alike)
    seen = np.array([[2, 1, 0]])
    rng = np.random.default_rng(0)
    draws = np.stack([draw_item(mixture, rng) for _ in range(20_000)])
    likelihood = np.prod(draws**seen, axis=1)
    posterior = mixture.condition(seen)

    for entropy in (Shannon(), Brier()):
        values = entropy.value(draws)
        assert mixture.aleatoric(entropy)[0] == pytest.approx(values.mean(), abs=0.01)
        given = np.average(values, weights=likelihood)
        assert posterior.aleatoric(entropy)[0] == pytest.approx(given, abs=0.015)
    mean = np.average(draws, axis=0, weights=likelihood)
    assert posterior.mean()[0] == pytest.approx(mean, abs=0.015)
    chance = 3 * likelihood.mean()  # three orders
    assert np.exp(mixture.log_likelihood(seen))[0] == pytest.approx(chance, rel=0.04)


def test_conditioning_twice_is_conditioning_on_the_sum(
    mixtures: ItemMixtures, counts: np.ndarray
) -> None:
    more = np.roll(counts, 1, axis=0)
    twice = mixtures.condition(counts).condition(more)
    once = mixtures.condition(counts + more)

    assert twice.mean() == pytest.approx(once.mean(), abs=1e-12)
    assert twice.aleatoric() == pytest.approx(once.aleatoric(), abs=1e-12)


def test_likelihoods_multiply_over_batches_of_labels(
    mixtures: ItemMixtures, counts: np.ndarray
) -> None:
    """P(a then b) = P(a) P(b given a), with every multinomial coefficient taken out."""
    more = np.roll(counts, 1, axis=0)
    ways = hocal.uncertainty.snapshots.log_multiplicity
    parts = mixtures.log_likelihood(counts) - ways(counts)
    parts += mixtures.condition(counts).log_likelihood(more) - ways(more)

    whole = mixtures.log_likelihood(counts + more) - ways(counts + more)
    assert parts == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("alike", [False, True])
def test_probabilities_of_all_snapshots_sum_to_one(
    n_classes: int, labelled: bool, alike: bool
) -> None:
    snapshots = enumerate_snapshots(3, n_classes)
    item = make_mixtures(1, n_classes, alike=alike)[np.zeros(len(snapshots), dtype=int)]
    if labelled:
        item = item.condition(np.repeat(snapshots[1:2], len(snapshots), axis=0))

    assert np.exp(item.log_likelihood(snapshots)).sum() == pytest.approx(1)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("alike", [False, True])
def test_the_mean_given_labels_is_the_probability_of_the_next_label(
    n_classes: int, alike: bool
) -> None:
    item = make_mixtures(1, n_classes, alike=alike)[np.zeros(n_classes, dtype=int)]
    seen = np.zeros((n_classes, n_classes), dtype=int)
    seen[:, :2] = [1, 2]
    posterior = item.condition(seen)

    chances = np.exp(posterior.log_likelihood(np.eye(n_classes, dtype=int)))
    assert chances == pytest.approx(posterior.mean()[0], abs=1e-9)


def test_two_classes_have_uncertainties_of_one_share() -> None:
    """With two classes, Brier uncertainty is 2 E p(1 - p), twice a second moment of labels."""
    item = make_mixtures(5, 2)
    differ = np.exp(item.log_likelihood(np.ones((5, 2), dtype=int)))

    assert item.aleatoric("brier") == pytest.approx(differ, abs=1e-9)


def test_brier_uncertainty_is_the_chance_that_two_labels_differ(mixtures: ItemMixtures) -> None:
    pairs = enumerate_snapshots(2, 4)
    agree = np.zeros(len(mixtures))
    for pair in pairs[pairs.max(axis=1) == 2]:
        agree += np.exp(mixtures.log_likelihood(np.repeat(pair[None], len(mixtures), axis=0)))

    assert mixtures.aleatoric("brier") == pytest.approx(1 - agree, abs=1e-9)


def test_relabelling_classes_relabels_the_mean(mixtures: ItemMixtures, counts: np.ndarray) -> None:
    order = [2, 0, 3, 1]
    relabelled = relabel(mixtures, order)
    first = mixtures.condition(counts)
    second = relabelled.condition(counts[:, order])

    assert second.mean() == pytest.approx(first.mean()[:, order], abs=1e-12)
    assert second.aleatoric() == pytest.approx(first.aleatoric(), abs=1e-9)


def test_sparse_counts_give_the_same_as_dense_ones(
    mixtures: ItemMixtures, counts: np.ndarray
) -> None:
    packed = sparse.csr_array(counts)
    dense = mixtures.condition(counts)
    thin = mixtures.condition(packed)

    assert np.array_equal(mixtures.log_likelihood(packed), mixtures.log_likelihood(counts))
    assert np.array_equal(thin.mean(), dense.mean())
    assert np.array_equal(thin.aleatoric(), dense.aleatoric())
    both = thin.condition(counts).mean()
    assert both == pytest.approx(mixtures.condition(2 * counts).mean(), abs=1e-12)


def test_rows_are_the_mixtures_of_their_items(mixtures: ItemMixtures, counts: np.ndarray) -> None:
    posterior = mixtures.condition(counts)

    assert len(posterior[[5, 2]]) == 2
    assert posterior[[5, 2]].mean() == pytest.approx(posterior.mean()[[5, 2]], abs=1e-14)
    assert posterior[4].aleatoric() == pytest.approx(posterior.aleatoric()[[4]], abs=1e-12)


def test_shannon_uncertainty_takes_a_base(mixtures: ItemMixtures) -> None:
    assert mixtures.aleatoric(base=2) == pytest.approx(mixtures.aleatoric() / np.log(2))


def test_other_entropies_are_refused(mixtures: ItemMixtures) -> None:
    with pytest.raises(hocal.InputError, match=r"must be Shannon or Brier, .* to_mixtures"):
        mixtures.aleatoric("zero-one")


def test_counts_of_other_items_are_refused(mixtures: ItemMixtures) -> None:
    with pytest.raises(hocal.InputError, match="must describe the 30 items of the mixtures"):
        mixtures.condition(np.ones((2, 4), dtype=int))


def test_weights_of_another_shape_are_refused(mixtures: ItemMixtures) -> None:
    with pytest.raises(hocal.InputError, match=r"`weights` must have shape \(30, 31\)"):
        ItemMixtures(mixtures.prediction, mixtures.split_weights, mixtures.split_weights)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("entropy", ["shannon", "brier"])
@pytest.mark.parametrize("alike", [False, True])
def test_atoms_have_the_decomposition_of_the_closed_form(
    n_classes: int, entropy: str, alike: bool
) -> None:
    item_mixtures = make_mixtures(40, n_classes, alike=alike)
    parts = hocal.decompose(item_mixtures.to_mixtures(), entropy)
    whole = hocal.uncertainty.entropy.get_entropy(entropy).value(item_mixtures.mean())

    assert parts.aleatoric == pytest.approx(item_mixtures.aleatoric(entropy), abs=1e-6)
    assert parts.predictive == pytest.approx(whole, abs=1e-6)


def test_atoms_of_many_classes_have_the_uncertainty_of_the_closed_form() -> None:
    item_mixtures = make_mixtures(10, 60)
    mixtures = item_mixtures.to_mixtures()

    aleatoric = hocal.decompose(mixtures).aleatoric
    assert aleatoric == pytest.approx(item_mixtures.aleatoric(), abs=1e-6)
    assert np.abs(mixtures.mean() - item_mixtures.mean()).max() < 0.03


@pytest.mark.parametrize("alike", [False, True])
def test_atoms_given_labels_have_nearly_the_posterior_mean(alike: bool) -> None:
    item_mixtures = make_mixtures(200, 3, alike=alike)
    mixtures = item_mixtures.to_mixtures()
    labels = mixtures.draw(3, random_state=0)
    gap = mixtures.condition(labels).mean() - item_mixtures.condition(labels).mean()

    assert np.abs(gap).sum(axis=1).mean() < 0.02


def test_atoms_given_surprising_labels_have_nearly_the_posterior_mean() -> None:
    item_mixtures = make_mixtures(200, 3)
    labels = 3 * np.eye(3, dtype=int)[item_mixtures.prediction.argmin(axis=1)]
    posterior = item_mixtures.to_mixtures().condition(labels)
    gap = posterior.mean() - item_mixtures.condition(labels).mean()

    assert np.abs(gap).sum(axis=1).mean() < 0.06


def test_atoms_given_the_labels_seen_have_the_posterior_mean(
    mixtures: ItemMixtures, counts: np.ndarray
) -> None:
    posterior = mixtures.condition(counts)
    atoms = posterior.to_mixtures()

    assert atoms.mean() == pytest.approx(posterior.mean(), abs=1e-6)
    assert hocal.decompose(atoms).aleatoric == pytest.approx(posterior.aleatoric(), abs=1e-6)


def test_atoms_do_not_depend_on_the_neighbours(mixtures: ItemMixtures) -> None:
    alone = mixtures[[7]].to_mixtures()
    among = mixtures.to_mixtures()[[7]]

    assert among.mean() == pytest.approx(alone.mean(), abs=1e-9)
    assert among.moments(3) == pytest.approx(alone.moments(3), abs=1e-7)


def test_relabelling_classes_relabels_the_atoms(mixtures: ItemMixtures) -> None:
    order = [2, 0, 3, 1]
    relabelled = relabel(mixtures, order)
    first = mixtures.to_mixtures()
    second = relabelled.to_mixtures()

    assert second.points == pytest.approx(first.points[:, order], abs=1e-9)
    assert second.weights == pytest.approx(first.weights, abs=1e-6)


def test_atoms_beyond_memory_are_refused_with_a_number_of_items_that_fits() -> None:
    one = make_mixtures(1, 10)
    many = one[np.zeros(100_000, dtype=int)]

    with pytest.raises(hocal.InputError, match=r"List at most 83,333 items at a time"):
        many.to_mixtures()


@pytest.mark.parametrize(("n_classes", "near"), [(50, 0.01), (100, 0.02), (300, 0.1)])
def test_atoms_have_the_mean_of_the_closed_form_where_many_classes_are_as_likely(
    n_classes: int, near: float
) -> None:
    """A model that knows nothing: few atoms stand for hundreds of classes."""
    prediction = np.full((3, n_classes), 1 / n_classes)
    weights = np.zeros((3, N_COMPONENTS))
    weights[:, 3:6] = 1 / 3  # Dirichlets of precisions 2, 5 and 13
    n_split = len(BEYOND_TOP)
    split = np.full((3, n_split), 1 / n_split)
    closed = ItemMixtures(prediction, split, weights)

    listed = closed.to_mixtures()

    assert np.abs(listed.mean() - prediction).sum(axis=1).max() < near
    assert hocal.decompose(listed).aleatoric == pytest.approx(closed.aleatoric(), abs=1e-4)
