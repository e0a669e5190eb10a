"""Cells crossed with groups of the items: an aspect, a language, a hospital beside a prediction.

What a model predicts is one thing that is known about an item before its labels; which group it
belongs to is another. Cells of one group hold no items of another, so that every certificate and
every average is about one group, and a model of items learns what the groups differ in.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index
from hocal._base.validation import as_array, check_kind, check_same_length
from hocal.cells.protocol import CellLayout, Frame, Partition, check_n_cells, find_partition

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["CrossedPartition", "cross", "group_in_engine", "group_names", "group_texts"]

# Each is a column of numbers of a model of items, and needs items of its own in every cell: a
# column with more values is rather a name than a group.
MOST_GROUPS = 100
_WHOLE = 2**53  # below it a float that is whole is that integer and no other
_INNER = "inner."  # what files call that which the inner partition has learned


class CrossedPartition(Partition, name="CrossedPartition"):
    """Cells of another partition, apart for each group of items; groups come with the data.

    Cell ``group * n + cell``, where n is the number of cells of the other partition. Made by
    ``SnapshotCalibrator().fit(probabilities, counts, by=groups)``.

    Parameters
    ----------
    groups : sequence of str
        What the groups are called.
    title : str, default="group"
        What they are groups of, as in "aspect".
    inner : str, default="TopLabelPartition"
        Name of the class of the other partition.
    settings : dict, optional
        Its parameters.

    Examples
    --------
    >>> from hocal.cells import CrossedPartition
    >>> partition = CrossedPartition(["style", "truth"], "aspect").fit([[0.5, 0.5]])
    >>> partition.assign([[0.3, 0.7], [0.3, 0.7]], cells=["style", "truth"]).tolist()
    [17, 37]
    >>> partition.describe(37, ["bad", "good"])
    'aspect truth, good, 70 to 80%'
    """

    inner_: Partition

    takes_cells: ClassVar[bool] = True
    takes_groups: ClassVar[bool] = True

    def __init__(
        self,
        groups: Sequence[str],
        title: str = "group",
        inner: str = "TopLabelPartition",
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.groups = groups
        self.title = title
        self.inner = inner
        self.settings = settings

    def __str__(self) -> str:
        return f"{self._make_inner()}, for each of {len(self.groups)} groups of {self.title}"

    @property
    def learns_from_predictions(self) -> bool:
        """Whether the other partition does."""
        return self._make_inner().learns_from_predictions

    @property
    def n_item_columns(self) -> int:
        """One column of numbers for each group."""
        return len(self.groups)

    def item_columns(self, cells: Index) -> Array:
        """Return 1 for the group of each item and 0 for the others, (n_items, n_groups)."""
        group = cells // self.inner_.n_cells_
        return np.asarray(group[:, None] == np.arange(len(self.groups)), dtype=np.float64)

    @property
    def crosses_in_engine(self) -> bool:
        """Whether an engine can compute the cells of the other partition."""
        return self._make_inner().works_in_engine

    def cross_in_engine(self, frame: Frame, columns: Sequence[str], by: str) -> Frame:
        """Add the column `cell` to a narwhals frame with the groups in a column of text.

        `columns` name the probabilities of the classes, float64. A group that is not known is in
        cell -1 or below.
        """
        import narwhals as nw

        inside = self.inner_.locate_in_engine(frame, columns)
        group = nw.lit(-1.0)
        for number, name in enumerate(self.groups):
            own = nw.lit(float(number))
            group = nw.when(nw.col(by) == name).then(own).otherwise(group)
        cell = group * self.inner_.n_cells_ + nw.col("cell")
        return inside.with_columns(cell.alias("cell"))

    def describe(self, cell: int, class_names: Sequence[str]) -> str:
        """Name the group, then the cell of the other partition."""
        group, inside = divmod(cell, self.inner_.n_cells_)
        return f"{self.title} {self.groups[group]}, {self.inner_.describe(inside, class_names)}"

    def state(self) -> dict[str, Any]:
        """Return what the other partition has learned, and how its cells lie."""
        layout = self.inner_.layout_
        learned = {f"{_INNER}{name}": value for name, value in self.inner_.state().items()}
        return learned | {f"{_INNER}group": layout.group, f"{_INNER}level": layout.level}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` returned."""
        learned = {name.removeprefix(_INNER): value for name, value in state.items()}
        layout = CellLayout(learned.pop("group"), learned.pop("level"))
        self.inner_ = self._make_inner()
        self.inner_.n_classes_ = self.n_classes_
        self.inner_.n_cells_ = len(layout.group)
        self.inner_.layout_ = layout
        self.inner_.restore(learned)

    def check_restored(self) -> None:
        """Refuse cells from a file that are not those of its groups and of the other partition."""
        self.inner_.check_restored()
        n_cells, layout = self._cross()
        if n_cells != self.n_cells_ or not all(map(np.array_equal, layout, self.layout_)):
            found = f"{self.n_cells_} cells for {self}"
            raise InputError("partition", "must have the cells of its parameters", value=found)

    def _learn(self, p: Array) -> tuple[int, CellLayout]:
        self.inner_ = self._make_inner().fit_checked(p)
        return self._cross()

    def _lay_out(self, n_classes: int) -> tuple[int, CellLayout]:
        self.inner_ = self._make_inner().fit_classes(n_classes)
        return self._cross()

    def _take_cells(self, p: Array, cells: ArrayLike | None) -> Index:
        if cells is None:
            known = ", ".join(map(repr, self.groups))
            rule = f"must name the group of each item, as in the fit: {self.title} {known}"
            raise InputError("by", rule, value="none")
        group = self._find(group_texts(cells))
        check_same_length(p, group, ("probabilities", "by"))
        return np.asarray(group * self.inner_.n_cells_ + self.inner_.assign_checked(p))

    def _make_inner(self) -> Partition:
        module = self.inner.partition(":")[0] if ":" in self.inner else ""
        kind = find_partition(self.inner, module=module)
        if kind.takes_cells:
            rule = "must compute its cells to be crossed with groups"
            remedy = "Cross the cells that come with the data beforehand."
            raise InputError("partition", rule, value=kind.__name__, remedy=remedy)
        return kind(**({} if self.settings is None else self.settings))

    def _cross(self) -> tuple[int, CellLayout]:
        """Return the number of all cells and their layout: the same lines again for each group."""
        inner = self.inner_
        n_groups = len(self.groups)
        if isinstance(self.groups, str) or not 0 < n_groups == len(set(self.groups)):
            raise InputError("groups", "must be different names", value=repr(self.groups))
        check_n_cells(n_groups, "by", per=inner.n_cells_)
        n_lines = int(inner.layout_.group.max()) + 1
        lines = np.repeat(np.arange(n_groups), inner.n_cells_) * n_lines
        layout = CellLayout(
            lines + np.tile(inner.layout_.group, n_groups), np.tile(inner.layout_.level, n_groups)
        )
        return n_groups * inner.n_cells_, layout

    def _find(self, texts: NDArray[np.str_]) -> Index:
        """Return the number of each item's group; refuse groups that the fit has not seen."""
        known = np.array(list(self.groups), dtype=np.str_)
        order = np.argsort(known)
        place = np.minimum(np.searchsorted(known, texts, sorter=order), len(known) - 1)
        found = order[place]
        unknown = np.flatnonzero(known[found] != texts)
        if len(unknown):
            refuse_group(str(texts[unknown[0]]), self.groups, row=int(unknown[0]))
        return np.asarray(found, dtype=np.intp)


