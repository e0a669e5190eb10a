"""The prior that labels alone give to items: Dirichlet distributions, their weights log-linear.

Few labels cannot tell mixtures apart in which two labels agree as often. The mixture with the
largest likelihood is then one of extremes: most items all alike and some clear, say, where in truth
all are somewhat torn; it claims majorities that are none. So the weights are an exponential family
(as in Efron's g-modeling): the logarithm of the weight of a component is

    base + a sum of parameters for its family, kind, class or pair, and level of disagreement,

where the base prefers moderate disagreement and each parameter has a normal prior around 0. What
labels tell moves the parameters; what they leave open stays moderate. Families are

- around the mean of all labels and around the middle: items that no star describes;
- stars: one class with a share of others, which are what people say instead of it;
- edges between the classes that are confused most often.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize, sparse, special

from hocal._base.typing import Array, Counts, Index, IntArray, Mask
from hocal._base.validation import label_totals
from hocal.calibration.by_cell.pool import sample_snapshots
from hocal.calibration.dirichlet_entropies import log_likelihoods
from hocal.calibration.labels_alone import (
    MANY_CLASSES,
    Confusion,
    count_confusion,
    place_edges,
    place_stars,
)
from hocal.uncertainty.distinct_counts import as_dense

__all__ = ["LabelMixture", "fit_label_mixture"]

# Shares of other labels of the stars, from next to none to a bare half, and how concentrated the
# items around a star are, from wherever to all alike.
SHARES = np.array([0.002, 0.02, 0.06, 0.15, 0.3, 0.5])
CONCENTRATIONS = np.array([1.0, 3.0, 10.0, 40.0, 400.0])
FEW_SHARES = np.array([0.002, 0.15, 0.5])  # with very many classes, to stay in memory
FEW_CONCENTRATIONS = np.array([3.0, 40.0])
EDGE_SHARES = np.array([0.2, 0.35, 0.5, 0.65, 0.8])
EDGE_CONCENTRATIONS = np.array([3.0, 12.0, 50.0, 400.0])
OFF_EDGE = 0.02  # share of other classes on an edge, in their frequency
MEAN_CONCENTRATIONS = np.array([0.3, 0.6, 1.2, 2.5, 5.0, 10.0, 20.0, 40.0, 100.0])
LEAST_SHARE = 1e-5  # of a component, for every class: no label is impossible

# Families, their shares in the base up to a factor (of edges, as much of it as confusion is between
# these classes), and where the base puts their levels: the log-odds that two labels of a component
# are drawn separately from the mean of all labels. That is five times in six around the mean, and
# half of the time on stars; edges may have any.
AROUND_MEAN, STAR, EDGE, MIDDLE = range(4)
ODDS = np.array([1.0, 0.3, 0.1, 0.3])
CENTRES = np.array([np.log(5), 0.0, 0.0, np.log(5)])
# Of the logistic distribution of levels; half as much changes little. With a normal, whose tails
# are short, clear items would seem torn.
SCALE = 0.35
LEAST_LEVEL = 0.001  # of the chance that is behind a level
MOST_LEVEL = 0.97
# Precisions of the parameters, in nats: practically free for families and levels, within a factor
# of two or three for kinds, classes and pairs. Half or twice as much changes next to nothing.
OF_FAMILIES = 0.3
OF_LEVELS = 0.3
OF_KINDS = 2.0
OF_CLASSES = 1.0
OF_CLASS_LEVELS = 4.0
OF_PAIRS = 1.0
LEAST_LEFT = 0.1  # of the curvature, without an item
MAX_STEPS = 300  # of L-BFGS, which takes 20 to 100
LOG_STRENGTHS = (0.0, np.log(1e4))  # of what is said instead of a class, in pairs of labels
MAX_PAIRS = 2_000_000  # that strengths are chosen by: 100 MB
STRENGTH_TOLERANCE = 0.05  # of its logarithm


class LabelMixture(NamedTuple):
    """A mixture of Dirichlet distributions."""

    parameters: Array  #: (n_components, n_classes)
    weights: Array  #: (n_components,)
    effects: sparse.csr_array  #: (n_components, n_effects) what logarithms of weights are linear in
    factor: Array  #: (n_effects, n_effects) Cholesky factor of the curvature of the fit

    @property
    def total(self) -> Array:
        """The sum of the parameters of each component."""
        return np.asarray(self.parameters.sum(axis=1))

    def without(self, given_labels: Array) -> Array:
        """Return the weights that a fit without an item of each row has, by one Newton step.

        Parameters
        ----------
        given_labels : ndarray of shape (n_rows, n_components)
            Weights given the labels of the item.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            The same weights for an item without labels, which had no part in the fit.
        """
        gradients = (given_labels - self.weights) @ self.effects
        steps = linalg.cho_solve((self.factor, True), gradients.T)
        leverage = np.einsum("re,er->r", gradients, steps)
        steps = steps / np.maximum(1 - leverage, LEAST_LEFT)
        change = np.exp(-(self.effects @ steps).T)
        changed = self.weights * change
        return np.asarray(changed / changed.sum(axis=1, keepdims=True))


class _Components(NamedTuple):
    """Dirichlet distributions, and what their weights have in common."""

    parameters: Array  #: (n_components, n_classes)
    family: Index  #: (n_components,)
    kind: Index  #: (n_components,) the same for stars of all classes with one shape
    member: Index  #: (n_components,) class of a star, pair of an edge, else 0

    def level(self, mean: Array) -> Array:
        """Return the log-odds that two labels are drawn separately from the mean."""
        totals = self.parameters.sum(axis=1)
        squares = ((self.parameters / totals[:, None]) ** 2).sum(axis=1)
        differ = totals / (totals + 1) * (1 - squares)
        alone = max(1 - float(mean @ mean), LEAST_LEVEL)
        return np.asarray(special.logit(np.clip(differ / alone, LEAST_LEVEL, MOST_LEVEL)))


def fit_label_mixture(snapshots: Counts, frequency: Array) -> LabelMixture:
    """Fit the mixture to distinct rows of counts; empty rows tell nothing."""
    labelled = np.flatnonzero(label_totals(snapshots))
    own, times = snapshots[labelled], frequency[labelled]
    rows, sampled = sample_snapshots(np.arange(len(labelled)), times)
    shown = as_dense(own[rows])
    confusion = _shrink(count_confusion(own, times), shown, sampled)
    components = _make_components(confusion)
    level = components.level(confusion.mean)
    logs = log_likelihoods(components.parameters)(shown)
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    base = _base(components, confusion, level)
    effects, precisions = _effects(components, level)
    weights = _fit_weights(likelihood, sampled, base, effects, precisions)
    factor = _factor(likelihood, sampled, weights, effects, precisions)
    return LabelMixture(components.parameters, weights, effects, factor)


def _make_components(confusion: Confusion) -> _Components:
    """Return the Dirichlet distributions, kind by kind."""
    n_classes = len(confusion.mean)
    few = n_classes > MANY_CLASSES
    shares = FEW_SHARES if few else SHARES
    stars = place_stars(shares, confusion.instead).reshape(len(shares), -1, n_classes)
    edges = place_edges(EDGE_SHARES, confusion.pairs)
    edges = (1 - OFF_EDGE) * edges + OFF_EDGE * confusion.mean
    edges = edges.reshape(len(EDGE_SHARES), -1, n_classes)
    middle = np.full(n_classes, 1 / n_classes)
    groups = [
        (AROUND_MEAN, confusion.mean[None, None], MEAN_CONCENTRATIONS),
        (STAR, stars, FEW_CONCENTRATIONS if few else CONCENTRATIONS),
        (EDGE, edges, EDGE_CONCENTRATIONS),
        (MIDDLE, middle[None, None], MEAN_CONCENTRATIONS),
    ]
    kinds = [
        (family, total * np.maximum(means, LEAST_SHARE))
        for family, shapes, totals in groups
        for means in shapes
        for total in totals
    ]
    sizes = [len(parameters) for _, parameters in kinds]
    return _Components(
        parameters=np.concatenate([parameters for _, parameters in kinds]),
        family=np.repeat([family for family, _ in kinds], sizes),
        kind=np.repeat(np.arange(len(kinds)), sizes),
        member=np.concatenate([np.arange(size) for size in sizes]),
    )


def _base(components: _Components, confusion: Confusion, level: Array) -> Array:
    """Return logarithms of weights where labels tell nothing: moderate levels, frequent classes."""
    away = (level - CENTRES[components.family]) / SCALE
    moderate = -2 * np.log(np.cosh(away / 2))  # the logistic density, up to a factor
    share = np.ones(len(level))
    star, edge = components.family == STAR, components.family == EDGE
    share[star] = confusion.mean[components.member[star]]
    pairs = _pair_shares(confusion)
    share[edge] = pairs[components.member[edge]]
    # Items on edges are torn: their level is that of the share, which may be any.
    base = np.log(share) + np.where(edge, 0.0, moderate)
    odds = ODDS * np.array([1.0, 1.0, pairs.sum(), 1.0])
    for family, part in enumerate(odds):
        own = components.family == family
        base[own] += np.log(part) - special.logsumexp(base[own])
    return np.asarray(base)


def _pair_shares(confusion: Confusion) -> Array:
    """Return how much of all confusion is between the classes of each edge."""
    n_classes = len(confusion.mean)
    ends = place_edges(np.array([0.5]), confusion.pairs) > 0
    said = confusion.mean[:, None] * confusion.instead
    both = (said + said.T) * (1 - np.eye(n_classes))
    shares = np.einsum("ej,jk,ek->e", ends, both, ends) / both.sum()
    return np.asarray(shares)


def _effects(components: _Components, level: Array) -> tuple[sparse.csr_array, Array]:
    """Return functions of components (n_components, n_effects), and precisions of their factors."""
    star, edge = components.family == STAR, components.family == EDGE
    every = np.ones(len(level), dtype=bool)
    slope = sparse.dia_array(((level[None] - 1) / 2, 0), shape=(len(level), len(level)))
    of_classes = _indicators(components.member, star)
    groups = [
        (_indicators(components.family, every), OF_FAMILIES),
        (slope @ _indicators(star.astype(np.intp), every), OF_LEVELS),
        (_indicators(components.kind, every), OF_KINDS),
        (of_classes, OF_CLASSES),
        (slope @ of_classes, OF_CLASS_LEVELS),
        (_indicators(components.member, edge), OF_PAIRS),
    ]
    precisions = np.concatenate([np.full(part.shape[1], value) for part, value in groups])
    return sparse.csr_array(sparse.hstack([part for part, _ in groups])), precisions


def _indicators(numbers: Index, chosen: Mask) -> sparse.csr_array:
    """Return a column for each number, 1 for the chosen components that have it."""
    rows = np.flatnonzero(chosen)
    columns = numbers[rows]
    shape = (len(numbers), int(columns.max()) + 1)
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _fit_weights(
    likelihood: Array, frequency: Array, base: Array, effects: sparse.csr_array, precisions: Array
) -> Array:
    """Maximise sum_s n_s log (L w)_s less the penalty of the parameters, w their softmax."""
    n_items = frequency.sum()
    effects_of = effects.T.tocsr()

    def loss(parameters: Array) -> tuple[float, Array]:
        weights = special.softmax(base + effects @ parameters)
        density = likelihood @ weights
        gain = weights * ((frequency / density) @ likelihood - n_items)
        penalised = precisions * parameters
        value = 0.5 * float(parameters @ penalised) - float(frequency @ np.log(density))
        return value, penalised - effects_of @ gain

    start = np.zeros(len(precisions))
    options = {"maxiter": MAX_STEPS}
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(special.softmax(base + effects @ found.x))


def _factor(
    likelihood: Array,
    frequency: Array,
    weights: Array,
    effects: sparse.csr_array,
    precisions: Array,
) -> Array:
    """Return the Cholesky factor of the sum of squared gradients of items, and of the penalty."""
    given = likelihood * weights
    given /= given.sum(axis=1, keepdims=True)
    gradients = (given - weights) @ effects
    curvature = (gradients.T * frequency) @ gradients + np.diag(precisions)
    return np.asarray(linalg.cholesky(curvature, lower=True))


def _shrink(confusion: Confusion, snapshots: IntArray, frequency: Array) -> Confusion:
    """Return what is said instead of each class, shrunk as much as predicts other items best.

    With many classes few pairs are seen twice, and an item's own pair must not look usual.
    """
    others = confusion.mean * (1 - np.eye(len(confusion.mean)))
    others = others / others.sum(axis=1, keepdims=True)
    seen = confusion.pairs.sum(axis=1, keepdims=True)
    rows, said, instead = _pairs(snapshots)
    own, total = snapshots[rows, said], snapshots[rows].sum(axis=1)
    pairs = own * snapshots[rows, instead] / (total - 1)
    times = frequency[rows] * pairs
    left = np.maximum(confusion.pairs[said, instead] - pairs, 0)
    all_left = np.maximum(seen[said, 0] - own * (total - own) / (total - 1), 0)
    expected = others[said, instead]

    def loss(log_strength: float) -> float:
        strength = np.exp(log_strength)
        return -float(times @ np.log((left + strength * expected) / (all_left + strength)))

    found = optimize.minimize_scalar(
        loss, bounds=LOG_STRENGTHS, method="bounded", options={"xatol": STRENGTH_TOLERANCE}
    )
    strength = np.exp(found.x)
    return confusion._replace(instead=(confusion.pairs + strength * others) / (seen + strength))


def _pairs(snapshots: IntArray) -> tuple[Index, Index, Index]:
    """Return the row and both classes of every pair of different classes, as many as there may be.

    Both orders count.
    """
    rows, classes = np.nonzero(snapshots)
    n_classes = np.bincount(rows, minlength=len(snapshots))
    n_kept = int(np.searchsorted(np.cumsum(n_classes**2), MAX_PAIRS, side="right"))
    kept = rows < max(n_kept, 1)
    rows, classes = rows[kept], classes[kept]
    size = n_classes[rows]
    first = np.repeat(np.arange(len(rows)), size)
    place = np.arange(len(first)) - np.repeat(np.cumsum(size) - size, size)
    start = np.cumsum(n_classes) - n_classes
    second = start[rows[first]] + place
    differ = first != second
    return rows[first[differ]], classes[first[differ]], classes[second[differ]]
