"""Credal sets: convex sets of label distributions, spanned by the likely atoms of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from hocal._base.errors import InputError
from hocal._base.typing import Array, Mask
from hocal._base.validation import check_choice, check_number, check_simplex
from hocal.uncertainty.entropy import Entropy, get_entropy
from hocal.uncertainty.mixtures import Mixtures, check_mixtures
from hocal.uncertainty.sets import distance_to_mean, heaviest_atoms

__all__ = ["CredalSets", "credal_set"]

CredalShape = Literal["hull", "intervals"]
CREDAL_SHAPES: tuple[CredalShape, ...] = ("hull", "intervals")
_ROUNDING = 1e-9  # of a probability
_HULL_ROUNDING = 1e-7  # of an l1 distance that a linear programme found
_HALVINGS = 60  # of [0, 1]: beyond the precision of a float
_ITEMS_AT_ONCE = 100  # in one linear programme, whose time grows faster than its size


@dataclass(frozen=True, eq=False, repr=False)
class CredalSets:
    """A convex set of label distributions for each item, made by `credal_set`.

    Attributes
    ----------
    atoms : Mixtures
        The label distributions that span each set, with their weights.
    lower, upper : ndarray of shape (n_items, n_classes)
        Lower and upper probability of each class: the least and the largest in the set. Both are
        the same for either shape, and each is reached by one of the atoms.
    mass : ndarray of shape (n_items,)
        Probability of the atoms under the item's own mixture; the set they span has at least this.
    shape : {"hull", "intervals"}
        All averages of the atoms; or all label distributions between `lower` and `upper`, which
        are more, unless there are two classes.

    Examples
    --------
    >>> import hocal
    >>> from hocal.uncertainty import credal_set
    >>> members = [[[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.7, 0.1, 0.2]]]
    >>> sets = credal_set(hocal.Mixtures.from_ensemble(members), coverage=1)
    >>> sets.lower.tolist(), sets.upper.tolist()
    ([[0.5, 0.1, 0.1]], [[0.7, 0.3, 0.2]])
    >>> sets.contains([[0.6, 0.2, 0.2]]).tolist(), sets.contains([[0.7, 0.2, 0.1]]).tolist()
    ([True], [False])
    """

    atoms: Mixtures
    lower: Array
    upper: Array
    mass: Array
    shape: CredalShape

    def __len__(self) -> int:
        return len(self.mass)

    def __repr__(self) -> str:
        width = (self.upper - self.lower).mean()
        mass = f"mean mass {self.mass.mean():.3g}"
        return f"CredalSets({len(self)} items, {self.shape}, {mass}, mean width {width:.3g})"

    def contains(self, label_distributions: ArrayLike) -> Mask:
        """Say for each item whether a label distribution, (n_items, n_classes), lies in its set.

        Of hulls of three classes or more this solves linear programmes.
        """
        points = check_simplex(
            label_distributions, "label_distributions", ndim=2, n_classes=self.atoms.n_classes
        )
        if len(points) != len(self):
            rule = f"must have one row for each of {len(self)} items"
            raise InputError("label_distributions", rule, value=len(points))
        within = (points >= self.lower - _ROUNDING) & (points <= self.upper + _ROUNDING)
        inside: Mask = np.asarray(within.all(axis=1))
        if self.shape == "hull" and points.shape[1] > 2:
            distance = _distance_to_hull(points[inside], self.atoms[inside])
            inside[inside] = distance <= _HULL_ROUNDING
        return inside

    def lower_entropy(
        self, entropy: str | Entropy = "shannon", *, base: float | None = None
    ) -> Array:
        """Return the least entropy in each hull, (n_items,): that of one of its atoms.

        An entropy is concave, so nothing between atoms is below all of them. The least entropy
        between intervals has no such form and is refused.

        Parameters
        ----------
        entropy : str or Entropy, default="shannon"
            Measure of uncertainty.
        base : float, optional
            Base of Shannon's logarithm, 2 for bits.

        Returns
        -------
        ndarray of shape (n_items,)
            NaN for a mixture without atoms.
        """
        self._refuse_shape("intervals", 'Use shape="hull", whose least entropy is that of an atom.')
        measure = get_entropy(entropy, base=base)
        values = np.asarray(measure.value(self.atoms.points, check_input=False))
        return _reduce_atoms(np.minimum, values, self.atoms)[self.atoms.index]

    def upper_entropy(
        self, entropy: str | Entropy = "shannon", *, base: float | None = None
    ) -> Array:
        """Return the largest entropy between the intervals of each item, (n_items,).

        It is that of the most even label distribution, in which every class has the same
        probability unless its interval forbids it. This holds for entropies that treat all classes
        alike; others are refused, and so are hulls, whose largest entropy has no such form.

        Parameters
        ----------
        entropy : str or Entropy, default="shannon"
            Measure of uncertainty.
        base : float, optional
            Base of Shannon's logarithm, 2 for bits.

        Returns
        -------
        ndarray of shape (n_items,)
            NaN for a mixture without atoms.
        """
        self._refuse_shape("hull", 'Use shape="intervals", whose largest entropy is no smaller.')
        measure = get_entropy(entropy, base=base)
        if not measure.symmetric:
            rule = "must treat all classes alike, so that the most even distribution has the most"
            raise InputError("entropy", rule, value=str(measure))
        return np.asarray(measure.value(_most_even(self.lower, self.upper), check_input=False))

    def _refuse_shape(self, shape: CredalShape, remedy: str) -> None:
        if self.shape == shape:
            rule = "must have an entropy limit of closed form"
            raise InputError("shape", rule, value=shape, remedy=remedy)


def credal_set(
    mixtures: Mixtures, *, shape: CredalShape = "hull", coverage: float = 0.9
) -> CredalSets:
    """Return for each item a convex set of label distributions with a given mass at least.

    The heaviest atoms of the mixture are taken until they have the mass, of equally heavy ones
    those nearest the mean; the set is their convex hull, or all that lies between the least and the
    largest probability they give to each class. It holds the true label distribution as often as
    asked if the mixtures are right: `hocal.coverage` of the result measures whether they are, and
    `hocal.guarantees.certified_set` gives sets that need no trust.

    Parameters
    ----------
    mixtures : Mixtures
        Predicted mixtures, of a calibrator or an ensemble.
    shape : {"hull", "intervals"}
        Convex hull, or an interval for each class.
    coverage : float, default=0.9
        Mass each set must have, at most 1; with 1 all members of an ensemble span it.

    Returns
    -------
    CredalSets
        One set per item.

    Examples
    --------
    >>> import hocal
    >>> from hocal.uncertainty import credal_set
    >>> members = [[[0.5, 0.5], [0.6, 0.4], [0.55, 0.45], [0.9, 0.1]]]
    >>> sets = credal_set(hocal.Mixtures.from_ensemble(members), coverage=0.75)
    >>> sets.lower.tolist(), sets.upper.tolist()  # without the member that stands apart
    ([[0.5, 0.4]], [[0.6, 0.5]])
    >>> sets.contains([[0.58, 0.42]]).tolist()
    [True]
    """
    check_mixtures(mixtures)
    chosen: Any = check_choice(shape, "shape", CREDAL_SHAPES)
    wanted = check_number(coverage, "coverage", minimum=0, maximum=1, strict=True)
    atoms, mass = heaviest_atoms(mixtures, wanted, ties=distance_to_mean(mixtures, "l2"))
    lower = _reduce_atoms(np.minimum, atoms.points, atoms)[atoms.index]
    upper = _reduce_atoms(np.maximum, atoms.points, atoms)[atoms.index]
    return CredalSets(atoms, lower, upper, mass, chosen)


def _reduce_atoms(operation: np.ufunc, values: Array, atoms: Mixtures) -> Array:
    """Reduce values of the atoms of each stored mixture to one; NaN without atoms."""
    occupied = atoms.sizes > 0
    result = np.full((atoms.n_mixtures, *values.shape[1:]), np.nan)
    if occupied.any():
        result[occupied] = operation.reduceat(values, atoms.offsets[:-1][occupied], axis=0)
    return result


def _most_even(lower: Array, upper: Array) -> Array:
    """Return the distribution clip(t, lower, upper) of each item, whose t makes its sum 1.

    It is majorised by every other distribution between the limits, so no symmetric and concave
    function is larger anywhere else.
    """
    low = np.zeros((len(lower), 1))
    high = np.ones((len(lower), 1))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_little = np.clip(middle, lower, upper).sum(axis=1, keepdims=True) < 1
        low = np.where(too_little, middle, low)
        high = np.where(too_little, high, middle)
    return np.clip(high, lower, upper)


def _distance_to_hull(points: Array, atoms: Mixtures) -> Array:
    """Return the l1 distance of each item's point to the hull of its atoms."""
    result = np.empty(len(points))
    for start in range(0, len(points), _ITEMS_AT_ONCE):
        block = slice(start, start + _ITEMS_AT_ONCE)
        result[block] = _solve_hulls(points[block], atoms[block])
    return result


