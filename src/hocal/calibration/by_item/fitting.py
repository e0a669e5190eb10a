"""Learn the mixtures of items from several labels per item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from hocal._base.errors import InputError
from hocal._base.fingerprints import fingerprint
from hocal._base.typing import Array, Counts, Index
from hocal._base.validation import check_cells, check_same_length
from hocal.calibration.by_item.anchors import (
    anchor_brier,
    anchor_shannon,
    choose_half_way,
    left_open,
)
from hocal.calibration.by_item.columns import (
    Floats,
    Scale,
    at_least,
    disagreement_columns,
    entropy_of_rows,
    mixture_columns,
)
from hocal.calibration.by_item.components import (
    AROUND_PREDICTION,
    BEYOND_TOP,
    Labels,
    labels_of,
)
from hocal.calibration.by_item.disagreement import fit_disagreement, observed_disagreement
from hocal.calibration.by_item.likeness import (
    MOST_CLASSES,
    POWERS,
    Likeness,
    count_together,
    likeness_of,
    make_alike,
)
from hocal.calibration.by_item.model import ItemModel, Items, scaled_inputs
from hocal.calibration.by_item.penalised_fits import FoldedParameters
from hocal.calibration.by_item.settling import Unsettled, unsettled
from hocal.calibration.by_item.shapes import SPLIT_POOL, all_pool, all_shapes, split_shapes
from hocal.calibration.by_item.stacking import choose_ways
from hocal.calibration.by_item.temperatures import fit_temperatures, temper
from hocal.calibration.by_item.top_shares import (
    TopShares,
    component_log_likelihood,
    top_shares,
)
from hocal.calibration.by_item.weights import Shapes, fit_weights, logits_of, softmax
from hocal.calibration.first_order.recalibration import CrossFitted

__all__ = ["FEWEST_ITEMS", "fit_items"]

FEWEST_ITEMS = 20  # from which mixtures of items are learnt; below, cells alone know as much
SAMPLE_ITEMS = 30_000  # from which shapes are learnt: more would change them by less than noise
SAMPLE_ENTRIES = 10_000_000  # items x classes of the sample, 80 MB
LEAST_SAMPLE = 5_000  # items in any case
OUT_OF_FOLD_BLOCKS = 8  # of items that are predicted at once: enough for several threads
# Items whose labels know the mean disagreement as well as the levels of cells do: their squared
# relative noise is 3 / n, and the levels are off by some 4%.
LEVEL_ITEMS = 2000
# Nats per label by which likeness must tell others' labels better than its absence does: .01 to .06
# on real scales.  Where classes merely look alike (CIFAR-10H, ImageNet-16H: .001 to .008) it makes
# neither what own labels say of disagreement nor the averages of cells better.
LEAST_GAIN = 0.01
FEWEST_GAIN = 5.0  # nats of all items together: less may be chance
GAIN_ITEMS = 5_000  # by which it is judged
GAIN_STEPS = 30  # of expectation maximisation


class _Sample(NamedTuple):
    """Items from which shapes are learnt, sorted by fold and then by what they hold."""

    items: Items
    counts: Array  #: (n_items, n_classes)
    folds: Index  #: (n_items,)
    recalibrated: Array  #: (n_items, n_classes) by the other folds


def fit_items(
    items: Items, counts: Counts, first: CrossFitted, levels: Array, folds: Index
) -> ItemModel:
    """Learn the mixtures of items.

    The order of the rows does not matter.  Weights are learnt from a sample of the items when there
    are many; the recalibration and the levels of cells rest on all of them.

    Parameters
    ----------
    items : Items
        Predictions of the members of an ensemble, or of one model, features that may tell where
        people disagree, and the cells of the items.
    counts : array of shape (n_items, n_classes)
        Labels of each item by class, dense or CSR, at least one per item.
    first : CrossFitted
        Recalibrations of the same items, by the same folds.
    levels : array of shape (1 + n_folds, n_cells, 2)
        Aleatoric uncertainty of each cell, Brier and Shannon in nats: estimated from all items,
        then without each fold. NaN where nothing is known.
    folds : array of shape (n_items,)
        Fold of each item, from 0.
    """
    members, features, cells = items
    n_items = len(members)
    check_same_length(members, folds, ("members", "folds"))
    n_folds = int(folds.max()) + 1
    if levels.ndim != 3 or levels.shape[::2] != (1 + n_folds, 2):
        rule = f"must have shape ({1 + n_folds}, n_cells, 2)"
        raise InputError("levels", rule, value=f"shape {levels.shape}")
    check_cells(cells, n_items, n_cells=levels.shape[1])
    labels = sparse.csr_array(counts)
    inputs = np.zeros((n_items, 0)) if features is None else features
    order = np.lexsort((fingerprint(members, labels, inputs, cells[:, None]), folds))
    with threadpool_limits(limits=1, user_api="blas"):
        sample = _take_sample(items, labels, folds, first, order)
        scaled = _scale_levels(levels, labels[order], items.cells[order], folds[order])
        model = _learn(sample, first, scaled)
        uncertainty = _out_of_fold(model, items, folds, order)
    return replace(model, out_of_fold=uncertainty)


def _out_of_fold(model: ItemModel, items: Items, folds: Index, order: Index) -> Array:
    """Return aleatoric and epistemic uncertainty of each item by others' labels, (2, n_items)."""
    uncertainty = np.empty((2, len(order)))
    height = OUT_OF_FOLD_BLOCKS * items.block_height
    starts = np.searchsorted(folds[order], np.arange(int(folds.max()) + 2))
    for first, last in pairwise(starts.tolist()):
        for start in range(first, last, height):
            rows = order[start : min(start + height, last)]
            mixtures = model.predict_without(folds[rows], *items.take(rows))
            predictive = entropy_of_rows(mixtures.prediction)
            aleatoric = np.minimum(mixtures.aleatoric(), predictive)  # but for rounding it is
            uncertainty[:, rows] = aleatoric, predictive - aleatoric
    return uncertainty


