"""Estimators of E[G] from few labels: Bernstein sums over the counts.

The statistic Z(s) = sum_j beta(s_j) of an item's k labels has mean sum_j Q(p_j) given the item,
with Q(x) = sum_i beta_i Bin(i; k, x): near G for a good beta, above or below it for a one-sided
one, whatever the mixture.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import (
    check_choice,
    check_dense_counts,
    check_n_classes,
    check_number,
    check_same_length,
    check_snapshot_size,
    check_weights,
)
from hocal.guarantees.bernstein_programs import (
    least_majorant,
    least_simplex_majorant,
    nearest_sum,
    one_sided_penalties,
)
from hocal.guarantees.bernstein_proofs import (
    N_SIMPLEX,
    bernstein_basis,
    chebyshev_grid,
    proven_excess,
    simplex_excess,
)
from hocal.uncertainty.entropy import Brier, Entropy, Separable, get_entropy

__all__ = [
    "BernsteinEstimator",
    "bernstein_estimator",
    "snapshot_marginal",
]

Side = Literal["minimax", "upper", "lower"]
SIDES: tuple[Side, ...] = ("minimax", "upper", "lower")

# Points at which a polynomial is compared with g: fewer than the wiggles of degree k need would do
# in the middle, but entropies are steep at the ends.
_N_CONSTRAINTS = 1_000
_N_CONSTRAINTS_PER_LABEL = 100
_LEAST_SLOPE = 1e-6  # least penalty of the slope: it chooses among equally good statistics
LARGEST_EPSILON = 1_000.0  # far above any distance between distributions, which is at most 2
_REFERENCE_ROUNDING = 1e-5  # relative, of the sum of a reference


@dataclass(frozen=True, eq=False)
class BernsteinEstimator:
    """A statistic of k-snapshots whose mean is near, above or below E[G(p)], whatever the mixture.

    With more than two classes Z(s) = sum_j values[s_j]; with two, Z(s) = values[s_1], s_1 the
    second count.

    Attributes
    ----------
    k : int
        Number of labels of the snapshots it reads.
    n_classes : int
        Number of label classes.
    values : ndarray of shape (k + 1,)
        beta_0, ..., beta_k.
    side : {"minimax", "upper", "lower"}
        "upper": E[Z] >= E[G] for every mixture; "lower": E[Z] <= E[G]; "minimax": neither.
    lipschitz : float
        |Z(s) - Z(s')| <= lipschitz * ||s/k - s'/k||_1, the smallest such constant.
    minimum, maximum : float
        Smallest and largest Z over all k-snapshots, for intervals of its mean.
    entropy : Entropy
        G.
    """

    k: int
    n_classes: int
    values: Array
    side: Side
    lipschitz: float
    minimum: float
    maximum: float
    entropy: Entropy

    @cached_property
    def bias(self) -> float:
        """Bound on |E[Z] - E[G]| over all mixtures, proven between grid points."""
        if isinstance(self.entropy, Brier) and self.k > 1:
            return 0.0
        g = _component(self.entropy, self.n_classes)
        if self.n_classes == 2:
            excesses = [proven_excess(self.values, g, sign)[1].max() for sign in (1, -1)]
            return float(max(excesses))
        n_points = N_SIMPLEX // 2  # a bias may be a little too large
        worst = [
            simplex_excess(*proven_excess(self.values, g, sign, n_points), self.n_classes)
            for sign in (1, -1)
        ]
        return max(0.0, *(float(each.bound.max()) for each in worst))

    def __call__(self, counts: Any) -> Array:
        """Return Z for each row of counts, all with total k."""
        checked = check_dense_counts(counts, n_classes=self.n_classes)
        wrong = checked.sum(axis=1) != self.k
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                "counts",
                f"must have k={self.k} labels in each row",
                value=str(checked[row].sum()),
                where=f"in row {row}",
                remedy="Thin them first, or use one estimator for each total.",
            )
        if self.n_classes == 2:  # one count determines the other
            return self.values[checked[:, 1]]
        return np.asarray(self.values[checked].sum(axis=1))

    def mean(self, marginal: ArrayLike) -> float:
        """Return E[Z] from a `snapshot_marginal`."""
        return float(self.values @ _check_reference(marginal, self.k, self.n_classes))

    def error(self, epsilon: float) -> float:
        """Return bias + lipschitz * epsilon.

        If W1(predicted, true) <= epsilon between snapshot distributions, the predicted mean of Z
        misses E[G(p)] by at most that: the mean of Z moves by at most lipschitz * W1 (Kantorovich),
        and the true mean of Z is within `bias` of E[G(p)].
        """
        return self.bias + self.lipschitz * check_number(epsilon, "epsilon", minimum=0)


def snapshot_marginal(counts: Any, k: int, *, weights: ArrayLike | None = None) -> Array:
    """Return how often a class receives i of k labels, i = 0..k, by exact thinning.

    With more than two classes, sum_j P(s_j = i), which sums to n_classes; with two, P(s_1 = i).

    Parameters
    ----------
    counts : array-like or sparse array of shape (n_items, n_classes)
        Label counts, at least k per item.
    k : int
        Number of labels of a snapshot.
    weights : array-like of shape (n_items,), optional
        Weight, or multiplicity, of each row.

    Returns
    -------
    ndarray of shape (k + 1,)
        The reference of `bernstein_estimator`.

    Examples
    --------
    >>> from hocal.guarantees.bernstein import snapshot_marginal
    >>> snapshot_marginal([[2, 2, 0]], 2).round(4).tolist()
    [1.3333, 1.3333, 0.3333]
    """
    k = check_snapshot_size(k, listed=True)
    checked = check_dense_counts(counts, minimum_total=k)
    mass = np.ones(len(checked)) if weights is None else check_weights(weights)
    check_same_length(mass, checked, ("weights", "counts"))
    shown = checked[:, 1:] if checked.shape[1] == 2 else checked
    totals = checked.sum(axis=1)
    # Only counts above zero are listed, of many classes a few; each row has the rest of zeros.
    row, label = np.nonzero(shown)
    n_zeros = shown.shape[1] - np.bincount(row, minlength=len(shown))
    total = np.concatenate([totals, totals[row]])
    hits = np.concatenate([np.zeros_like(totals), shown[row, label]])
    weight = np.concatenate([mass * n_zeros, mass[row]])
    radix = checked.max() + 1  # a total and a count in one number
    distinct, inverse = np.unique(radix * total + hits, return_inverse=True)
    total, hits = np.divmod(distinct, radix)
    share = np.bincount(inverse, weight) / mass.sum()
    chances = stats.hypergeom.pmf(np.arange(k + 1), total[:, None], hits[:, None], k)
    return np.asarray(share @ chances)


def bernstein_estimator(
    entropy: str | Entropy,
    k: int,
    n_classes: int,
    *,
    side: Side = "minimax",
    reference: ArrayLike | None = None,
    n_items: float = 1000,
    epsilon: float = 0.0,
) -> BernsteinEstimator:
    """Return the best statistic of k-snapshots for E[G(p)], near it or on one side of it.

    "minimax" minimises the bias sup |sum_j Q(p_j) - g(p_j)| + epsilon * lipschitz. "upper" requires
    sum_j Q(p_j) >= sum_j g(p_j) on the simplex, proven between the points that are looked at, and
    minimises the mean of Z under the reference plus what its spread will cost with `n_items` items;
    "lower" likewise from below. Brier has an exact statistic from k = 2.

    Parameters
    ----------
    entropy : str or Entropy
        For more than two classes a sum over classes: Shannon, Brier, Tsallis. For two, any.
    k : int
        Number of labels of a snapshot.
    n_classes : int
        Number of label classes.
    side : {"minimax", "upper", "lower"}
        What the mean of the statistic must be to E[G(p)].
    reference : array-like of shape (k + 1,), optional
        Where a one-sided estimator should be tight: a `snapshot_marginal` of other data than it
        will be evaluated on. Any reference is valid; by default that of a Dirichlet mixture of
        total concentration 1.
    n_items : float, default=1000
        Number of items the statistic will be averaged over, ``inf`` for a known distribution.
    epsilon : float, default=0.0
        Calibration error to guard against.

    Returns
    -------
    BernsteinEstimator
        Solved once and remembered.

    Examples
    --------
    >>> from hocal.guarantees.bernstein import bernstein_estimator
    >>> bernstein_estimator("brier", 2, 10)([[2] + 9 * [0], [1, 1] + 8 * [0]]).tolist()
    [0.0, 1.0]
    >>> round(bernstein_estimator("shannon", 5, 2).bias, 3)  # nats; the plug-in's is .12
    0.012
    """
    kind = get_entropy(entropy)
    k = check_snapshot_size(k, listed=True)
    n_classes = check_n_classes(n_classes)
    if n_classes > 2 and not isinstance(kind, Separable):
        raise InputError(
            "entropy",
            f"must be a sum over classes for n_classes={n_classes}",
            value=repr(kind.name),
            remedy="Use 'shannon', 'brier' or 'tsallis', or two classes.",
        )
    if reference is None:
        share = 1 / n_classes
        beta_binomial: Array = stats.betabinom.pmf(np.arange(k + 1), k, share, 1 - share)
        reference = beta_binomial * (n_classes if n_classes > 2 else 1)
    weights = _check_reference(reference, k, n_classes)
    n_items = check_number(n_items, "n_items", minimum=1, finite=False)
    epsilon = check_number(epsilon, "epsilon", minimum=0, maximum=LARGEST_EPSILON)
    check_choice(side, "side", SIDES)
    remembered = tuple(weights) if side != "minimax" else ()
    return _fit(kind, k, n_classes, side, remembered, n_items, epsilon)


@lru_cache(maxsize=512)
def _fit(
    entropy: Entropy,
    k: int,
    n_classes: int,
    side: Side,
    weights: tuple[float, ...],
    n_items: float,
    epsilon: float,
) -> BernsteinEstimator:
    counts = np.arange(k + 1)
    if isinstance(entropy, Brier) and k > 1:  # unbiased, so all sides are met
        both = 2 if n_classes == 2 else 1  # one count stands for two classes
        values = entropy.scale * counts * (k - counts) / (k * (k - 1)) * both
        return _finish(values, k, n_classes, side, entropy)
    g = _component(entropy, n_classes)
    if side == "minimax":
        x = _constraint_grid(k)
        values = nearest_sum(x, g(x), k, n_classes, slope=max(epsilon, _LEAST_SLOPE))
    else:
        values = _one_sided(g, np.array(weights), n_classes, side, n_items, epsilon)
    return _finish(values, k, n_classes, side, entropy)


def _constraint_grid(k: int) -> Array:
    return chebyshev_grid(_N_CONSTRAINTS + _N_CONSTRAINTS_PER_LABEL * k)


def _one_sided(
    g: Callable[[Array], Array],
    weights: Array,
    n_classes: int,
    side: Side,
    n_items: float,
    epsilon: float,
) -> Array:
    """Return the beta of the cheapest Bernstein sum above G, or below it."""
    sign = 1 if side == "upper" else -1  # a minorant of g is minus a majorant of -g
    k = len(weights) - 1
    penalties = one_sided_penalties(n_items) | {"slope": epsilon}
    if n_classes > 2 and k > 1:
        return least_simplex_majorant(g, weights, n_classes, sign, penalties)
    x = _constraint_grid(k)
    basis = bernstein_basis(x, k)
    values = sign * least_majorant(basis, sign * g(x), weights, n_classes, **penalties)
    _, excess = proven_excess(values, g, -sign)
    return values + sign * max(float(excess.max()), 0.0)  # Bernstein terms sum to 1


def _finish(
    values: Array, k: int, n_classes: int, side: Side, entropy: Entropy
) -> BernsteinEstimator:
    """Add what follows from beta alone: the Lipschitz constant and the range of Z."""
    values.flags.writeable = False  # shared by everyone who asks for the same estimator
    rises = np.diff(values)
    if n_classes == 2:
        ends = (values.min(), values.max())
        largest = np.abs(rises).max()
    else:
        # A label that moves from a class with i + 1 labels to one with j (i + j < k) changes Z by
        # rises[j] - rises[i].
        possible = np.add.outer(np.arange(k), np.arange(k)) < k
        ends = _extremes(values, n_classes)
        largest = np.abs(np.subtract.outer(rises, rises))[possible].max()
    # One moved label is an l1 distance of 2 / k, and labels can be moved one by one along a
    # shortest path.
    return BernsteinEstimator(
        k,
        n_classes,
        values,
        side,
        float(k / 2 * largest),
        float(ends[0]),
        float(ends[1]),
        entropy,
    )


def _extremes(values: Array, n_classes: int) -> tuple[float, float]:
    """Return the smallest and largest sum_j values[s_j] over count vectors, class by class."""
    k = len(values) - 1
    gains = values - values[0]  # classes beyond k stay without labels
    table = np.full((2, k + 1), np.inf)  # (minimum of Z and of -Z, labels given out)
    table[:, 0] = 0
    for _ in range(min(k, n_classes)):
        options = []
        for given, gain in enumerate(gains):  # labels that the next class gets
            before = np.pad(table, ((0, 0), (given, 0)), constant_values=np.inf)[:, : k + 1]
            options.append(before + np.array([[gain], [-gain]]))
        table = np.min(options, axis=0)
    return n_classes * values[0] + table[0, k], n_classes * values[0] - table[1, k]


def _component(entropy: Entropy, n_classes: int) -> Callable[[Array], Array]:
    """Return g with G(p) = sum_j g(p_j), or for two classes G as a function of the second one."""
    if n_classes > 2 and isinstance(entropy, Separable):
        return entropy.component
    return lambda x: entropy.value(np.stack([1 - x, x], axis=-1), check_input=False)


def _check_reference(reference: ArrayLike, k: int, n_classes: int) -> Array:
    """Return count weights scaled to sum to the number of summed classes."""
    weights = check_weights(reference, "reference")
    total = n_classes if n_classes > 2 else 1
    complete = math.isclose(weights.sum(), total, rel_tol=_REFERENCE_ROUNDING)
    if len(weights) != k + 1 or not complete:
        raise InputError(
            "reference",
            f"must hold k + 1 = {k + 1} weights that sum to {total}",
            value=f"{len(weights)} that sum to {weights.sum():.6g}",
            remedy="Use snapshot_marginal.",
        )
    return np.asarray(weights * (total / weights.sum()))
