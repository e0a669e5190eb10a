"""Do people judge as they did at first? Compare the halves of what each of them did."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, IntArray
from hocal.annotations.independence.permutations import halves, p_values, permutations
from hocal.annotations.independence.vote_layout import Layout, add_up

__all__ = ["Drift", "compare_halves"]

_FEWEST_FOR_DRIFT = 4  # informative judgements: two in each half


class Drift(NamedTuple):
    """Whether annotators change with time: first half of their judgements against the second.

    Attributes
    ----------
    ratio : float
        Squared changes over their expectation, 1 on average without drift.
    p_value : float
        Permutation p-value of the ratio.
    change : ndarray of shape (n_annotators,)
        Total variation between the halves, each less the other labels of its items; NaN below four
        judgements of items on which labels differ. Chance alone makes it positive.
    adjusted_p_value : ndarray of shape (n_annotators,)
        Permutation p-value of each annotator's change, adjusted for all annotators by the largest
        statistic.
    """

    ratio: float
    p_value: float
    change: Array
    adjusted_p_value: Array


def compare_halves(
    layout: Layout, time: IntArray, *, n_resamples: int, generator: np.random.Generator
) -> Drift:
    """Compare the halves of each annotator's judgements with random cuts of them.

    What is compared is the judgement less the other labels of its item, so that a constant
    preference is no drift; `time` ranks the judgements of the layout, equal times are ordered at
    random. The test takes for granted that annotators met their items in an order that has nothing
    to do with how they judge them.
    """
    changes = _Changes(layout, time, generator)
    change = np.full(layout.n_annotators, np.nan)
    adjusted = np.full(layout.n_annotators, np.nan)
    tested = changes.tested
    if not tested.any():
        return Drift(np.nan, np.nan, change, adjusted)
    observed = changes.squares(np.arange(len(layout)))
    null = np.array(
        [
            changes.summarise(changes.squares(order))
            for order in permutations(layout.annotator, n_resamples, generator)
        ]
    )
    ratio = changes.summarise(observed)[0]
    change[tested] = changes.distances()
    adjusted[tested] = p_values(observed / changes.noise, null[:, 1:])
    return Drift(float(ratio), float(p_values(ratio, null[:, 0])), change, adjusted)


class _Changes:
    """What one cut of the annotators' judgements into halves gives."""

    def __init__(self, layout: Layout, time: IntArray, generator: np.random.Generator) -> None:
        self.layout = layout
        self.residual = layout.row_residual
        self.side = np.zeros(len(layout))
        ranked = np.lexsort((generator.random(len(layout)), time, layout.annotator))
        self.side[ranked] = halves(layout.annotator[ranked])
        self.n_judgements = np.bincount(layout.annotator, minlength=layout.n_annotators)
        noise = self._expected_squares()
        self.tested = (self.n_judgements >= _FEWEST_FOR_DRIFT) & (noise > 0)
        self.noise = noise[self.tested]

    def _expected_squares(self) -> Array:
        """Return annotators' mean sum of squares over all cuts, sum s^2 / (n - 1) x scatter."""
        layout = self.layout
        n_groups = len(self.layout.group_annotator)
        n = np.maximum(self.n_judgements, 2)
        squares = add_up(layout.row_group, self.residual**2, n_groups)
        squares -= (
            add_up(layout.row_group, self.residual, n_groups) ** 2 / n[layout.group_annotator]
        )
        scatter = add_up(layout.group_annotator, squares, layout.n_annotators)
        scatter[scatter < 1e-9] = (
            0  # rounding, when all judgements differ from the others in the same way
        )
        return np.asarray(
            add_up(layout.annotator, self.side**2, layout.n_annotators) / (n - 1) * scatter
        )

    def _sums(self, order: IntArray) -> Array:
        signed = self.side[order][self.layout.row_judgement] * self.residual
        return add_up(self.layout.row_group, signed, len(self.layout.group_annotator))

    def squares(self, order: IntArray) -> Array:
        return self._by_annotator(self._sums(order) ** 2)

    def distances(self) -> Array:
        """Return the observed total variation between the halves."""
        absolute = self._by_annotator(np.abs(self._sums(np.arange(len(self.layout)))))
        n_late = self.n_judgements[self.tested] // 2
        return np.asarray(absolute / (2 * n_late))

    def summarise(self, squares: Array) -> Array:
        """Return the overall ratio and the largest ratio of an annotator."""
        return np.array([squares.sum() / self.noise.sum(), (squares / self.noise).max()])

    def _by_annotator(self, values: Array) -> Array:
        return add_up(self.layout.group_annotator, values, self.layout.n_annotators)[self.tested]
