"""Cells that a function of your own finds, or that come with the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from numpy.typing import ArrayLike

from hocal._base.typing import Array
from hocal._base.validation import check_cells
from hocal.cells.protocol import CellLayout, Partition, check_n_cells

__all__ = ["CallablePartition", "PrecomputedPartition"]


class CallablePartition(Partition, name="CallablePartition"):
    """Cells computed by a function of the predictions.

    Parameters
    ----------
    function : callable
        Maps (n_items, n_classes) predictions to (n_items,) cell numbers from 0.
    n_cells : int, optional
        Number of cells; by default one more than the largest number seen in `fit`.

    Examples
    --------
    >>> from hocal.cells.partitions import CallablePartition
    >>> CallablePartition(lambda p: p[:, 0] > 0.5).fit([[0.2, 0.8], [0.9, 0.1]]).n_cells_
    2
    """

    def __init__(self, function: Callable[[Array], ArrayLike], n_cells: int | None = None) -> None:
        self.function = function
        self.n_cells = n_cells

    @property
    def learns_from_predictions(self) -> bool:
        """Whether the number of cells is still to be seen from predictions."""
        return self.n_cells is None

    def _learn(self, p: Array) -> tuple[int, CellLayout]:
        located = self.function(p)
        cells = check_cells(located, len(p), n_cells=self.n_cells, name="partition(probabilities)")
        n_cells = int(cells.max()) + 1 if self.n_cells is None else self.n_cells
        check_n_cells(n_cells, "partition(probabilities)")
        return n_cells, CellLayout.unordered(n_cells)

    def _lay_out(self, n_classes: int) -> tuple[int, CellLayout]:  # noqa: ARG002
        n_cells = check_n_cells(self.n_cells, "n_cells")
        return n_cells, CellLayout.unordered(n_cells)

    def _locate(self, p: Array) -> ArrayLike:
        return self.function(p)


class PrecomputedPartition(Partition, name="PrecomputedPartition"):
    """Cells that come with the data: pass them as ``cells=`` wherever predictions are passed.

    Parameters
    ----------
    n_cells : int
        Number of cells.

    Examples
    --------
    >>> import hocal
    >>> partition = hocal.PrecomputedPartition(n_cells=3).fit([[0.5, 0.5]])
    >>> partition.assign([[0.5, 0.5], [0.2, 0.8]], cells=[2, 0]).tolist()
    [2, 0]
    """

    takes_cells: ClassVar[bool] = True

    def __init__(self, n_cells: int) -> None:
        self.n_cells = n_cells

    def _lay_out(self, n_classes: int) -> tuple[int, CellLayout]:  # noqa: ARG002 - cells are given
        n_cells = check_n_cells(self.n_cells, "n_cells")
        return n_cells, CellLayout.unordered(n_cells)
