"""Predict a mixture for every item: recalibrate, weigh components, anchor to cells.

1. The prediction is recalibrated with class identity.
2. The disagreement of the item's labels is expected from all that is known, and the prediction is
   flattened or sharpened by a temperature that depends on it. This is the mean of the mixture.
3. Components around the mean are weighed by what is known of the item.
4. The uncertainty of each item is moved part of the way to the disagreement expected of it.
5. That of the items of a cell is moved so that on average they are as uncertain as it is.

For items of the fit there are parameters that have not seen the labels of their fold.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError
from hocal._base.saved_arrays import SavedArrays
from hocal._base.typing import Array, Index
from hocal._base.validation import check_cells, check_same_length
from hocal.calibration.by_item.anchors import N_ANCHORS
from hocal.calibration.by_item.columns import (
    Floats,
    Scale,
    at_least,
    disagreement_columns,
    mixture_columns,
)
from hocal.calibration.by_item.disagreement import DisagreementRegression
from hocal.calibration.by_item.likeness import (
    LEAST_LIKENESS,
    MOST_LIKENESS,
    Likeness,
    make_alike,
)
from hocal.calibration.by_item.mixtures import ItemMixtures
from hocal.calibration.by_item.penalised_fits import FoldedParameters
from hocal.calibration.by_item.settling import settle, unsettled
from hocal.calibration.by_item.shapes import SPLIT_POOL, all_pool, all_shapes, split_shapes
from hocal.calibration.by_item.temperatures import temper
from hocal.calibration.by_item.weights import Pool, logits_of, softmax
from hocal.calibration.first_order.recalibration import Recalibration

__all__ = ["ItemModel", "Items", "scaled_inputs"]

CLIP = 4.0  # spreads: inputs beyond are rare and must not run away
BLOCK_ITEMS = 8_192  # that are predicted at once: larger blocks leave the cache
N_THREADS = 2  # that predict blocks: numpy works outside the interpreter's lock
BLOCK_ENTRIES = 1 << 18  # items x members x classes that are predicted at once
# What arrays from a file may hold.  Fits stay far below: penalties keep parameters near one.
LARGEST_PARAMETER = 1e6  # of temperatures, weights and shifts: sums of them stay finite
LARGEST_WEIGHT = 1e15  # of a regression: its square fits single precision
LARGEST_INPUT = 1e38  # of columns, which are in single precision
SMALLEST_SPREAD = 1e-10  # of columns: `Scale` adds ten times that
ROUNDING = 1e-6  # by which an uncertainty of nothing may come out negative
MOST_UNCERTAIN = 50.0  # nats: the entropy of more classes than there is memory for


class Items(NamedTuple):
    """Some items, and what is known about them."""

    members: Array  #: (n_items, n_members, n_classes)
    features: Array | None  #: (n_items, n_features)
    cells: Index  #: (n_items,)

    def take(self, rows: Any) -> Items:
        """Return some of them."""
        features = None if self.features is None else self.features[rows]
        return Items(self.members[rows], features, self.cells[rows])

    @property
    def block_height(self) -> int:
        """Number of items that are worked on together."""
        step = BLOCK_ENTRIES // max(1, self.members.shape[1] * self.members.shape[2])
        return int(min(max(step, 1), BLOCK_ITEMS))

    def blocks(self, folds: Index) -> Iterator[tuple[int, Any]]:
        """Go through the items of one fold after the other: fold, and rows of a block."""
        step = self.block_height
        found = np.unique(folds)
        for fold in found:
            rows = np.flatnonzero(folds == fold)
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                alone = len(found) == 1  # then rows follow each other, and slices are faster
                yield int(fold), slice(some[0], some[-1] + 1) if alone else some


def scaled_inputs(prediction: Floats, disagreement: Floats, scale: Scale) -> Floats:
    """Return a one and standardised inputs, (n_inputs, n_items)."""
    columns = scale.apply(mixture_columns(prediction, disagreement), CLIP)
    ones = np.ones((1, len(columns)), columns.dtype)
    return np.concatenate([ones, columns.T])


@dataclass(frozen=True, eq=False)
class ItemModel:
    """A fitted model, plain arrays throughout."""

    recalibrations: tuple[Recalibration, ...]  #: of all items, then without each fold
    disagreement: DisagreementRegression
    tempered_by: Scale  #: of the inputs of temperatures
    temperatures: FoldedParameters
    weighed_by: Scale  #: of the inputs of weights
    split: FoldedParameters  #: of the weights of the split beyond the top class
    weights: FoldedParameters  #: of those of all components
    likeness: Array  #: (1 + n_folds, n_classes, n_classes) of classes; none where all are alike
    ways: Array  #: (1 + n_folds,) from mixtures to the expected disagreement, between 0 and 1
    anchors: Array  #: (1 + n_folds, n_cells, 2) of cells: all items, then without each fold
    out_of_fold: Array  #: (2, n_items) aleatoric, epistemic uncertainty of the fit's items, in nats

    @property
    def n_folds(self) -> int:
        """Number of folds of the fit."""
        return len(self.anchors) - 1

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.anchors.shape[1])

    def predict(self, members: Array, features: Array | None, cells: Index) -> ItemMixtures:
        """Return the mixtures of fresh items.

        Parameters
        ----------
        members : array of shape (n_items, n_members, n_classes)
            Predictions of an ensemble's members, or of one model.
        features : array of shape (n_items, n_features), optional
            Those that were given to the fit.
        cells : array of shape (n_items,)
            Cell of each item.
        """
        nowhere = np.full(len(members), -1, dtype=np.intp)
        return self.predict_without(nowhere, members, features, cells)

    def predict_without(
        self, folds: Index, members: Array, features: Array | None, cells: Index
    ) -> ItemMixtures:
        """Return mixtures, each by parameters that have not seen the labels of a fold.

        Parameters
        ----------
        folds : array of shape (n_items,)
            Fold of each item, -1 for one that was not in the fit.
        members, features, cells : arrays
            As for `predict`.
        """
        check_same_length(members, cells, ("members", "cells"))
        check_same_length(members, folds, ("members", "folds"))
        items = Items(members, features, check_cells(cells, len(members), n_cells=self.n_cells))
        prediction = np.empty((len(members), members.shape[2]))
        split = np.empty((len(members), len(SPLIT_POOL.base)))
        weights = np.empty((len(members), len(self._pool(members.shape[2]).base)))

        def work(part: tuple[int, Any]) -> None:
            fold, rows = part
            found = self._predict_block(items.take(rows), fold)
            prediction[rows], split[rows], weights[rows] = found

        with ThreadPoolExecutor(N_THREADS) as threads:
            list(threads.map(work, items.blocks(folds)))
        return ItemMixtures(prediction, split, weights, likeness=self._likeness(folds))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name, for saving."""
        regression = self.disagreement
        arrays = {name: array for name, array in regression._asdict().items() if name != "scale"}
        parts: dict[str, Any] = {
            **{f"recalibration.{at}": fit for at, fit in enumerate(self.recalibrations)},
            "columns": regression.scale,
            "tempered_by": self.tempered_by,
            "temperatures": self.temperatures,
            "weighed_by": self.weighed_by,
            "split": self.split,
            "weights": self.weights,
        }
        for part, values in parts.items():
            arrays |= {f"{part}.{name}": array for name, array in values._asdict().items()}
        own = {"likeness": self.likeness, "ways": self.ways, "anchors": self.anchors}
        return arrays | own | {"out_of_fold": self.out_of_fold}

    @classmethod
    def from_arrays(cls, saved: SavedArrays) -> ItemModel:
        """Return the model whose arrays were saved; their shapes and ranges must fit together."""
        anchors = saved.take("anchors", -1, -1, N_ANCHORS, size=LARGEST_PARAMETER)
        n_fits = len(anchors)
        tempered_by = _scale(saved, "tempered_by")
        weighed_by = _scale(saved, "weighed_by")
        n_inputs = 1 + len(weighed_by.centre)
        places = (saved.within(f"recalibration.{place}.") for place in range(n_fits))
        likeness = _likeness(saved, n_fits)
        every = all_pool(2, likeness.size > 0)  # of the same size whatever the number of classes
        pools = SPLIT_POOL, every
        sizes = [len(pool.base) + pool.n_functions * n_inputs for pool in pools]
        return cls(
            recalibrations=tuple(Recalibration.from_arrays(place) for place in places),
            disagreement=_disagreement(saved, n_fits),
            ways=saved.take("ways", n_fits, least=0.0, most=1.0),
            anchors=anchors,
            out_of_fold=saved.take("out_of_fold", 2, -1, least=-ROUNDING, most=MOST_UNCERTAIN),
            tempered_by=tempered_by,
            temperatures=_folded(
                saved, "temperatures", n_fits - 1, length=1 + len(tempered_by.centre)
            ),
            weighed_by=weighed_by,
            split=_folded(saved, "split", n_fits - 1, length=sizes[0]),
            weights=_folded(saved, "weights", n_fits - 1, length=sizes[1]),
            likeness=likeness,
        )

    def _predict_block(self, items: Items, fold: int) -> tuple[Floats, Floats, Floats]:
        """Return prediction, weights of the split and weights, in single precision inside."""
        fresh = self.recalibrations[fold + 1].apply(items.members, items.features)
        raw = at_least(fresh.astype(np.float32))
        columns = disagreement_columns(items.members, self._standard(items.features), raw)
        disagreement = self.disagreement.apply(columns, fold)
        inputs = scaled_inputs(raw, disagreement, self.tempered_by)
        mean = at_least(temper(raw, inputs, self.temperatures.take(fold)))
        inputs = scaled_inputs(mean, disagreement, self.weighed_by)
        split = split_shapes(mean, inputs)
        split_logits = logits_of(SPLIT_POOL, split, self.split.take(fold))
        exact = _sum_to_one(mean)
        likeness = self._likeness(np.full(len(mean), fold))
        alike = None if likeness is None else make_alike(likeness, exact)
        shapes, beyond = all_shapes(mean, exact, split, softmax(split_logits.copy()), alike)
        logits = logits_of(self._pool(mean.shape[1]), shapes, self.weights.take(fold))
        learnt = unsettled(split_logits, beyond, logits, shapes)
        offset, shift = self.anchors[fold + 1][items.cells].T.astype(np.float32)
        way = np.float32(self.ways[fold + 1])
        target = learnt.brier + way * (disagreement - learnt.brier) + offset
        settled = settle(learnt, target, shift)
        return exact, settled.split.T, settled.weights.T

    def _standard(self, features: Array | None) -> Array | None:
        return None if features is None else self.recalibrations[0].standardise(features)

    def _pool(self, n_classes: int) -> Pool:
        return all_pool(n_classes, self.likeness.size > 0)

    def _likeness(self, folds: Index) -> Likeness | None:
        return Likeness(self.likeness, folds + 1) if self.likeness.size else None