def refuse_group(name: str, groups: Sequence[str], row: int | None = None) -> None:
    """Raise the InputError for a group that the fit has not seen."""
    raise InputError(
        "by",
        f"must be one of the groups of the fit, {', '.join(map(repr, groups))}",
        value=repr(name),
        row=row,
        remedy="Nothing was learned about others: fit again with labels of that group, or leave "
        "its items out.",
    )


def cross(partition: Partition, by: ArrayLike, *, title: str | None = None) -> CrossedPartition:
    """Return a partition, not fitted, apart for each group that is found.

    Parameters
    ----------
    partition : Partition
        One that computes its cells.
    by : array of shape (n_items,)
        The group of each item; the name of a pandas series is its title.
    title : str, optional
        What the groups are groups of.
    """
    shown = getattr(by, "name", None) if title is None else title
    title = check_kind(str(shown or "group"), "title", str)
    names = group_names(group_texts(by))
    settings = partition.get_params(deep=False)
    crossed = CrossedPartition(names, title, partition.registered_name, settings or None)
    crossed.learns_from_predictions  # noqa: B018 - refuses a partition that takes cells
    return crossed


def group_names(texts: ArrayLike) -> list[str]:
    """Return the groups that are found, in order; refuse so many that each holds few items."""
    names = sorted(map(str, np.unique(np.asarray(texts))))
    if len(names) > MOST_GROUPS:
        raise InputError(
            "by",
            f"must have at most {MOST_GROUPS} groups",
            value=f"{len(names):,}, such as {names[0]!r}",
            remedy="Choose something that many items share, or put groups together.",
        )
    return names


