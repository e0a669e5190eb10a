"""Score predictions of single items by their held-out labels, without knowing any truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, special

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.typing import Array, Counts
from hocal._base.validation import (
    check_array,
    check_counts,
    check_fraction,
    check_same_length,
    check_simplex,
    label_totals,
)
from hocal.calibration.first_order.temperature import FLOOR
from hocal.uncertainty.decomposition import Decomposition
from hocal.uncertainty.entropy import Brier
from hocal.uncertainty.mixtures import Mixtures, check_mixtures

__all__ = [
    "MeanScores",
    "mean_scores",
    "resolution",
    "resolution_columns",
    "resolution_of_columns",
    "score_columns",
    "score_of_columns",
    "snapshot_score",
]

FEWEST_LABELS = 4  # the square of an item's disagreement is estimated from two pairs of labels
N_BINS = 15  # of the expected calibration error, as in most of the literature


class MeanScores(NamedTuple):
    """How good predicted label distributions are, each label counting once; less is better."""

    log_loss: float  #: mean of minus log of the probability of a label, in nats
    brier: float  #: mean squared distance to a label as a corner of the simplex, from 0 to 2
    #: expected calibration error: how far the probability of the top label is from the share of
    #: labels that agree with it, averaged over 15 equal bins of that probability
    calibration_error: float


def resolution(
    parts: Decomposition | ArrayLike, counts: Any, *, confidence: float = 0.95
) -> Interval:
    """Return the share of the differences in disagreement between items that a prediction explains.

    This is R2 of the predicted Brier uncertainty a of each item,

        1 - mean (a - AU*)^2 / var AU*,   AU* = 1 - ||p*||^2,

    where both the error and the variance are estimated without bias from four or more held-out
    labels per item: the truth AU* is not needed. 1 is perfect, 0 is what the mean of all items
    gives, and a negative value is worse than that.

    Parameters
    ----------
    parts : Decomposition or array of shape (n_items,)
        Predicted uncertainty with ``entropy="brier"``, or its aleatoric part.
    counts : array or sparse matrix of shape (n_items, n_classes)
        Labels of the same items that no prediction has seen, four or more per item. Labels that
        the prediction was conditioned on do not count.
    confidence : float, default=0.95
        Of the normal interval, whose standard error is the jackknife's over items.

    Returns
    -------
    Interval
        NaN throughout where the labels show no difference between items; a lower limit of minus
        infinity where all differences hang on one item.

    Examples
    --------
    Half of the items are clear, half are a coin toss, and the prediction knows which.

    >>> import hocal
    >>> counts = [[4, 0], [4, 0], [2, 2], [1, 3], [3, 1], [2, 2]]
    >>> known = hocal.resolution([0, 0, 0.5, 0.5, 0.5, 0.5], counts)
    >>> known.estimate > hocal.resolution([0.4] * 6, counts).estimate
    True
    """
    return resolution_of_columns(resolution_columns(parts, counts), confidence)


def resolution_columns(parts: Decomposition | ArrayLike, counts: Any) -> Array:
    """Return all that `resolution` needs of each item, (n_items, 3)."""
    predicted = _brier_uncertainty(parts)
    checked = check_counts(counts, minimum_total=FEWEST_LABELS, asked=False)
    check_same_length(predicted, checked, ("parts", "counts"))
    observed, squared = _unbiased_squares(checked)
    errors = squared - 2 * predicted * observed + predicted**2
    return np.column_stack([errors, squared, observed])


def resolution_of_columns(columns: Array, confidence: float) -> Interval:
    """Return the resolution of items from what `resolution_columns` says of them."""
    return _jackknife(columns, _explained_share, confidence, most=1.0)


def snapshot_score(mixtures: Mixtures, counts: Any, *, confidence: float = 0.95) -> Interval:
    """Return the mean log-probability per label of held-out label counts; larger is better.

    The sum over items of log P(counts), where P is the distribution of count vectors that the
    item's mixture predicts, is divided by the number of labels. With two or more labels per item
    the score is strictly proper for what they can reveal: nobody scores better on average than the
    true mixture of the items. With one label it is minus the log loss of the mean.

    Parameters
    ----------
    mixtures : Mixtures
        Predictions, one per item.
    counts : array or sparse matrix of shape (n_items, n_classes)
        Labels of the same items that no prediction has seen.
    confidence : float, default=0.95
        Of the normal interval, whose standard error is the jackknife's over items.

    Returns
    -------
    Interval
        In nats per label; minus infinity where labels occurred that were predicted never to.

    Examples
    --------
    >>> import hocal
    >>> coin = hocal.Mixtures.from_points([[0.5, 0.5]] * 3)
    >>> round(hocal.snapshot_score(coin, [[1, 0], [0, 1], [1, 0]]).estimate, 4)
    -0.6931
    """
    return score_of_columns(score_columns(mixtures, counts), confidence)


def score_columns(mixtures: Mixtures, counts: Any) -> Array:
    """Return all that `snapshot_score` needs of each item, (n_items, 2)."""
    checked = check_counts(counts, n_classes=check_mixtures(mixtures).n_classes)
    check_same_length(mixtures, checked, ("mixtures", "counts"))
    logs = mixtures.log_likelihood(checked)
    return np.column_stack([logs, label_totals(checked)])


def score_of_columns(columns: Array, confidence: float) -> Interval:
    """Return the snapshot score of items from what `score_columns` says of them."""
    return _jackknife(columns, _ratio, confidence, most=0.0)


def mean_scores(probabilities: ArrayLike, counts: Any) -> MeanScores:
    """Score label distributions by labels, as people do who look at the mean alone.

    Parameters
    ----------
    probabilities : array of shape (n_items, n_classes)
        Predictions of any origin. For the log loss, zeros count as one in a million.
    counts : array or sparse matrix of shape (n_items, n_classes)
        Labels of the same items that no prediction has seen.

    Returns
    -------
    MeanScores
        Log loss, Brier score and expected calibration error.

    Examples
    --------
    >>> from hocal.calibration.scores import mean_scores
    >>> scores = mean_scores([[0.5, 0.5], [0.5, 0.5]], [[2, 0], [0, 2]])
    >>> [round(score, 3) for score in scores]
    [0.693, 0.5, 0.0]
    """
    p = check_simplex(probabilities, ndim=2)
    checked = check_counts(counts, n_classes=p.shape[1])
    check_same_length(p, checked, ("probabilities", "counts"))
    labels = sparse.coo_array(checked)
    shares = labels.data / labels.data.sum()
    given = p[labels.row, labels.col]
    squares = (p**2).sum(axis=1)[labels.row]
    return MeanScores(
        log_loss=float(-shares @ np.log(np.maximum(given, FLOOR))),
        brier=float(shares @ (squares - 2 * given + 1)),
        calibration_error=_top_label_error(p, checked),
    )


def _top_label_error(p: Array, counts: Counts) -> float:
    """Return the expected calibration error of the top label."""
    rows = np.arange(len(p))
    top = p.argmax(axis=1)
    sureness = p[rows, top]
    agreeing = np.asarray(counts[rows, top]).reshape(-1)
    totals = label_totals(counts)
    bins = np.minimum((sureness * N_BINS).astype(np.intp), N_BINS - 1)
    gaps = np.bincount(bins, agreeing - totals * sureness)
    return float(np.abs(gaps).sum() / totals.sum())


def _brier_uncertainty(parts: Decomposition | ArrayLike) -> Array:
    """Return the predicted Brier uncertainty of each item; refuse that of another entropy."""
    if not isinstance(parts, Decomposition):
        return check_array(parts, "parts", ndim=1)
    if parts.entropy != Brier():
        raise InputError(
            "parts",
            "must be of the Brier entropy, whose truth labels estimate without bias",
            value=str(parts.entropy),
            remedy='Decompose with entropy="brier".',
        )
    return parts.aleatoric


def _unbiased_squares(counts: Counts) -> tuple[Array, Array]:
    """Return unbiased estimates of each item's AU* = 1 - S and of its square, S = ||p*||^2.

    With falling factorials c^(j), E c^(2) / m^(2) = p^2, and products over two classes or c^(4)
    over m^(4) give the terms of S^2.
    """
    totals = label_totals(counts)
    pairs = _sum_classes(counts, 2) / special.poch(totals - 1, 2)
    squares = _sum_classes(counts, 2) ** 2 - _sum_classes(counts, 2, power=2)
    quadruples = squares + _sum_classes(counts, 4)
    return 1 - pairs, 1 - 2 * pairs + quadruples / special.poch(totals - 3, 4)


def _sum_classes(counts: Counts, order: int, *, power: int = 1) -> Array:
    """Return the sum over the classes of the falling factorials of the counts, to a power."""
    if isinstance(counts, np.ndarray):
        return np.asarray((_falling(counts, order) ** power).sum(axis=1))
    values = _falling(counts.data, order) ** power
    summed = sparse.csr_array((values, counts.indices, counts.indptr), shape=counts.shape)
    return np.asarray(summed.sum(axis=1), dtype=np.float64).reshape(-1)


def _falling(values: Any, order: int) -> Array:
    product = np.ones(np.shape(values))
    for step in range(order):
        product *= values - step
    return product


def _explained_share(sums: Array, n_items: float) -> Array:
    """Return R2 from sums over items of the errors, of AU*^2 and of AU*."""
    error, squared, observed = np.moveaxis(sums / n_items, -1, 0)
    variance = squared - observed**2
    return np.asarray(1 - error / np.where(variance > 0, variance, np.nan))


def _ratio(sums: Array, _: float) -> Array:
    return np.asarray(sums[..., 0] / sums[..., 1])


def _jackknife(
    columns: Array, statistic: Callable[[Array, float], Array], confidence: float, *, most: float
) -> Interval:
    """Return a statistic of sums over items with a normal interval by the jackknife.

    Its true value is at most `most`. Where it has no value without some item, nothing else is known
    about it.
    """
    level = check_fraction(confidence, "confidence")
    n_items = len(columns)
    total = columns.sum(axis=0)
    estimate = float(statistic(total, n_items))
    if not np.isfinite(estimate):
        return Interval(estimate, estimate, estimate)
    largest = max(most, estimate)
    if n_items < 2:
        return Interval(estimate, -np.inf, largest)
    left_out = statistic(total - columns, n_items - 1)
    if not np.isfinite(left_out).all():
        return Interval(estimate, -np.inf, largest)
    spread = np.sqrt((n_items - 1) * np.mean((left_out - left_out.mean()) ** 2))
    half = float(special.ndtri(0.5 + level / 2) * spread)
    return Interval(estimate, estimate - half, min(estimate + half, largest))