def _solve_hulls(points: Array, atoms: Mixtures) -> Array:
    """Find all items' nearest averages of atoms in one linear programme.

    Its variables are the weights of the atoms and, for each item and class, how much the average is
    too small and too large; the sum of these is least.
    """
    from scipy.optimize import linprog  # takes a while to import, and hulls alone need it

    n_items, n_classes = points.shape
    row, atom, _ = atoms.pairs(atoms.index)
    one = np.ones(len(row))
    atom_number = np.arange(len(row))
    equation = row[:, None] * n_classes + np.arange(n_classes)  # one for each item and class
    entries = (equation.ravel(), np.repeat(atom_number, n_classes))
    averages = sparse.coo_array(
        (atoms.points_at(atom).ravel(), entries), shape=(points.size, len(row))
    )
    sums = sparse.coo_array((one, (row, atom_number)), shape=(n_items, len(row)))
    slack = sparse.eye_array(points.size)
    solution = linprog(
        np.concatenate([0 * one, np.ones(2 * points.size)]),
        A_eq=sparse.block_array([[averages, slack, -slack], [sums, None, None]], format="csr"),
        b_eq=np.concatenate([points.ravel(), np.ones(n_items)]),
        method="highs",
    )
    gaps = solution.x[len(row) :].reshape(2, n_items, n_classes)
    return np.asarray(gaps.sum(axis=(0, 2)))
