"""Metrics of torchmetrics' kind: batches go in, the numbers of all items of all processes come out.

`update` takes what was predicted for a batch and how its items were labelled, `compute` gives one
number to log, and `result` gives what hocal's function of the same name returns on all items
together, with its limits. How items are cut into batches or spread over processes makes no
difference but for rounding. Under `torch.distributed`, `compute` and `result` gather what all
processes have seen: call them in every process. Each metric says what it keeps; everything is kept
on the metric's device, so move it with ``metric.to(device)`` where the backend needs that.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, ClassVar, Literal

if find_spec("torchmetrics") is None:
    raise ImportError(
        '`hocal.torch.metrics` needs torchmetrics. Install it with: pip install "hocal[torch]"'
    )

import numpy as np
import torch
from torch import Tensor

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.typing import Array
from hocal._base.validation import (
    check_cells,
    check_choice,
    check_dense_counts,
    check_fraction,
    check_integer,
    check_n_resamples,
    check_same_length,
)
from hocal.calibration import against_truth, evaluation
from hocal.calibration.scores import (
    resolution_columns,
    resolution_of_columns,
    score_columns,
    score_of_columns,
)
from hocal.torch.label_metric import LabelMetric, as_array, as_mixtures
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.entropy import Entropy, get_entropy
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.segments import segment_offsets

__all__ = ["AleatoricError", "CalibrationError", "Resolution", "SnapshotScore"]

Predictions = Mixtures | Tensor


class SnapshotScore(LabelMetric):
    """Mean log-probability per label of the labels of all items, as `hocal.snapshot_score`.

    Larger is better. Two numbers are kept for each item, 16 bytes.

    Parameters
    ----------
    confidence : float, default=0.95
        Of the interval that `result` returns.
    **options
        Those of `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch.metrics import SnapshotScore
    >>> metric = SnapshotScore()
    >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([[1, 0]]))
    >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([[0, 2]]))
    >>> round(metric.compute().item(), 4)
    -0.6931
    """

    higher_is_better = True
    _lists: ClassVar[dict[str, torch.dtype]] = {"columns": torch.float64}

    def __init__(self, *, confidence: float = 0.95, **options: Any) -> None:
        super().__init__(**options)
        self.confidence = check_fraction(confidence, "confidence")

    def update(self, predictions: Predictions, counts: Any) -> None:
        """Take a batch.

        Parameters
        ----------
        predictions : Mixtures or Tensor
            Mixtures, as heads, calibrators and `as_mixtures` make them; or probabilities of members
            (n_items, n_members, n_classes), or of one model (n_items, n_classes).
        counts : Tensor or array of shape (n_items, n_classes)
            How many people chose each class; as many labels per item as there are.
        """
        self._keep(columns=score_columns(as_mixtures(predictions), as_array(counts)))

    def compute(self) -> Tensor:
        """Return the score."""
        return self._scalar(self._measure().estimate)

    def _measure(self) -> Interval:
        return score_of_columns(self._kept("columns").reshape(-1, 2), self.confidence)


class Resolution(LabelMetric):
    """Share of the differences in disagreement that is explained, as `hocal.resolution`.

    Larger is better; items need four labels or more. Three numbers are kept for each item, 24
    bytes.

    Parameters
    ----------
    confidence : float, default=0.95
        Of the interval that `result` returns.
    **options
        Those of `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch.metrics import Resolution
    >>> metric = Resolution()
    >>> metric.update(torch.tensor([[1.0, 0.0]] * 50), torch.tensor([[9, 0]] * 50))
    >>> metric.update(torch.tensor([[0.5, 0.5]] * 50), torch.tensor([[4, 5], [6, 3]] * 25))
    >>> round(metric.compute().item(), 2)
    1.0
    """

    higher_is_better = True
    _lists: ClassVar[dict[str, torch.dtype]] = {"columns": torch.float64}

    def __init__(self, *, confidence: float = 0.95, **options: Any) -> None:
        super().__init__(**options)
        self.confidence = check_fraction(confidence, "confidence")

    def update(self, predictions: Predictions, counts: Any) -> None:
        """Take a batch; arguments as in `SnapshotScore.update`."""
        parts = decompose(as_mixtures(predictions), "brier")
        self._keep(columns=resolution_columns(parts, as_array(counts)))

    def compute(self) -> Tensor:
        """Return the resolution; NaN where the labels show no difference between items."""
        return self._scalar(self._measure().estimate)

    def _measure(self) -> Interval:
        return resolution_of_columns(self._kept("columns").reshape(-1, 3), self.confidence)


class AleatoricError(LabelMetric):
    """Error of the predicted aleatoric uncertainty, cell by cell, as `hocal.aleatoric_error`.

    Two numbers are kept for each cell, however many items there are. `result` is the error of each
    cell, NaN where it has no item. A `MetricCollection` takes metrics that agree on the first batch
    for the same: with several entropies in one, turn its `compute_groups` off.

    Parameters
    ----------
    n_cells : int
        Number of cells.
    entropy : str or Entropy, default="shannon"
        Measure of uncertainty.
    base : float, optional
        Base of Shannon's logarithm, 2 for bits.
    average : {"items", "cells"}
        Whether every item or every cell weighs the same in `compute`.
    **options
        Those of `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch.metrics import AleatoricError
    >>> metric = AleatoricError(1, base=2)
    >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([[5, 5]]), torch.tensor([0]))
    >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([[10, 0]]), torch.tensor([0]))
    >>> metric.compute().item()
    0.5
    """

    higher_is_better = False
    gaps: Tensor
    n_items: Tensor

    def __init__(
        self,
        n_cells: int,
        *,
        entropy: str | Entropy = "shannon",
        base: float | None = None,
        average: Literal["items", "cells"] = "items",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.n_cells = check_integer(n_cells, "n_cells", minimum=1)
        self.entropy = get_entropy(entropy, base=base)
        self.average: Any = check_choice(average, "average", against_truth.AVERAGES)
        no_gaps = torch.zeros(self.n_cells, dtype=torch.float64)
        no_items = torch.zeros(self.n_cells, dtype=torch.int64)
        self.add_state("gaps", default=no_gaps, dist_reduce_fx="sum")
        self.add_state("n_items", default=no_items, dist_reduce_fx="sum")

    def update(self, predictions: Predictions, counts: Any, cells: Any) -> None:
        """Take a batch.

        Parameters
        ----------
        predictions, counts
            As in `SnapshotScore.update`.
        cells : Tensor or array of shape (n_items,)
            Cell of each item, as a partition assigns it.
        """
        parts = decompose(as_mixtures(predictions), self.entropy)
        gaps = against_truth.aleatoric_gaps(parts, as_array(counts))
        where = check_cells(as_array(cells), len(gaps), n_cells=self.n_cells)
        sums = np.bincount(where, gaps, minlength=self.n_cells)
        n_items = np.bincount(where, minlength=self.n_cells)
        self.gaps = self.gaps + torch.from_numpy(sums).to(self.device)
        self.n_items = self.n_items + torch.from_numpy(n_items).to(self.device)

    def compute(self) -> Tensor:
        """Return the mean error over items or cells."""
        return self._scalar(float(self._average(self.average)))

    def _measure(self) -> Array:
        return np.asarray(self._average(None))

    def _average(self, average: Literal["items", "cells"] | None) -> float | Array:
        n_items = self.n_items.cpu().numpy()
        if not n_items.any():
            raise InputError("counts", "must have been given to `update` before a result is asked")
        return against_truth.average_gaps(self.gaps.cpu().numpy(), n_items, average)


class CalibrationError(LabelMetric):
    """Distance of predicted from observed snapshots, as `hocal.calibration_error`.

    `compute` is its mean over items, and `result` has its noise floor and p-value. These are
    simulated from the predictions, so all of them are kept: with m atoms and l classes,
    8 (m (l + 1) + l + 2) bytes for each item, 1 kB for ten members and ten classes, and in each
    process as much for the items of all when it computes. `forward` simulates for each batch: call
    `update`.

    Parameters
    ----------
    k : int, optional
        Labels in a snapshot; the smallest total of an item by default.
    n_resamples : int, default=100
        Simulations of the noise floor.
    random_state : int, default=0
        Seed, the same in all processes.
    **options
        Those of `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch.metrics import CalibrationError
    >>> metric = CalibrationError(k=2)
    >>> cells = torch.zeros(50, dtype=torch.long)
    >>> metric.update(torch.full((50, 2), 0.5), torch.tensor([[2, 0]] * 50), cells)
    >>> metric.update(torch.full((50, 2), 0.5), torch.tensor([[0, 2]] * 50), cells)
    >>> round(metric.compute().item(), 3), metric.result().p_value < 0.05
    (0.5, True)
    """

    higher_is_better = False
    _lists: ClassVar[dict[str, torch.dtype]] = {
        "points": torch.float64,
        "weights": torch.float64,
        "sizes": torch.int64,
        "counts": torch.int64,
        "cells": torch.int64,
    }

    def __init__(
        self,
        *,
        k: int | None = None,
        n_resamples: int = 100,
        random_state: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.k = None if k is None else check_integer(k, "k", minimum=1)
        self.n_resamples = check_n_resamples(n_resamples)
        self.random_state = check_integer(random_state, "random_state", minimum=0)
        self._n_classes: int | None = None

    def update(self, predictions: Predictions, counts: Any, cells: Any) -> None:
        """Take a batch; arguments as in `AleatoricError.update`."""
        mixtures = as_mixtures(predictions)
        n_classes = self._n_classes or mixtures.n_classes
        if mixtures.n_classes != n_classes:
            rule = f"must have the {n_classes} classes of earlier batches"
            raise InputError("predictions", rule, value=mixtures.n_classes)
        minimum = self.k or 1
        labels = check_dense_counts(as_array(counts), n_classes=n_classes, minimum_total=minimum)
        check_same_length(mixtures, labels, ("predictions", "counts"))
        where = check_cells(as_array(cells), len(labels))
        atom = mixtures.pairs(mixtures.index).atom
        self._n_classes = n_classes
        self._keep(
            points=mixtures.points_at(atom),
            weights=mixtures.weights[atom],
            sizes=mixtures.sizes[mixtures.index],
            counts=labels,
            cells=where,
        )

    def compute(self) -> Tensor:
        """Return the mean distance over items."""
        return self._scalar(self._measure().mean)

    def reset(self) -> None:
        """Forget all batches."""
        super().reset()
        self._n_classes = None

    def _measure(self) -> evaluation.CalibrationError:
        cells = self._kept("cells")
        counts = self._kept("counts").reshape(len(cells), -1)
        points = self._kept("points").reshape(-1, counts.shape[1])
        offsets = segment_offsets(self._kept("sizes"))
        mixtures = Mixtures.trusted(points, self._kept("weights"), offsets, np.arange(len(cells)))
        return evaluation.calibration_error(
            mixtures,
            counts,
            k=self.k,
            cells=cells,
            n_resamples=self.n_resamples,
            random_state=self.random_state,
        )
