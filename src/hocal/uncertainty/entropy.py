"""The entropies that have names: Shannon, Brier, Tsallis, zero-one, spherical and ordinal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import check_choice, check_n_classes, check_number
from hocal.uncertainty.array_operations import operations_on
from hocal.uncertainty.generalised_entropy import Entropy, Separable, check_distance
from hocal.uncertainty.own_entropy import Custom

__all__ = [
    "Brier",
    "Custom",
    "Entropy",
    "Ordinal",
    "Separable",
    "Shannon",
    "Spherical",
    "Tsallis",
    "ZeroOne",
    "get_entropy",
]


@dataclass(frozen=True)
class Shannon(Separable):
    """Shannon entropy -sum_j p_j log p_j; its loss is cross-entropy.

    Its divergence is that of Kullback and Leibler.

    Parameters
    ----------
    base : float, optional
        Base of the logarithm; nats by default, bits with ``base=2``.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Shannon
    >>> float(Shannon(base=2).value([0.5, 0.5]))
    1.0
    """

    base: float | None = None
    name: ClassVar[str] = "shannon"

    def __post_init__(self) -> None:
        if self.base is not None:
            check_number(self.base, "base", minimum=1, strict=True)

    @property
    def units_per_nat(self) -> float:
        """1 / log(base), what a nat is in units of the base."""
        return 1.0 if self.base is None else 1 / math.log(self.base)

    def component(self, x: Array) -> Array:
        """Return -x log x, 0 at x = 0."""
        terms = operations_on(x).x_log_x(x)
        terms *= -self.units_per_nat
        terms += 0.0  # turns the -0.0 of a certain label into 0.0
        return terms

    def _value(self, p: Array) -> Array:
        operations = operations_on(p)
        return -self.units_per_nat * operations.sum(operations.x_log_x(p)) + 0.0

    def _gradient(self, p: Array) -> Array:
        return -self.units_per_nat * (operations_on(p).log(p) + 1)

    def _loss(self, truth: Array, prediction: Array) -> Array:
        operations = operations_on(prediction)
        terms = operations.x_log_y(truth, prediction)
        return -self.units_per_nat * operations.careful_sum(terms) + 0.0

    def _divergence(self, truth: Array, prediction: Array) -> Array:
        terms = special.rel_entr(truth, prediction)
        return np.asarray(self.units_per_nat * terms.sum(axis=-1))


@dataclass(frozen=True)
class Brier(Separable):
    """Brier (Gini) entropy scale * (1 - ||p||^2); its divergence is the squared distance.

    Parameters
    ----------
    scale : float, default=1.0
        Factor; ``scale=2`` gives 4p(1-p) in the binary case, which peaks at 1.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Brier
    >>> float(Brier().divergence([1, 0], [0.5, 0.5]))
    0.5
    """

    scale: float = 1.0
    name: ClassVar[str] = "brier"

    def __post_init__(self) -> None:
        check_number(self.scale, "scale", minimum=0, strict=True)

    def component(self, x: Array) -> Array:
        """Return scale * x (1 - x)."""
        return self.scale * (x * (1 - x))

    def _gradient(self, p: Array) -> Array:
        return -2 * self.scale * p

    def _divergence(self, truth: Array, prediction: Array) -> Array:
        return np.asarray(self.scale * np.square(truth - prediction).sum(axis=-1))


@dataclass(frozen=True)
class Tsallis(Separable):
    """Tsallis entropy (1 - sum_j p_j^order) / (order - 1).

    It is Brier's at order 2, and Shannon's in the limit 1.

    Parameters
    ----------
    order : float, default=1.5
        Positive and not 1.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Tsallis
    >>> float(Tsallis(order=2).value([0.5, 0.5]))
    0.5
    """

    order: float = 1.5
    name: ClassVar[str] = "tsallis"

    def __post_init__(self) -> None:
        check_number(self.order, "order", minimum=0, strict=True)
        if self.order == 1:
            rule = "must not be 1, where Tsallis entropy is Shannon's"
            raise InputError("order", rule, remedy="Use Shannon().")

    def component(self, x: Array) -> Array:
        """Return (x - x^order) / (order - 1)."""
        return (x - x**self.order) / (self.order - 1)

    def _gradient(self, p: Array) -> Array:
        rest = self.order - 1
        return (1 - self.order * operations_on(p).power(p, rest)) / rest


@dataclass(frozen=True)
class ZeroOne(Entropy):
    """Zero-one entropy 1 - max_j p_j, the error rate of the best single guess.

    Ties share the gradient evenly, so that relabelling classes never changes a loss.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import ZeroOne
    >>> float(ZeroOne().loss([0.25, 0.75], [1, 0]))
    0.75
    """

    name: ClassVar[str] = "zero-one"
    symmetric: ClassVar[bool] = True

    def _value(self, p: Array) -> Array:
        return 1 - operations_on(p).largest(p)

    def _gradient(self, p: Array) -> Array:
        operations = operations_on(p)
        tied = p == operations.largest(p, keep_axis=True)
        best = operations.as_numbers(tied, like=p)
        return -best / operations.sum(best)[..., None]


@dataclass(frozen=True)
class Spherical(Entropy):
    """Spherical entropy 1 - ||p||_2, which the spherical score induces.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Spherical
    >>> float(Spherical().value([0.6, 0.4]).round(4))
    0.2789
    """

    name: ClassVar[str] = "spherical"
    symmetric: ClassVar[bool] = True

    def _value(self, p: Array) -> Array:
        return 1 - operations_on(p).norm(p)

    def _gradient(self, p: Array) -> Array:
        return -p / operations_on(p).norm(p, keep_axis=True)


@dataclass(frozen=True)
class Ordinal(Entropy):
    """Ordinal entropy sum_j F_j (1 - F_j), with F the cumulative probabilities of ordered classes.

    The ranked probability score induces it, and its divergence is sum_j (F_j - F'_j)^2. It is half
    the mean distance of two labels, in steps of the scale: people who are torn between neighbours
    are less uncertain than people who are torn between the ends. `pair_disagreement` estimates it
    from two labels.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Ordinal
    >>> Ordinal().value([[0.5, 0.5, 0], [0.5, 0, 0.5]]).tolist()
    [0.25, 0.5]
    """

    name: ClassVar[str] = "ordinal"

    def maximum(self, n_classes: int) -> float:
        """Return the largest value, (n_classes - 1) / 4: half of the people at either end."""
        return (check_n_classes(n_classes) - 1) / 4

    def modulus(self, distance: ArrayLike, n_classes: int) -> Array:
        """Return the largest |G(p) - G(q)| over ||p - q||_1 <= distance.

        Every F_j moves by t = distance / 2 at most, and x (1 - x) by t (1 - t), up to 1/4. Moving t
        from one end to the other does that to all of them.
        """
        n_classes = check_n_classes(n_classes)
        moved = np.minimum(check_distance(distance) / 2, 0.5)
        return np.asarray((n_classes - 1) * moved * (1 - moved))

    def _value(self, p: Array) -> Array:
        below = p.cumsum(-1)[..., :-1]
        return operations_on(p).sum(below * (1 - below))

    def _gradient(self, p: Array) -> Array:
        slopes = 1 - 2 * p.cumsum(-1)  # that of the last class only adds a constant
        from_here: Array = operations_on(p).sum(slopes)[..., None] - slopes.cumsum(-1) + slopes
        return from_here

    def _divergence(self, truth: Array, prediction: Array) -> Array:
        gaps = (truth - prediction).cumsum(-1)[..., :-1]
        return operations_on(gaps).sum(gaps * gaps)


def get_entropy(entropy: str | Entropy, *, base: float | None = None) -> Entropy:
    """Return an entropy given by name or as an object.

    Parameters
    ----------
    entropy : str or Entropy
        ``"shannon"``, ``"brier"``, ``"tsallis"``, ``"zero-one"``, ``"spherical"``, ``"ordinal"``
        (classes in order) or an object.
    base : float, optional
        Base of Shannon's logarithm; only with ``"shannon"``.

    Returns
    -------
    Entropy
        The object to compute with.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import get_entropy
    >>> get_entropy("shannon", base=2)
    Shannon(base=2)
    """
    by_name = isinstance(entropy, str)
    if base is not None and not (by_name and entropy == "shannon"):
        rule = "must be left out unless entropy='shannon'"
        raise InputError("base", rule, value=f"base={base!r} with {entropy!r}")
    if isinstance(entropy, Entropy):
        return entropy
    kinds = {kind.name: kind for kind in (Shannon, Brier, Tsallis, ZeroOne, Spherical, Ordinal)}
    check_choice(entropy, "entropy", kinds)
    return Shannon(base) if entropy == "shannon" else kinds[str(entropy)]()
