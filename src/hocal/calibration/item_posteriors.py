"""What labels alone say about each item: its label distribution, its disagreement, its majority.

`hocal.calibration.labels_alone` has a prior of points, which is all that choosing the next labels
needs. Limits need more: between points there is nothing, so with five labels or more the posterior
of an item would sit on the two or three nearest points and look surer than it is. Here the prior is
the mixture of Dirichlet distributions of `hocal.calibration.label_components`. Given labels s,
component c with parameters a_c becomes Dirichlet(a_c + s) and weighs

    w_c prod_j (a_cj)_(s_j) / (|a_c|)_(|s|),    (x)_m = x (x + 1) ... (x + m - 1),

which has a logarithm that is a sum of matrix products. Means and expected entropies are closed
forms; limits and the majority come from draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hocal._base.frames import to_frame
from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import check_choice, check_counts, check_fraction
from hocal.calibration.dirichlet_entropies import (
    Expected,
    expected_ordinal,
    expected_shannon,
    log_likelihoods,
)
from hocal.calibration.label_components import LabelMixture, fit_label_mixture
from hocal.calibration.labels_alone import check_labels_alone
from hocal.uncertainty.distinct_counts import as_dense, distinct_rows
from hocal.uncertainty.entropy import get_entropy

__all__ = ["LabelPosterior", "label_posterior"]

ENTROPIES = ("shannon", "ordinal")
BLOCK_NUMBERS = 4_000_000  # in the largest array of a block: 32 MB
# Draws for all distinct label counts together, some seconds, and for one of them: a hundred are
# the fewest that have a second smallest at 95%, and a thousand place limits to a hundredth.
MAX_DRAWN = 100_000_000
FEWEST_DRAWS = 100
MOST_DRAWS = 1_000
TINY = 1e-300  # added to draws, of which all may underflow
# Limits are rounded outwards to so many, in nats or steps of the scale: finer differences are not
# known, and a clear item has 0 in its interval.
STEP = 0.01
ROUNDING = 1e-9  # of steps


@dataclass(frozen=True, eq=False, repr=False)
class LabelPosterior:
    """What is known about each item given its labels and what those of all items have in common.

    Attributes
    ----------
    mean : ndarray of shape (n_items, n_classes)
        Expected label distribution: the shares of the labels, pulled towards what is common.
    aleatoric, lower, upper : ndarray of shape (n_items,)
        Expected aleatoric uncertainty, and limits between which it lies with probability
        `confidence`. They are rounded outwards to hundredths.
    majority : ndarray of shape (n_items,), int
        Class that most people would most probably choose.
    majority_probability : ndarray of shape (n_items,)
        Probability that it is: one minus that of another class being chosen more often.
    n_labels : ndarray of shape (n_items,), int
        Labels of the item.
    entropy : {"shannon", "ordinal"}
        What uncertainty is measured with.
    confidence : float
        Of each item's limits.

    Examples
    --------
    >>> from hocal.calibration import label_posterior
    >>> label_posterior([[5, 0]] * 40 + [[3, 2]] * 10 + [[0, 5]] * 30)
    LabelPosterior(80 items, mean aleatoric 0.12)
    """

    mean: Array
    aleatoric: Array
    lower: Array
    upper: Array
    majority: Index
    majority_probability: Array
    n_labels: IntArray
    entropy: str
    confidence: float

    def __repr__(self) -> str:
        return f"LabelPosterior({len(self.mean)} items, mean aleatoric {self.aleatoric.mean():.2f})"

    def as_dict(self) -> dict[str, Any]:
        """Return one value per item by column, without the label distributions."""
        return {
            "aleatoric": self.aleatoric,
            "aleatoric_lower": self.lower,
            "aleatoric_upper": self.upper,
            "majority": self.majority,
            "majority_probability": self.majority_probability,
            "n_labels": self.n_labels,
        }

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return one row per item as a dataframe; "pandas", "polars" or "pyarrow"."""
        return to_frame(self.as_dict(), backend)


class _Facts(NamedTuple):
    """What is known given each distinct row of counts."""

    mean: Array
    aleatoric: Array
    lower: Array
    upper: Array
    majority: Index
    majority_probability: Array


