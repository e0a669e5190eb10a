"""Train a classifier on label counts and predict items by models that have not seen them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array, column_or_1d, indexable
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index
from hocal._base.validation import check_counts, check_random_state

__all__ = [
    "Fold",
    "Labels",
    "assign_folds",
    "check_rows",
    "check_splits",
    "expand",
    "frozen_classes",
    "holds_counts",
    "majority",
    "out_of_fold",
    "proba_by_class",
    "read_labels",
    "train",
]

#: Items that train a model, and items it is held out from.
Fold = tuple[Index, Index]


class Labels(NamedTuple):
    """What people said of each item."""

    counts: Counts  #: (n_items, n_classes)
    classes: NDArray[Any]  #: (n_classes,) the label of each column


def check_rows(X: Any) -> Any:
    """Return what an estimator takes, if rows can be taken from it."""
    try:
        return indexable(X)[0]
    except Exception as error:  # an object of somebody else may raise anything
        rule = "must be an array, a sparse matrix, a dataframe or a list with one row per item"
        raise InputError("X", rule, value=f"{type(X).__name__}: {error}") from error


def holds_counts(y: Any) -> bool:
    """Tell label counts from one label per item, which may come as a column."""
    try:
        shape = y.shape if sparse.issparse(y) else np.asarray(y).shape
    except Exception as error:  # an object of somebody else may raise anything
        raise InputError("y", "must be labels or label counts", value=str(error)) from error
    return len(shape) == 2 and shape[1] != 1


def frozen_classes(estimator: Any) -> NDArray[Any] | None:
    """Return the classes of a frozen estimator, None for one that is still to be trained."""
    if not isinstance(estimator, FrozenEstimator):
        return None
    check_is_fitted(estimator)
    return np.asarray(estimator.classes_)


def read_labels(y: Any, classes: ArrayLike | None, known: NDArray[Any] | None) -> Labels:
    """Return counts and class names of either form; `known` are a frozen estimator's classes."""
    names = known if classes is None else _check_classes(classes, known)
    if not holds_counts(y):
        return _read_single_labels(y, names)
    counts = check_counts(y)
    columns = _column_names(y)
    if names is None:
        names = np.arange(counts.shape[1]) if columns is None else columns
    if counts.shape[1] != len(names):
        whose = "classes of the frozen estimator" if classes is None else "given `classes`"
        raise InputError(
            "counts",
            f"must have a column for each of the {len(names)} {whose}",
            value=f"{counts.shape[1]} columns",
            remedy="Drop items with other labels, "
            "or add a column of zeros for a class without labels.",
        )
    if columns is not None:
        _check_order(columns, names)
    return Labels(counts, names)


def _check_order(columns: NDArray[Any], names: NDArray[Any]) -> None:
    """Refuse columns with the names of the classes in another order."""
    same_names = sorted(columns.tolist()) == sorted(map(str, names))
    if same_names and (columns != names).any():
        raise InputError(
            "counts",
            f"must have its columns in the order of the classes, {names.tolist()}",
            value=columns.tolist(),
            remedy="Reorder the columns.",
        )


def _column_names(y: Any) -> NDArray[Any] | None:
    """Return the columns of a dataframe that gives them names, None for anything else."""
    columns = list(getattr(y, "columns", []))
    return (
        np.array(columns)
        if columns and all(isinstance(column, str) for column in columns)
        else None
    )


def _read_single_labels(y: Any, names: NDArray[Any] | None) -> Labels:
    """Return counts and class names from one label per item."""
    labels = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=None, input_name="y")
    if labels.dtype.kind == "f":
        check_classification_targets(labels)
    names = np.unique(labels) if names is None else names
    if len(names) < 2:
        rule = "must hold labels of at least two classes"
        raise InputError("y", rule, value=f"one class, {names.tolist()[0]!r}")
    return Labels(_count_single(labels, names), names)


def _check_classes(classes: ArrayLike, known: NDArray[Any] | None) -> NDArray[Any]:
    """Return class names after checking that they are distinct and the frozen estimator's."""
    try:
        names = np.asarray(classes)
    except Exception as error:  # an object of somebody else may raise anything
        raise InputError("classes", "must be a list of labels", value=str(error)) from error
    if names.ndim != 1 or len(set(names.tolist())) != len(names):
        raise InputError("classes", "must be a list of distinct labels", value=repr(classes))
    if known is not None and set(names.tolist()) != set(known.tolist()):
        rule = f"must be those of the frozen estimator, {known.tolist()}, in any order"
        raise InputError("classes", rule, value=names.tolist())
    return names


