"""Estimators of E[G] from few labels: Bernstein sums over the counts.

The statistic Z(s) = sum_j beta(s_j) of an item's k labels has mean sum_j Q(p_j) given the item,
with Q(x) = sum_i beta_i Bin(i; k, x): near G for a good beta, above or below it for a one-sided
one, whatever the mixture. Where one class is known to be that of most labels, a beta of its own
for this leader makes a one-sided statistic tighter: it need not treat all classes alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Array, IntArray
from hocal._base.validation import (
    check_choice,
    check_dense_counts,
    check_n_classes,
    check_number,
    check_snapshot_size,
    refuse_large,
)
from hocal.guarantees.bernstein_programs import (
    least_majorant,
    least_simplex_majorant,
    nearest_sum,
    one_sided_penalties,
    sum_excess,
)
from hocal.guarantees.bernstein_proofs import (
    N_SIMPLEX,
    bernstein_basis,
    chebyshev_grid,
    proven_excess,
)
from hocal.guarantees.snapshot_marginals import (
    check_leader,
    check_reference,
    dirichlet_marginal,
)
from hocal.uncertainty.entropy import Brier, Entropy, Separable, get_entropy

__all__ = [
    "BernsteinEstimator",
    "bernstein_estimator",
]

Side = Literal["minimax", "upper", "lower"]
SIDES: tuple[Side, ...] = ("minimax", "upper", "lower")

# Points at which a polynomial is compared with g: fewer than the wiggles of degree k need would do
# in the middle, but entropies are steep at the ends.
_N_CONSTRAINTS = 1_000
_N_CONSTRAINTS_PER_LABEL = 100
_NUMBERS_PER_ENTRY = 25  # of a program that HiGHS holds, with all that it works on: measured
_LEAST_SLOPE = 1e-6  # least penalty of the slope: it chooses among equally good statistics
LARGEST_EPSILON = 1_000.0  # far above any distance between distributions, which is at most 2


@dataclass(frozen=True, eq=False)
class BernsteinEstimator:
    """A statistic of k-snapshots whose mean is near, above or below E[G(p)], whatever the mixture.

    With more than two classes Z(s) = sum_j values[s_j], or with `leading` in place of `values` for
    the leader; with two, Z(s) = values[s_1], s_1 the second count.

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
    leader : int or None
        Class with coefficients of its own.
    leading : ndarray of shape (k + 1,) or None
        Its coefficients.
    """

    k: int
    n_classes: int
    values: Array
    side: Side
    lipschitz: float
    minimum: float
    maximum: float
    entropy: Entropy
    leader: int | None = None
    leading: Array | None = None

    @property
    def kinds(self) -> tuple[Array, ...]:
        """The coefficients of all classes, or those of the others and of the leader."""
        return (self.values,) if self.leading is None else (self.values, self.leading)

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
        beta = np.stack(self.kinds)
        worst = [sum_excess(beta, g, sign, self.n_classes, n_points) for sign in (1, -1)]
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
        return self.sums(checked, *self.kinds)

    def sums(self, counts: IntArray, values: Array, leading: Array | None = None) -> Array:
        """Return what such coefficients add up to for each row of counts, whatever its total."""
        if self.n_classes == 2:  # one count determines the other
            return values[counts[:, 1]]
        result = np.asarray(values[counts].sum(axis=1))
        if leading is None:
            return result
        first = counts[:, self.leader]
        return result + (leading - values)[first]

    def mean(self, marginal: ArrayLike) -> float:
        """Return E[Z] from a `snapshot_marginal`."""
        led = self.leader is not None
        shares = check_reference(marginal, self.k, self.n_classes, led=led)
        return float((np.stack(self.kinds) * shares).sum())

    def rest_ends(self, losses: Array) -> tuple[float, float]:
        """Return the ends of <losses, s / k> - Z(s) over snapshots s, for the losses of labels."""
        return _rest_ends(self, losses.tobytes())

    def error(self, epsilon: float) -> float:
        """Return bias + lipschitz * epsilon.

        If W1(predicted, true) <= epsilon between snapshot distributions, the predicted mean of Z
        misses E[G(p)] by at most that: the mean of Z moves by at most lipschitz * W1 (Kantorovich),
        and the true mean of Z is within `bias` of E[G(p)].
        """
        return self.bias + self.lipschitz * check_number(epsilon, "epsilon", minimum=0)


@lru_cache(maxsize=512)  # all cells of a fold have the same guess
def _rest_ends(estimator: BernsteinEstimator, loss_bytes: bytes) -> tuple[float, float]:
    losses = np.frombuffer(loss_bytes)
    k = estimator.k
    counts = np.arange(k + 1)
    if len(losses) == 2:  # Z is a function of the second count
        both = (losses[0] * (k - counts) + losses[1] * counts) / k - estimator.values
        return float(both.min()), float(both.max())
    gains = losses[:, None] * counts / k - estimator.values  # (n_classes, k + 1)
    if estimator.leading is not None:
        gains[estimator.leader] += estimator.values - estimator.leading
    return _sum_ends(gains)


def bernstein_estimator(
    entropy: str | Entropy,
    k: int,
    n_classes: int,
    *,
    side: Side = "minimax",
    reference: ArrayLike | None = None,
    n_items: float = 1000,
    epsilon: float = 0.0,
    leader: int | None = None,
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
    leader : int, optional
        Class that most labels are of, with three or more classes: a one-sided statistic has
        coefficients of its own for it, and the reference has shape (2, k + 1). Any is valid.

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
    check_choice(side, "side", SIDES)
    leader = check_leader(leader, n_classes)
    if side == "minimax" or (isinstance(kind, Brier) and k > 1):
        leader = None  # the best treats all classes alike
    if reference is None:
        reference = dirichlet_marginal(k, n_classes, led=leader is not None)
    weights = check_reference(reference, k, n_classes, led=leader is not None)
    n_items = check_number(n_items, "n_items", minimum=1, finite=False)
    epsilon = check_number(epsilon, "epsilon", minimum=0, maximum=LARGEST_EPSILON)
    remembered = tuple(map(tuple, weights.tolist())) if side != "minimax" else ()
    return _fit(kind, k, n_classes, side, remembered, n_items, epsilon, leader)


@lru_cache(maxsize=512)
def _fit(
    entropy: Entropy,
    k: int,
    n_classes: int,
    side: Side,
    weights: tuple[tuple[float, ...], ...],
    n_items: float,
    epsilon: float,
    leader: int | None,
) -> BernsteinEstimator:
    counts = np.arange(k + 1)
    if isinstance(entropy, Brier) and k > 1:  # unbiased, so all sides are met
        both = 2 if n_classes == 2 else 1  # one count stands for two classes
        values = entropy.scale * counts * (k - counts) / (k * (k - 1)) * both
        return _finish(values[None], n_classes, side, entropy, None)
    g = _component(entropy, n_classes)
    if side == "minimax":
        x = _constraint_grid(k)
        values = nearest_sum(x, g(x), k, n_classes, slope=max(epsilon, _LEAST_SLOPE))[None]
    else:
        values = _one_sided(g, np.array(weights), n_classes, side, n_items, epsilon)
    return _finish(values, n_classes, side, entropy, leader)


def _constraint_grid(k: int) -> Array:
    """Return points between which margins are proven, unless a program over them is too large."""
    n_points = _N_CONSTRAINTS + _N_CONSTRAINTS_PER_LABEL * k
    remedy = "Use a smaller k: an item with more labels counts with all its k-snapshots."
    n_numbers = _NUMBERS_PER_ENTRY * n_points * (k + 1)
    refuse_large("k", n_numbers, f"a linear program over {k:,} labels per item", remedy)
    return chebyshev_grid(n_points)


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
    k = weights.shape[1] - 1
    penalties = one_sided_penalties(n_items) | {"slope": epsilon}
    if n_classes > 2 and k > 1:
        return least_simplex_majorant(g, weights, n_classes, sign, penalties)
    x = _constraint_grid(k)
    basis = bernstein_basis(x, k)
    values = sign * least_majorant(basis, sign * g(x), weights, n_classes, **penalties)
    _, excess = proven_excess(values[0], g, -sign)
    return values + sign * max(float(excess.max()), 0.0)  # Bernstein terms sum to 1


def _finish(
    values: Array, n_classes: int, side: Side, entropy: Entropy, leader: int | None
) -> BernsteinEstimator:
    """Add what follows from beta alone: the Lipschitz constant and the range of Z."""
    values.flags.writeable = False  # shared by everyone who asks for the same estimator
    k = values.shape[1] - 1
    rises = np.diff(values)
    if n_classes == 2:
        ends = (float(values.min()), float(values.max()))
        largest = np.abs(rises).max()
    else:
        # A label that moves from a class with i + 1 labels to one with j (i + j < k) changes Z by
        # rises[j] - rises[i].
        possible = np.add.outer(np.arange(k), np.arange(k)) < k
        ends = _extremes(values, n_classes)
        pairs = [(rises[0], other) for other in rises]  # there is only one leader
        largest = max(np.abs(np.subtract.outer(*pair))[possible].max() for pair in pairs)
    # One moved label is an l1 distance of 2 / k, and labels can be moved one by one along a
    # shortest path.
    return BernsteinEstimator(
        k,
        n_classes,
        values[0],
        side,
        float(k / 2 * largest),
        *ends,
        entropy,
        leader,
        None if leader is None else values[1],
    )


def _extremes(values: Array, n_classes: int) -> tuple[float, float]:
    """Return the smallest and largest Z over count vectors."""
    k = values.shape[1] - 1
    gains = values - values[:, :1]
    n_others = n_classes - len(values) + 1
    # Classes beyond k stay without labels.
    given = np.concatenate([np.tile(gains[0], (min(k, n_others), 1)), gains[1:]])
    low, high = _sum_ends(given)
    least = n_others * values[0, 0] + values[1:, 0].sum()
    return float(least + low), float(least + high)


def _sum_ends(gains: Array) -> tuple[float, float]:
    """Return the ends of sum_j gains[j, s_j] over counts s that sum to k, class by class."""
    counts = np.arange(gains.shape[1])
    table = np.full((2, len(counts)), np.inf)  # (minimum of the sum and of minus it, labels so far)
    table[:, 0] = 0
    before = counts[:, None] - counts  # labels before, by labels after and labels of this class
    for gain in gains:
        options = np.where(before >= 0, table[:, before], np.inf)  # (2, after, of this class)
        table = (options + np.stack([gain, -gain])[:, None]).min(axis=2)
    return float(table[0, -1]), float(-table[1, -1])


def _component(entropy: Entropy, n_classes: int) -> Callable[[Array], Array]:
    """Return g with G(p) = sum_j g(p_j), or for two classes G as a function of the second one."""
    if n_classes > 2 and isinstance(entropy, Separable):
        return entropy.component
    return lambda x: entropy.value(np.stack([1 - x, x], axis=-1), check_input=False)
