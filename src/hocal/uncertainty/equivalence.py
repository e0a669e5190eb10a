"""A concave entropy on which two different mixtures differ: the paper's equivalence theorem.

A predictor is higher-order calibrated exactly if its aleatoric uncertainty is right for every
concave entropy. The proof needs no others than G_t(p) = -exp(<t, p>): their means over a mixture
are its moment generating function, which determines it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import check_n_classes, check_number
from hocal.uncertainty.entropy import Entropy
from hocal.uncertainty.generalised_entropy import check_distance
from hocal.uncertainty.mixtures import Mixtures, check_mixtures

__all__ = ["Exponential", "RevealingEntropy", "revealing_entropy"]

N_STARTS = 20  # random directions that the search begins with, beside those of the classes
SEED = 0  # of these; the same entropy is found in every run


@dataclass(frozen=True)
class Exponential(Entropy):
    """The concave entropy max_j exp(t_j) - exp(<t, p>), which treats classes differently.

    Parameters
    ----------
    direction : tuple of float
        t, one number for each class. Adding a constant to all of them changes the unit only.

    Examples
    --------
    >>> from hocal.uncertainty import Exponential
    >>> Exponential((0.0, 1.0)).value([[0, 1], [1, 0]]).round(3).tolist()
    [0.0, 1.718]
    """

    direction: tuple[float, ...]

    name: ClassVar[str] = "exponential"

    def maximum(self, n_classes: int) -> float:
        """Return the largest value, max exp(t) - min exp(t), where the smallest t is certain."""
        t = self._direction_of(n_classes)
        return math.exp(t.max()) - math.exp(t.min())

    def modulus(self, distance: ArrayLike, n_classes: int) -> Array:
        """Return the largest |G(p) - G(q)| over ||p - q||_1 <= distance.

        <t, p> moves by the mass moved times the range of t at most, and exp rises most at the top:
        the extreme pair is the class of the largest t, and some of its mass at the smallest.
        """
        t = self._direction_of(n_classes)
        moved = np.minimum(check_distance(distance) / 2, 1)
        return np.asarray(math.exp(t.max()) * -np.expm1(-moved * np.ptp(t)))

    def _direction_of(self, n_classes: int) -> Array:
        if check_n_classes(n_classes) != len(self.direction):
            rule = f"must be {len(self.direction)}, as many as `direction` has numbers"
            raise InputError("n_classes", rule, value=n_classes)
        return np.asarray(self.direction, dtype=np.float64)

    def _value(self, p: Array) -> Array:
        t = np.asarray(self.direction)
        return np.asarray(math.exp(t.max()) - np.exp(p @ t))

    def _gradient(self, p: Array) -> Array:
        t = np.asarray(self.direction)
        return np.asarray(-np.exp(p @ t)[..., None] * t)


class RevealingEntropy(NamedTuple):
    """A concave entropy on which a predicted mixture is wrong."""

    entropy: Exponential  #: one among those of the paper's proof
    predicted: float  #: aleatoric uncertainty under the predicted mixture
    truth: float  #: that under the true one
    gap: float  #: predicted less true; 0 but for rounding if the mixtures are the same


def revealing_entropy(
    predicted: Mixtures, truth: Mixtures, *, bound: float = 1.0
) -> RevealingEntropy:
    """Find a concave entropy for which the aleatoric uncertainty of a mixture is most wrong.

    Among G_t(p) = max exp(t) - exp(<t, p>) with all |t_j| at most `bound`. If the two mixtures
    differ at all, some t shows it, however small the bound (the paper's theorem on equivalence);
    entropies that treat all classes alike need not.

    Parameters
    ----------
    predicted : Mixtures
        The mixture that is predicted for a cell, one item.
    truth : Mixtures
        The mixture of the true label distributions of the cell, one item.
    bound : float, default=1.0
        Largest |t_j|. Mixtures that differ in high moments only show a larger gap with a larger
        bound.

    Returns
    -------
    RevealingEntropy
        The entropy and both aleatoric uncertainties.

    Examples
    --------
    People agree about every item; the prediction is as sure, and always of the wrong class. No
    entropy that treats classes alike can tell: symmetric entropies do not determine calibration.

    >>> import hocal
    >>> from hocal.uncertainty import revealing_entropy
    >>> truth, wrong = (hocal.Mixtures.from_points([p]) for p in ([1, 0, 0], [0, 1, 0]))
    >>> [
    ...     float(hocal.decompose(mixtures, entropy).aleatoric[0])
    ...     for entropy in ("shannon", "brier")
    ...     for mixtures in (truth, wrong)
    ... ]
    [0.0, 0.0, 0.0, 0.0]
    >>> found = revealing_entropy(wrong, truth)
    >>> round(abs(found.gap), 2)
    2.35
    """
    atoms = [_atoms(predicted, "predicted"), _atoms(truth, "truth")]
    reach = check_number(bound, "bound", minimum=0, strict=True)
    n_classes = predicted.n_classes
    if truth.n_classes != n_classes:
        raise InputError("truth", f"must have {n_classes} classes", value=truth.n_classes)
    points = np.concatenate([each.points for each in atoms])
    signed = np.concatenate([atoms[0].weights, -atoms[1].weights])

    def negative_square(t: Array) -> tuple[float, Array]:
        growth = signed * np.exp(points @ t)
        difference = float(growth.sum())
        return -(difference**2), -2 * difference * (growth @ points)

    limits = [(-reach, reach)] * n_classes
    found = [
        optimize.minimize(negative_square, start, jac=True, method="L-BFGS-B", bounds=limits)
        for start in _starts(n_classes, reach)
    ]
    best = min(found, key=lambda each: float(each.fun)).x
    entropy = Exponential(tuple(best.tolist()))
    values = [each.weights @ entropy.value(each.points, check_input=False) for each in atoms]
    first, second = map(float, values)
    return RevealingEntropy(entropy, first, second, first - second)


class _Atoms(NamedTuple):
    points: Array
    weights: Array


def _atoms(mixtures: Mixtures, name: str) -> _Atoms:
    """Return the atoms of a single item's mixture."""
    if len(check_mixtures(mixtures)) != 1:
        rule = "must be the mixture of one item"
        found = f"{len(mixtures)} items"
        raise InputError(name, rule, value=found, remedy="Choose one, as in mixtures[:1].")
    _, atom, _ = mixtures.pairs(mixtures.index)
    if not len(atom):
        raise InputError(name, "must have atoms", value="the mixture of an empty cell")
    return _Atoms(mixtures.points_at(atom), mixtures.weights[atom])


def _starts(n_classes: int, reach: float) -> Array:
    """Return directions to begin with: one class against the others, and random ones."""
    random = np.random.default_rng(SEED).uniform(-reach, reach, (N_STARTS, n_classes))
    single = reach * (2 * np.eye(n_classes) - 1)
    return np.concatenate([single, -single, random])
