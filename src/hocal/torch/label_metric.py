"""What metrics of label counts share: how they take batches, and what they say of bad ones."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torchmetrics import Metric

from hocal._base.errors import InputError
from hocal._base.validation import check_simplex
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["LabelMetric", "as_array", "as_mixtures"]


class LabelMetric(Metric):
    """What the metrics share: states that are lists of numbers, and the result behind the number.

    A list state is one-dimensional, so that processes whose items have other numbers of atoms, or
    that saw no item at all, can be gathered.
    """

    is_differentiable = False
    full_state_update = False
    _lists: ClassVar[dict[str, torch.dtype]] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name in self._lists:
            self.add_state(name, default=[], dist_reduce_fx="cat")

    def result(self) -> Any:
        """Return what hocal's function of the same name returns on all items of all processes."""
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=bool(self.sync_on_compute)
        ):
            return self._measure()

    def sync(self, *arguments: Any, **options: Any) -> None:
        """Gather the states of all processes; one without items takes part with empty ones."""
        for name, dtype in self._lists.items():
            state = getattr(self, name)
            if isinstance(state, list) and not state:
                state.append(torch.empty(0, dtype=dtype, device=self.device))
        super().sync(*arguments, **options)

    def _measure(self) -> Any:
        raise NotImplementedError

    def _keep(self, **arrays: NDArray[Any]) -> None:
        """Add the numbers of a batch to the lists."""
        for name, array in arrays.items():
            flat = torch.tensor(array.reshape(-1), dtype=self._lists[name], device=self.device)
            getattr(self, name).append(flat)

    def _kept(self, name: str) -> NDArray[Any]:
        """Return all numbers of a list."""
        state = getattr(self, name)
        whole = torch.cat(state) if isinstance(state, list) and state else state
        if isinstance(whole, list) or len(whole) == 0:
            raise InputError("counts", "must have been given to `update` before a result is asked")
        return np.asarray(whole.cpu().numpy())

    def _scalar(self, value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64, device=self.device)


def as_mixtures(predictions: Any) -> Mixtures:
    """Return mixtures of Mixtures, of members or of single predictions."""
    if isinstance(predictions, Mixtures):
        return predictions
    if not isinstance(predictions, Tensor) or predictions.ndim not in (2, 3):
        found = type(predictions).__name__
        if isinstance(predictions, Tensor):
            found = f"shape {tuple(predictions.shape)}"
        rule = "must be Mixtures or a tensor (n_items, n_members, n_classes)"
        remedy = "hocal.torch.as_mixtures takes outputs of other layouts."
        raise InputError("predictions", rule, value=found, remedy=remedy)
    numbers = predictions.detach().to("cpu", torch.float64).numpy()
    p = check_simplex(numbers, "predictions")
    return Mixtures.from_ensemble(p) if p.ndim == 3 else Mixtures.from_points(p)


def as_array(values: Any) -> Any:
    """Return a tensor as an array, and anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