def label_posterior(
    counts: Any,
    *,
    entropy: str = "shannon",
    confidence: float = 0.95,
    progress: Callable[[int, int], object] | None = None,
) -> LabelPosterior:
    """Say what each item is like, from the labels of all items and no model.

    An item with three labels that agree may still be torn: how likely that is, the other items
    tell. All items share a prior, a mixture of Dirichlet distributions that keeps the identity of
    classes, and each has a posterior given its own labels. The labels of an item are taken out of
    its prior, to first order, so that they do not count twice.

    Limits cover the aleatoric uncertainty of items at their level on average over items, if there
    are a hundred items or more and their labels are independent. Majorities are claimed about as
    often as they are right: from five labels per item to .05, and to .08 where many items are torn;
    two or three leave open whether items are diffuse or people lapse, so claims can be off by .1.
    From one label per item everything but `mean` is a guess.

    Parameters
    ----------
    counts : array or sparse matrix of shape (n_items, n_classes)
        Label counts; totals may differ, and items without labels are allowed.
    entropy : {"shannon", "ordinal"}
        Measure of uncertainty: nats, or half the mean distance of two labels on a scale.
    confidence : float, default=0.95
        Of each item's limits.
    progress : callable, optional
        Called with how many distinct rows of counts are done, and how many there are.

    Returns
    -------
    LabelPosterior
        Label distribution, aleatoric uncertainty with limits, and majority of each item. It does
        not depend on the order of the items.

    Examples
    --------
    >>> from hocal.calibration import label_posterior
    >>> counts = [[5, 0, 0]] * 40 + [[0, 5, 0]] * 40 + [[0, 3, 2]] * 20
    >>> posterior = label_posterior(counts)
    >>> bool(posterior.aleatoric[0] < 0.1 < 0.5 < posterior.aleatoric[80])
    True
    >>> posterior.majority[[0, 40, 80]].tolist()
    [0, 1, 1]
    """
    check_choice(entropy, "entropy", ENTROPIES)
    confidence = check_fraction(confidence, "confidence")
    checked = check_counts(counts, minimum_total=0)
    totals = check_labels_alone(checked, stacklevel=3)
    found = distinct_rows(checked)
    prior = fit_label_mixture(found.unique, found.multiplicity.astype(np.float64))
    facts = _describe(prior, found.unique, entropy, confidence, progress)
    columns = {name: values[found.inverse] for name, values in facts._asdict().items()}
    return LabelPosterior(
        **columns, n_labels=totals.astype(np.int64), entropy=entropy, confidence=confidence
    )


def _describe(
    prior: LabelMixture,
    snapshots: Counts,
    entropy: str,
    confidence: float,
    progress: Callable[[int, int], object] | None,
) -> _Facts:
    """Go through distinct rows of counts, some at a time."""
    n_rows, n_classes = snapshots.shape
    n_draws = int(np.clip(MAX_DRAWN // (n_rows * n_classes), FEWEST_DRAWS, MOST_DRAWS))
    largest = max(len(prior.weights), n_draws * n_classes)
    step = max(BLOCK_NUMBERS // largest, 1)
    generator = np.random.default_rng(0)
    log_likelihood = log_likelihoods(prior.parameters)
    expected = _EXPECTED[entropy](prior.parameters)
    blocks = []
    for start in range(0, n_rows, step):
        own = as_dense(snapshots[start : start + step])
        logs = log_likelihood(own)
        likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights = _normalise(likelihood * prior.without(_normalise(likelihood * prior.weights)))
        draws = _draw(prior, weights, own, n_draws, generator)
        ends = _limits(draws, entropy, confidence)
        blocks.append(_summarise(prior, weights, own, draws, expected, ends))
        if progress is not None:
            progress(min(start + step, n_rows), n_rows)
    return _Facts(*map(np.concatenate, zip(*blocks, strict=True)))


def _normalise(weights: Array) -> Array:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _draw(
    prior: LabelMixture, weights: Array, own: IntArray, n_draws: int, generator: np.random.Generator
) -> Array:
    """Draw label distributions of each row, (n_rows, n_draws, n_classes)."""
    n_rows, n_components = weights.shape
    ends = np.cumsum(weights, axis=1) + np.arange(n_rows)[:, None]  # one row after the other
    places = (np.arange(n_draws) + 0.5) / n_draws  # evenly: less noise than at random
    wanted = (np.arange(n_rows)[:, None] + places).ravel()
    chosen = np.searchsorted(ends.ravel(), wanted).reshape(n_rows, n_draws)
    chosen = np.clip(chosen - np.arange(n_rows)[:, None] * n_components, 0, n_components - 1)
    draws = generator.standard_gamma(prior.parameters[chosen] + own[:, None]) + TINY
    return np.asarray(draws / draws.sum(axis=2, keepdims=True))


def _summarise(
    prior: LabelMixture,
    weights: Array,
    own: IntArray,
    draws: Array,
    expected: Expected,
    ends: tuple[Array, Array],
) -> _Facts:
    """Return what is known about some rows."""
    total = prior.total + own.sum(axis=1, keepdims=True)  # (n_rows, n_components)
    shared = weights / total
    mean = shared @ prior.parameters + shared.sum(axis=1, keepdims=True) * own
    lower, upper = ends
    n_rows, n_draws, n_classes = draws.shape
    leading = draws.argmax(axis=2) + n_classes * np.arange(n_rows)[:, None]
    times = np.bincount(leading.reshape(-1), minlength=n_rows * n_classes)
    leads = times.reshape(n_rows, n_classes) / n_draws
    return _Facts(
        mean=mean,
        aleatoric=(weights * expected(own, total)).sum(axis=1),
        lower=lower,
        upper=upper,
        majority=leads.argmax(axis=1),
        majority_probability=leads.max(axis=1),
    )


def _limits(draws: Array, entropy: str, confidence: float) -> tuple[Array, Array]:
    """Return quantiles of the entropy of draws, rounded outwards."""
    measure = get_entropy(entropy)
    n_draws = draws.shape[1]
    values = np.sort(measure.value(draws), axis=1)
    n_outside = int((1 - confidence) / 2 * n_draws)
    lower = np.floor(values[:, n_outside] / STEP + ROUNDING) * STEP
    upper = np.ceil(values[:, n_draws - 1 - n_outside] / STEP - ROUNDING) * STEP
    return lower, np.minimum(upper, measure.maximum(draws.shape[2]))


_EXPECTED: dict[str, Callable[[Array], Expected]] = {
    "shannon": expected_shannon,
    "ordinal": expected_ordinal,
}