def _sum_to_one(probabilities: Floats) -> Array:
    exact = probabilities.astype(np.float64)
    exact /= exact.sum(axis=1, keepdims=True)
    return exact


def _scale(saved: SavedArrays, name: str) -> Scale:
    centre = saved.take(f"{name}.centre", -1, least=-LARGEST_INPUT, most=LARGEST_INPUT)
    spread = saved.take(
        f"{name}.spread", len(centre), least=SMALLEST_SPREAD, most=2 * LARGEST_INPUT
    )
    return Scale(centre, spread)


def _folded(saved: SavedArrays, name: str, n_folds: int, *, length: int) -> FoldedParameters:
    final = saved.take(f"{name}.final", length, size=LARGEST_PARAMETER)
    return FoldedParameters(
        final, saved.take(f"{name}.without", n_folds, length, size=LARGEST_PARAMETER)
    )


def _likeness(saved: SavedArrays, n_fits: int) -> Array:
    likeness = saved.take("likeness", n_fits, -1, -1, least=LEAST_LIKENESS, most=MOST_LIKENESS)
    if not np.array_equal(likeness, likeness.transpose(0, 2, 1)):
        raise InputError("items.likeness", "must be symmetric")
    return likeness


def _disagreement(saved: SavedArrays, n_fits: int) -> DisagreementRegression:
    scale = _scale(saved, "columns")
    landmarks = saved.take("landmarks", -1, len(scale.centre), size=LARGEST_WEIGHT)
    size = landmarks.shape[0] + landmarks.shape[1]
    middle = saved.take("middle", size, size=LARGEST_WEIGHT)
    coefficients = saved.take("coefficients", n_fits, size, size=LARGEST_WEIGHT)
    level = saved.take("level", least=0.0, most=1.0)
    return DisagreementRegression(scale, landmarks, middle, level, coefficients)
