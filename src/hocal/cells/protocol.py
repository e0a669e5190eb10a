"""What a partition says about itself, so that one of your own works wherever one of hocal does.

A partition sorts items into cells by what a model predicts for them, never by their labels: the
guarantees rest on that. A class that derives from `Partition` answers up to six questions:

================================  =========================================================
does it learn from predictions    `_learn` if so, `_lay_out` if the number of classes will do
in which cell is an item          `_locate`
does the cell come with the data  `takes_cells`
what is cell c called             `describe`
can an engine find the cell       `_locate_in_engine`
what must a file remember         `state` and `restore`
================================  =========================================================

The first two must be answered, all others have an answer that is always right.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index
from hocal._base.validation import (
    check_cells,
    check_integer,
    check_kind,
    check_n_classes,
    check_names,
    check_simplex,
)

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["CellLayout", "Partition", "check_n_cells", "find_partition", "known_partitions"]

Frame: TypeAlias = "nw.LazyFrame[Any]"

# Cells of a partition.  The mixture of each is fitted and kept: so many take minutes and 2 GB.
MAX_CELLS = 50_000
_SHAPE = ("n_classes_", "n_cells_", "layout_")  # what every fitted partition has
_KNOWN: dict[str, type[Partition]] = {}


class CellLayout(NamedTuple):
    """How the cells of a partition lie to each other, for borrowing strength between them."""

    #: (n_cells,) cells of one group form a line; for top-label partitions, the top label
    group: Index
    level: Index  #: (n_cells,) place on that line; cells of one level in all groups are alike

    @classmethod
    def grid(cls, n_groups: int, n_levels: int) -> CellLayout:
        """Lay out cells as groups of equally many levels; cell ``group * n_levels + level``."""
        group = np.repeat(np.arange(n_groups), n_levels)
        level = np.tile(np.arange(n_levels), n_groups)
        return cls(group, level)

    @classmethod
    def unordered(cls, n_cells: int) -> CellLayout:
        """Lay out cells without neighbours: each is a line of its own, all on one level."""
        return cls(np.arange(n_cells), np.zeros(n_cells, dtype=np.intp))


class Partition(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of all partitions: validates, and asks the class that derives from it.

    A class that derives from it is known to `hocal.load` by the module and the name it was defined
    under, as in ``"lab.cells:TopTwoPartition"``, or by a name of its own choice that survives a
    move: ``class TopTwoPartition(Partition, name="lab top two")``.

    Attributes
    ----------
    n_classes_ : int
        Number of label classes, once fitted.
    n_cells_ : int
        Number of cells, once fitted.
    layout_ : CellLayout
        How they lie to each other, once fitted.

    Examples
    --------
    Items that are torn between the same two classes share a cell:

    >>> import numpy as np
    >>> from hocal.cells import CellLayout, Partition
    >>> class TopTwoPartition(Partition):
    ...     def _lay_out(self, n_classes):  # the number of classes is all it needs
    ...         return n_classes**2, CellLayout.unordered(n_classes**2)
    ...
    ...     def _locate(self, p):
    ...         first, second = np.argsort(-p, axis=1, kind="stable")[:, :2].T
    ...         return first * self.n_classes_ + second
    ...
    ...     def describe(self, cell, class_names):
    ...         first, second = divmod(cell, self.n_classes_)
    ...         return f"{class_names[first]}, then {class_names[second]}"
    >>> partition = TopTwoPartition().fit([[0.2, 0.5, 0.3]])
    >>> partition.assign([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]).tolist()
    [5, 1]
    >>> partition.describe(5, ["ant", "bee", "cat"])
    'bee, then cat'
    """

    n_classes_: int
    n_cells_: int
    layout_: CellLayout

    #: Whether cells come with the data, as ``cells=``, instead of being computed.
    takes_cells: ClassVar[bool] = False
    #: Whether what comes with the data are groups, as ``by=``, that cells are crossed with.
    takes_groups: ClassVar[bool] = False
    #: The name under which files remember the class.
    registered_name: ClassVar[str]

    def __init_subclass__(cls, *, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        _register(cls, name or f"{cls.__module__}:{cls.__qualname__}")
        own = vars(cls)
        if "_locate" in own or "assign" in own:
            # Other items share a cell now: what the parent said about its cells is not inherited.
            for inherited in ("_locate_in_engine", "describe"):
                if inherited not in own:
                    setattr(cls, inherited, getattr(Partition, inherited))
        # A class with a `fit` or `assign` of its own is asked that, not what it does not know of.
        for door, inside in (("fit", "fit_checked"), ("assign", "assign_checked")):
            if door in own and inside not in own:
                setattr(cls, inside, own[door])

    # What everybody calls.

    def fit(self, probabilities: ArrayLike) -> Self:
        """Learn the cells from predictions of shape (n_items, n_classes); labels are never seen."""
        return Partition.fit_checked(self, check_simplex(probabilities, ndim=2))

    def fit_classes(self, n_classes: int) -> Self:
        """Lay out the cells from the number of classes alone, unless it learns from predictions."""
        if self.learns_from_predictions:
            raise InputError(
                "partition",
                "must be fitted",
                value=f"a {type(self).__name__} that is not",
                remedy="It learns from predictions: call fit(probabilities) first.",
            )
        self.n_classes_ = check_n_classes(n_classes)
        self.n_cells_, self.layout_ = self._lay_out(self.n_classes_)
        return self

    def assign(self, probabilities: ArrayLike, cells: ArrayLike | None = None) -> Index:
        """Return the cell number of each item, from 0; `cells` where they come with the data."""
        check_is_fitted(self, "n_cells_")
        p = check_simplex(probabilities, ndim=2, n_classes=self.n_classes_)
        return Partition.assign_checked(self, p, cells)

    def fit_checked(self, p: Array) -> Self:
        """Do as `fit` does, for predictions that have been checked."""
        self.n_classes_ = p.shape[1]
        self.n_cells_, self.layout_ = self._learn(p)
        return self

    def assign_checked(self, p: Array, cells: ArrayLike | None = None) -> Index:
        """Do as `assign` does, for predictions that have been checked."""
        name = type(self).__name__
        if self.takes_cells:
            return self._take_cells(p, cells)
        if cells is not None:
            raise InputError("cells", f"must be left out with a {name}, which computes them")
        located = f"{name}.assign(probabilities)"
        return check_cells(self._locate(p), len(p), n_cells=self.n_cells_, name=located)

    def cell_names(self, class_names: Sequence[str]) -> list[str]:
        """Return what every cell is called, in the order of their numbers."""
        check_is_fitted(self, "n_cells_")
        names = check_names(class_names, "class_names", self.n_classes_)
        return [self.describe(cell, names) for cell in range(self.n_cells_)]

    @property
    def learns_from_predictions(self) -> bool:
        """Whether the cells depend on the predictions given to `fit`, beyond their classes."""
        kind = type(self)
        return kind._learn is not Partition._learn or kind.fit is not Partition.fit

    @property
    def is_fitted(self) -> bool:
        """Whether the cells are known."""
        return hasattr(self, "n_cells_")

    def locate_in_engine(self, frame: Frame, columns: Sequence[str]) -> Frame:
        """Add the column `cell` to a narwhals frame with the predictions in `columns`, float64."""
        return self._locate_in_engine(frame, columns)

    @property
    def works_in_engine(self) -> bool:
        """Whether an engine can compute the cells."""
        return type(self)._locate_in_engine is not Partition._locate_in_engine

    # What a class that derives from this one says about itself.

    def _learn(self, p: Array) -> tuple[int, CellLayout]:
        """Return the number of cells and their layout; remember more in attributes named x_."""
        return self._lay_out(p.shape[1])

    def _lay_out(self, n_classes: int) -> tuple[int, CellLayout]:
        """Return the number of cells and their layout from the number of classes alone."""
        raise NotImplementedError(
            f"{type(self).__name__} must have _learn(p) or _lay_out(n_classes)."
        )

    def _locate(self, p: Array) -> Any:
        """Return the cell number of each item, from predictions of shape (n_items, n_classes)."""
        raise NotImplementedError(f"{type(self).__name__} must have _locate(p).")

    def _take_cells(self, p: Array, cells: ArrayLike | None) -> Index:
        """Return the cell number of each item from what comes with the data."""
        if cells is None:
            name = type(self).__name__
            rule = f"must be given with a {name}: one cell number for each item"
            raise InputError("cells", rule)
        return check_cells(cells, len(p), n_cells=self.n_cells_)

    @property
    def n_item_columns(self) -> int:
        """How many columns `item_columns` has."""
        return 0

    def item_columns(self, cells: Index) -> Array | None:  # noqa: ARG002
        """Return numbers that cells tell about items and predictions do not, one row per item.

        A model of items takes them as features. By default none.
        """
        return None

    def _locate_in_engine(self, frame: Frame, columns: Sequence[str]) -> Frame:
        """Return a narwhals frame with the column `cell` added: the very numbers of `_locate`.

        `columns` name the probabilities of the classes, float64. Other columns that are added on
        the way do no harm.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot compute cells inside an engine.")

    def describe(self, cell: int, class_names: Sequence[str]) -> str:  # noqa: ARG002
        """Say in a few words which predictions a cell holds."""
        return f"cell {cell}"

    def state(self) -> dict[str, Any]:
        """Return what was learned, by name: arrays, and whatever JSON can hold.

        By default every attribute that is neither a parameter nor part of the shape.
        """
        known = {*self.get_params(deep=False), *_SHAPE}
        return {name: value for name, value in vars(self).items() if name not in known}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` returned, in a partition that was made with the same parameters."""
        for name, value in state.items():
            if not self._may_restore(name):
                rule = "must hold nothing but what was learned"
                raise InputError("partition", rule, value=repr(name))
            setattr(self, name, value)

    def check_restored(self) -> None:
        """Refuse cells from a file that are not those of the parameters.

        A class that learns from predictions may say more about what it can have learned.
        """
        if self.learns_from_predictions:
            return
        fresh = clone(self).fit_classes(self.n_classes_)
        same_layout = all(map(np.array_equal, fresh.layout_, self.layout_))
        if not same_layout or set(fresh.state()) != set(self.state()):
            rule = "must have the cells of its parameters"
            raise InputError("partition", rule, value=f"{self.n_cells_} cells for {self}")

    def _may_restore(self, name: str) -> bool:
        """Say whether a file may set an attribute: none that the class or its parameters own."""
        owned = {*self.get_params(deep=False), *_SHAPE}
        inside = inspect.getattr_static(type(self), name, None)
        computed = callable(inside) or hasattr(inside, "__get__")
        plain = name.isidentifier() and not name.startswith("__")
        return plain and name not in owned and not computed and not hasattr(Partition, name)


def check_n_cells(value: Any, name: str, *, per: int = 1) -> int:
    """Return a parameter that sets the number of cells, `per` for each, before any is made."""
    number = check_integer(value, name, minimum=1)
    if number * per > MAX_CELLS:
        each = "" if per == 1 else f", {per} for each"
        raise InputError(
            name,
            f"must give at most {MAX_CELLS:,} cells",
            value=f"{number:,}{each}",
            remedy="Ask for fewer; cells without items of their own say nothing.",
        )
    return number


def known_partitions() -> list[str]:
    """Return the names of all classes of partitions that have been imported."""
    return sorted(_KNOWN)


def find_partition(name: str, *, module: str = "", where: str = "") -> type[Partition]:
    """Return the class of partitions with a name, known once its module has been imported.

    Parameters
    ----------
    name : str
        Name of the class in files, see `Partition`.
    module : str, optional
        The module that defines it, to be named where the class is unknown.
    where : str, optional
        The place of the name, as in "in model.hocal".

    Returns
    -------
    type
        The class.

    Examples
    --------
    >>> import hocal
    >>> from hocal.cells import find_partition
    >>> find_partition("TopLabelPartition") is hocal.TopLabelPartition
    True
    """
    for text, argument in ((name, "name"), (module, "module"), (where, "where")):
        check_kind(text, argument, str)
    if name not in _KNOWN:
        remedy = f"Import what defines it first: import {module}." if module else ""
        if module == "__main__":
            remedy = (
                "It was defined in a script or notebook: put it into a module, and import that."
            )
        rule = "must be one of hocal or one that was imported"
        raise InputError("partition", rule, value=repr(name), where=where, remedy=remedy)
    return _KNOWN[name]


def _register(cls: type[Partition], name: str) -> None:
    """Remember a class by name; one that is defined again, as in a notebook, replaces the old."""
    before = _KNOWN.get(name, cls)
    if (before.__module__, before.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InputError(
            "name",
            "must be that of no other partition",
            value=repr(name),
            where=f"for {cls.__qualname__}, as it is for {before.__qualname__}",
        )
    cls.registered_name = name
    _KNOWN[name] = cls