def _count_single(labels: NDArray[Any], names: NDArray[Any]) -> Counts:
    """Return counts of one label per item."""
    column = {name: j for j, name in enumerate(names.tolist())}
    codes = np.array([column.get(label, -1) for label in labels.tolist()])
    if codes.min() < 0:
        row = int(codes.argmin())
        raise InputError(
            "y",
            f"must hold labels among the classes {names.tolist()}",
            value=repr(labels.tolist()[row]),
            where=f"in row {row}",
            remedy="Drop such items.",
        )
    ones = np.ones(len(codes), dtype=np.int64)
    return sparse.csr_array(
        (ones, codes, np.arange(len(codes) + 1)), shape=(len(codes), len(names))
    )


def expand(counts: Counts) -> tuple[Index, Index, Array]:
    """Return row, class and number of labels wherever an item has labels for a class."""
    table = sparse.coo_array(counts)
    labelled = table.data > 0
    return table.row[labelled], table.col[labelled], table.data[labelled].astype(np.float64)


def majority(counts: Counts) -> Index:
    """Return the most frequent class of each item, ties going to the first."""
    return np.asarray(counts.argmax(axis=1)).reshape(-1)


def assign_folds(labels: Index, n_folds: int, random_state: Any) -> Index:
    """Return a fold for each item; the items of each class go to all folds in turn."""
    order = np.arange(len(labels))
    if random_state is not None:
        order = check_random_state(random_state).permutation(order)
    fold = np.empty_like(order)
    fold[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(order)) % n_folds
    return fold


def check_splits(splits: list[Fold], n_items: int) -> list[Fold]:
    """Refuse folds in which an item calibrates a model that saw it, or calibrates twice."""
    held_out = np.concatenate([test for _, test in splits])
    times = np.bincount(held_out, minlength=n_items)
    if times.max() > 1:
        raise InputError(
            "cv",
            "must hold out each item at most once",
            value=f"item {times.argmax()} held out {times.max()} times",
            remedy="Use KFold, or one split.",
        )
    for kept, test in splits:
        if len(both := np.intersect1d(kept, test)):
            rule = "must not train on the items it holds out"
            raise InputError("cv", rule, value=f"item {both[0]} in both parts")
    return splits


def _weight_argument(estimator: Any) -> str | None:
    """Return the name under which an estimator's `fit` takes sample weights, None without."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if get_config()["enable_metadata_routing"]:
        asked = get_routing_for_object(estimator).consumes("fit", ["sample_weight"])
        return "sample_weight" if asked else None
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        argument = _weight_argument(last)
        return None if argument is None else f"{name}__{argument}"
    return None


def train(estimator: Any, X: Any, labels: Labels, items: Index, params: dict[str, Any]) -> Any:
    """Return a copy of the estimator trained on the labels of `items`."""
    counts = labels.counts[items]
    argument = _weight_argument(estimator)
    if argument is None:
        rows = np.arange(len(items))
        codes = majority(counts)
        weights = np.ones(len(items))
    else:
        rows, codes, weights = expand(counts)
    params = {
        name: _select(value, items[rows], labels.counts.shape[0]) for name, value in params.items()
    }
    if argument is not None and (weights != 1).any():
        params[argument] = weights * np.asarray(params.get(argument, 1.0))
    return clone(estimator).fit(_safe_indexing(X, items[rows]), labels.classes[codes], **params)


def _select(value: Any, rows: Index, n_items: int) -> Any:
    """Return the rows of a parameter that has one per item, any other parameter as it is."""
    shape = () if isinstance(value, (str, dict)) else np.shape(value)
    return _safe_indexing(value, rows) if shape[:1] == (n_items,) else value


def out_of_fold(
    estimator: Any, X: Any, labels: Labels, splits: Iterable[Fold], params: dict[str, Any]
) -> tuple[Index, Array]:
    """Return the items that are held out, and predictions of models that have not seen them."""
    items = []
    predictions = []
    for kept, held_out in splits:
        model = train(estimator, X, labels, kept, params)
        items.append(held_out)
        predictions.append(proba_by_class(model, _safe_indexing(X, held_out), labels.classes))
    return np.concatenate(items), np.concatenate(predictions)


def proba_by_class(model: Any, X: Any, classes: NDArray[Any]) -> Array:
    """Return a model's probabilities in the order of `classes`, 0 for classes it never saw."""
    p = np.asarray(model.predict_proba(X), dtype=np.float64)
    column = {name: j for j, name in enumerate(classes.tolist())}
    known = [column[name] for name in np.asarray(model.classes_).tolist()]
    result = np.zeros((len(p), len(classes)))
    result[:, known] = p
    return result