def group_texts(by: ArrayLike) -> NDArray[np.str_]:
    """Return groups as text, one for each item: 1, 1.0 and "1" are the same group."""
    values = as_array(by, "by")
    if values.ndim != 1 or not len(values):
        raise InputError("by", "must hold one group for each item", value=f"shape {values.shape}")
    if values.dtype.kind not in "bfO":
        return values.astype(np.str_)
    if values.dtype.kind == "O":
        listed = values.tolist()
        _refuse_gap(np.array([_is_gap(value) for value in listed]))
        return np.array([_group_text(value) for value in listed], dtype=np.str_)
    if values.dtype.kind == "f":
        _refuse_gap(~np.isfinite(values))
    found, place = np.unique(values, return_inverse=True)
    return np.array([_group_text(value) for value in found.tolist()], dtype=np.str_)[place]


def group_in_engine(frame: nw.LazyFrame[Any], column: str) -> nw.Expr:
    """Return a column as text as `group_texts` does, inside an engine; gaps stay gaps.

    Engines write fractions and truth values each in a way of their own, so that these are named
    here, one by one; more than a fit takes are refused whatever they are called.
    """
    import narwhals as nw

    value = nw.col(column)
    dtype = frame.collect_schema()[column]
    as_it_is = value.cast(nw.String)
    if not (dtype.is_float() or dtype.is_decimal() or dtype == nw.Boolean):
        return as_it_is
    found = frame.select(column).unique().collect()[column].to_list()
    if len(found) > MOST_GROUPS + 1:  # a gap may be among them
        return as_it_is
    named = nw.lit(None, nw.String)
    for each in found:
        if not _is_gap(each):
            named = nw.when(value == each).then(nw.lit(_group_text(each))).otherwise(named)
    return named


def _group_text(value: Any) -> str:
    """Return what a group is called, whatever the others are: whole numbers as integers."""
    if isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, numbers.Integral):
        number = float(value)
        exact = number.is_integer() and abs(number) < _WHOLE
        return str(int(number)) if exact else repr(number)
    return str(value)


def _is_gap(value: Any) -> bool:
    """Tell whether a value is None, no number, infinite, or the gap of some library of tables."""
    if value is None or (isinstance(value, (float, np.floating)) and not np.isfinite(value)):
        return True
    same = value == value
    return not (isinstance(same, (bool, np.bool_)) and same)


def _refuse_gap(gaps: NDArray[np.bool_]) -> None:
    if gaps.any():
        row = int(np.flatnonzero(gaps)[0])
        remedy = "Give such items a group of their own, such as 'unknown'."
        raise InputError("by", "must name the group of each item", row=row, remedy=remedy)