def _take_sample(
    items: Items, counts: sparse.csr_array, folds: Index, first: CrossFitted, order: Index
) -> _Sample:
    """Take the first rows of each fold in an order that depends on what they hold."""
    n_classes = items.members.shape[2]
    n_rows = max(min(SAMPLE_ITEMS, SAMPLE_ENTRIES // n_classes), LEAST_SAMPLE)
    n_folds = int(folds.max()) + 1
    starts = np.searchsorted(folds[order], np.arange(n_folds + 1))
    height = -(-n_rows // n_folds)
    rows = np.concatenate([order[a : min(b, a + height)] for a, b in pairwise(starts)])
    dense = np.asarray(counts[rows].toarray(), dtype=np.float64)
    some = items.take(rows)
    recalibrated = first.out_of_fold(some.members, some.features, folds[rows])
    return _Sample(some, dense, folds[rows], at_least(recalibrated))


def _learn(sample: _Sample, first: CrossFitted, levels: Array) -> ItemModel:
    """Learn everything after the recalibration."""
    items, counts, folds, raw = sample
    features = None if items.features is None else first.final.standardise(items.features)
    columns = disagreement_columns(items.members, features, raw)
    observed = _observe(counts)
    disagreement = fit_disagreement(columns, *observed, folds)
    expected = _by_fold(folds, lambda rows, fold: disagreement.apply(columns[rows], fold))
    tempered_by = Scale.of(mixture_columns(raw, expected))
    inputs = scaled_inputs(raw, expected, tempered_by)
    temperatures = fit_temperatures(raw, inputs, counts, folds)
    mean = _temper_folds(raw, inputs, temperatures, folds)
    weighed_by = Scale.of(mixture_columns(mean, expected))
    inputs = scaled_inputs(mean, expected, weighed_by)
    learnt = _learn_weights(mean, inputs, expected, sample)
    ways = choose_ways(learnt.items.brier, expected, *observed, folds)
    return ItemModel(
        recalibrations=(first.final, *first.without),
        disagreement=disagreement,
        tempered_by=tempered_by,
        temperatures=temperatures,
        weighed_by=weighed_by,
        split=learnt.split,
        weights=learnt.weights,
        likeness=learnt.likeness,
        ways=ways,
        anchors=_anchor_folds(learnt, sample, expected, ways, levels),
        out_of_fold=np.empty((2, 0)),
    )


def _scale_levels(levels: Array, counts: sparse.csr_array, cells: Index, folds: Index) -> Array:
    """Scale the Brier levels of cells so that on average labels differ as often as they do.

    How often two labels differ is known without bias, whatever the method that found the levels,
    but with noise, so that few items scale them part of the way. The Shannon levels stay: what they
    lack or have too much does not grow with the Brier levels.
    """
    totals = np.asarray(counts.sum(axis=1), dtype=float)
    agreeing = np.asarray((counts * counts).sum(axis=1), dtype=float) - totals
    observed, weights = observed_disagreement(totals, agreeing)
    result = levels.copy()
    for place in range(len(levels)):
        rows = (folds != place - 1) & np.isfinite(levels[place, cells]).all(axis=1)
        brier = weights[rows] @ levels[place, cells[rows], 0]
        differ = weights[rows] @ observed[rows]
        if brier > 0 and differ > 0:
            n_items = np.count_nonzero(weights[rows])
            result[place, :, 0] *= (differ / brier) ** (n_items / (n_items + LEVEL_ITEMS))
    return result


def _observe(counts: Array) -> tuple[Array, Array]:
    """Return how often labels of an item differ, and the weight of this number."""
    agreeing = np.einsum("ij,ij->i", counts, counts - 1)
    return observed_disagreement(counts.sum(axis=1), agreeing)


def _by_fold(folds: Index, predict: Callable[[Index, int], Floats], axis: int = -1) -> Array:
    """Return predictions, each by the parameters without its fold; folds are sorted."""
    parts = []
    for fold in np.unique(folds):
        parts.append(predict(np.flatnonzero(folds == fold), int(fold)))
    return np.concatenate(parts, axis=axis)


def _temper_folds(raw: Array, inputs: Array, temperatures: FoldedParameters, folds: Index) -> Array:
    """Return the means of items, each by the temperature without its fold."""

    def predict(rows: Index, fold: int) -> Floats:
        return temper(raw[rows], inputs[:, rows], temperatures.take(fold))

    return at_least(_by_fold(folds, predict, axis=0))


class _Learnt(NamedTuple):
    """What has been learnt about weights."""

    split: FoldedParameters
    weights: FoldedParameters
    likeness: Array  #: (1 + n_folds, n_classes, n_classes), none where all classes are alike
    items: Unsettled  #: of the sample, each by the parameters without its fold


def _learn_weights(mean: Array, inputs: Array, expected: Array, sample: _Sample) -> _Learnt:
    """Learn the weights of the split beyond the top class, then of all components."""
    folds = sample.folds
    labels = labels_of(sample.counts)
    top = top_shares(mean)
    beyond_top = split_shapes(mean, inputs)
    split = _learn_split(top, labels, beyond_top, folds)
    split_logits = _by_fold(
        folds, lambda rows, fold: logits_of(SPLIT_POOL, beyond_top.take(rows), split.take(fold))
    )
    split_weights = softmax(split_logits.copy())
    likeness = _find_likeness(mean, expected, sample)
    alike = make_alike(Likeness(likeness, folds + 1), mean) if likeness.size else None
    shapes, beyond = all_shapes(mean, mean, beyond_top, split_weights, alike)
    _, logs = component_log_likelihood(top, split_weights.T, labels, alike)
    pool = all_pool(mean.shape[1], alike is not None)
    weights = fit_weights(pool, shapes, _likelihoods(logs), folds, int(folds.max()) + 1)
    logits = _by_fold(
        folds, lambda rows, fold: logits_of(pool, shapes.take(rows), weights.take(fold))
    )
    return _Learnt(split, weights, likeness, unsettled(split_logits, beyond, logits, shapes))


def _find_likeness(mean: Array, expected: Array, sample: _Sample) -> Array:
    """Return how alike classes are, or nothing where that does not tell others' labels better."""
    none_found = np.ones((2 + int(sample.folds.max()), 0, 0))
    if not 2 < mean.shape[1] <= MOST_CLASSES:
        return none_found
    together = count_together(mean, expected, sample.counts, sample.folds)
    rows = np.arange(0, len(mean), -(-len(mean) // GAIN_ITEMS))
    labels = labels_of(sample.counts[rows])
    around = AROUND_PREDICTION.log_likelihood(mean[rows], labels)
    fits = []
    for power in (0.0, *POWERS):
        likeness = Likeness(likeness_of(together, power), sample.folds[rows] + 1)
        alike = make_alike(likeness, mean[rows])
        fits.append(_fit_of(np.concatenate([around, alike.log_likelihood(labels)], axis=1)))
    best = int(np.argmax(fits[1:]))
    gain = fits[1 + best] - fits[0]
    if gain < max(LEAST_GAIN * float(sample.counts[rows].sum()), FEWEST_GAIN):
        return none_found
    return likeness_of(together, POWERS[best])


def _fit_of(logs: Array) -> float:
    """Return the log-likelihood under the best weights that all items share."""
    most = logs.max(axis=1)
    likelihood = np.exp(logs - most[:, None])
    weights = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(GAIN_STEPS):
        weights *= (1 / (likelihood @ weights)) @ likelihood / len(logs)
    return float((most + np.log(likelihood @ weights)).sum())


def _learn_split(top: TopShares, labels: Labels, shapes: Shapes, folds: Index) -> FoldedParameters:
    """Learn from the items with labels other than the top class."""
    _, others = top.divide(labels)
    seen = np.flatnonzero(others.totals() > 0)
    logs = BEYOND_TOP.log_likelihood(top.split, others)[seen]
    n_folds = int(folds.max()) + 1
    return fit_weights(SPLIT_POOL, shapes.take(seen), _likelihoods(logs), folds[seen], n_folds)


def _anchor_folds(
    learnt: _Learnt, sample: _Sample, expected: Array, ways: Array, levels: Array
) -> Array:
    """Return the anchors of cells from all items, then without each fold."""
    anchors: list[Array] = []
    n_labels = float(sample.counts.sum(axis=1).mean())
    doubt = left_open(n_labels, sample.counts.shape[1])
    observed, weights = _observe(sample.counts)
    for place, (way, level) in enumerate(zip(ways, levels, strict=True)):
        others = np.flatnonzero(sample.folds != place - 1)
        cells = sample.items.cells[others]
        some = learnt.items.take(others)
        target = some.brier + way * (expected[others] - some.brier)
        half_way = choose_half_way(target, observed[others], weights[others], cells)
        offsets, shannon = anchor_brier(target, cells, level, half_way)
        target += offsets[cells]
        near = float(anchors[0][:, 1].mean()) if anchors else 0.0
        shifts, given_way = anchor_shannon(some, target, cells, shannon, doubt, near)
        anchors.append(np.stack([offsets + given_way, shifts], axis=1))
    return np.stack(anchors)


def _likelihoods(logs: Array) -> Array:
    """Return likelihoods (n_components, n_items), the largest of an item 1."""
    return np.ascontiguousarray(np.exp(logs - logs.max(axis=1, keepdims=True)).T)
