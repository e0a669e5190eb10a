"""Recalibrate predictions to the labels of people, class by class: from a temperature to a matrix.

The logit of class j is a sum of logarithms of the prediction, each with a weight, of a bias b_j and
of inputs with a weight for every class: the logarithms of the prediction, those of an ensemble's
members and the features. How many of these weights are used, and how strongly they are held back,
is decided by the log loss on folds left out. One temperature at the end, fitted to the predictions
for folds left out, takes back what over-confidence remains.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from hocal._base.errors import InputError
from hocal._base.fingerprints import fingerprint
from hocal._base.saved_arrays import SavedArrays
from hocal._base.typing import Array, Counts, Index
from hocal.calibration.first_order.columns import (
    FLOORS,
    MATRIX_CLASSES,
    Design,
    Rows,
    centred_logarithm,
    make_columns,
    make_design,
    mean_of_members,
    member_deviations,
    shared_columns,
)
from hocal.calibration.first_order.confusion import (
    LabelTables,
    count_labels,
    table_columns,
    table_levels,
)
from hocal.calibration.first_order.feature_scale import FeatureScale
from hocal.calibration.first_order.multinomial import (
    CrossFit,
    Floats,
    Regression,
    held_out_probabilities,
    log_softmax,
)
from hocal.calibration.first_order.strengths import Candidate, Grouped, average, best, choose, refit
from hocal.calibration.first_order.temperature import fit_temperature

__all__ = ["CrossFitted", "Recalibration", "fit_recalibration"]

TABLE_GRID = (8.0, 2.0, 0.5, 0.15)  # pseudo-labels of a table's entries, by fours
TABLE_PRECISION = 1.0  # of its two weights, in labels
SINGLE_ENTRIES = 200_000  # items x classes from which single precision is used
CHOICE_ENTRIES = 200_000  # items x classes on which strengths are chosen, in units of labels ...
CHOICE_ITEMS = 5_000  # ... but no fewer items than that, or rare classes would not occur
FIT_WORK = 3e9  # items x weights of the last fit, seconds a step; more items would change nothing
TEMPERATURE_ENTRIES = 5e6  # items x classes that settle the temperature at the end, one number
APPLY_ENTRIES = 1 << 20  # numbers that are recalibrated at once, 8 MB
LARGEST_WEIGHT = 1e15  # that a file may hold: logits stay finite, even in single precision
SMALLEST = 1e-12  # probability that is ever returned, so that every log loss is finite


class Recalibration(NamedTuple):
    """A fitted recalibration: plain arrays, each empty where it is not in use."""

    floors: Array  #: (n_floors,) of the logarithms
    shared: Array  #: (n_shared,) weights of columns that all classes share
    bias: Array  #: (n_classes,)
    matrix: Array  #: (n_classes, n_classes) weights of the prediction's logarithms
    members: Array  #: (n_members * n_classes, n_classes) weights of the members' deviations
    features: Array  #: (n_features, n_classes) weights of standardised features
    feature_centre: Array  #: (n_features,)
    feature_spread: Array  #: (n_features,) 0 for one that is constant
    tables: Floats  #: (2, n_classes, n_classes) which classes people name where one is predicted

    def apply(self, members: Floats, features: Array | None = None) -> Array:
        """Return recalibrated probabilities.

        Parameters
        ----------
        members : array of shape (n_items, n_members, n_classes)
            Predictions of an ensemble's members, or of one model.
        features : array of shape (n_items, n_features), optional
            Those that were given to the fit.

        Returns
        -------
        array of shape (n_items, n_classes)
            All positive.
        """
        inputs = np.zeros((len(members), 0)) if features is None else features
        self._check(members, inputs)
        inputs = self.standardise(inputs)
        result = np.empty((len(members), len(self.bias)))
        height = max(1, APPLY_ENTRIES // (members.shape[1] * members.shape[2]))
        for start in range(0, len(members), height):
            rows = slice(start, start + height)
            logits = self._logits(members[rows], inputs[rows])
            result[rows] = np.maximum(np.exp(log_softmax(logits)), SMALLEST)
        return result

    def standardise(self, features: Array) -> Array:
        """Return features with mean 0 and spread 1 in the fit, held far outside it."""
        return FeatureScale(self.feature_centre, self.feature_spread).apply(features)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, for saving."""
        return dict(self._asdict())

    @classmethod
    def from_arrays(cls, saved: SavedArrays) -> Recalibration:
        """Return the recalibration whose arrays were saved."""
        bias = saved.take("bias", -1, size=LARGEST_WEIGHT)
        n_classes = len(bias)
        floors = saved.take("floors", len(FLOORS))
        if sorted(floors.tolist()) != sorted(FLOORS):
            raise InputError("floors", f"must be {FLOORS} in any order", value=floors.tolist())
        features = saved.take("features", -1, n_classes, size=LARGEST_WEIGHT)
        scale = FeatureScale.from_arrays(saved, len(features))
        made = cls(
            floors=floors,
            shared=saved.take("shared", -1, size=LARGEST_WEIGHT),
            bias=bias,
            matrix=saved.take("matrix", -1, n_classes, size=LARGEST_WEIGHT),
            members=saved.take("members", -1, n_classes, size=LARGEST_WEIGHT),
            features=features,
            feature_centre=scale.centre,
            feature_spread=scale.spread,
            tables=saved.take("tables", -1, n_classes, n_classes, dtypes="f4 f8", least=0.0),
        )
        made._check_sizes()
        return made

    def _check_sizes(self) -> None:
        """Refuse parts that do not go together."""
        n_classes = len(self.bias)
        whole = len(self.matrix) in (0, n_classes) and len(self.members) % n_classes == 0
        either = (n_classes <= MATRIX_CLASSES) == (len(self.matrix) > 0)
        if not whole or not either or len(self.tables) not in (0, 2):
            shapes = {name: array.shape for name, array in self._asdict().items()}
            raise InputError("recalibration", "must have parts that fit", value=shapes)
        if len(self.tables) and not np.allclose(self.tables[1].sum(axis=1), 1, atol=1e-3):
            raise InputError("tables", "must sum to 1 over the named classes")

    def _check(self, members: Floats, features: Floats) -> None:
        n_classes = len(self.bias)
        if members.ndim != 3 or members.shape[2] != n_classes:
            rule = f"must have shape (n_items, n_members, {n_classes})"
            raise InputError("members", rule, value=f"shape {members.shape}")
        if features.shape != (len(members), len(self.features)):
            rule = f"must have shape ({len(members)}, {len(self.features)})"
            raise InputError("features", rule, value=f"shape {features.shape}")

    def _logits(self, members: Floats, features: Floats) -> Floats:
        dtype = np.float32 if len(self.tables) else np.float64
        members = members.astype(dtype, copy=False)
        mean = mean_of_members(members)
        columns = [*shared_columns(members, self.floors, plain=not len(self.matrix))]
        columns += table_columns(mean, self.tables)
        if len(columns) != len(self.shared):
            rule = "must have as many members as in the fit"
            raise InputError("members", rule, value=members.shape[1])
        logits: Floats = np.tile(self.bias.astype(dtype), (len(members), 1))
        for weight, column in zip(self.shared, columns, strict=True):
            logits += dtype(weight) * column
        if len(self.matrix):
            logits += centred_logarithm(mean, self.floors[0]) @ self.matrix
        if len(self.members):
            logits += member_deviations(members, self.floors[0]) @ self.members
        if len(self.features):
            logits += (features @ self.features).astype(dtype)
        return logits

    def _temper(self, temperature: float) -> Recalibration:
        """Divide all logits by a temperature."""
        weights = ("shared", "bias", "matrix", "members", "features")
        return self._replace(**{name: getattr(self, name) / temperature for name in weights})


class CrossFitted(NamedTuple):
    """A recalibration, and those that have not seen the labels of a fold."""

    final: Recalibration  #: fitted to all items
    without: tuple[Recalibration, ...]  #: for each fold, fitted to the items of the others

    def out_of_fold(self, members: Array, features: Array | None, folds: Index) -> Array:
        """Return the recalibrated prediction of each item by the fit without its fold."""
        out = np.empty((len(members), members.shape[2]))
        for fold, model in enumerate(self.without):
            inside = folds == fold
            inputs = None if features is None else features[inside]
            out[inside] = model.apply(members[inside], inputs)
        return out


class _Items(NamedTuple):
    """What the fit was given, and the rows sorted by fold and then by what they hold."""

    members: Array  #: (n_items, n_members, n_classes)
    counts: sparse.csr_array  #: (n_items, n_classes)
    features: Array  #: (n_items, n_features) as they came
    scale: FeatureScale  #: of all of them
    folds: Index  #: (n_items,)
    order: Index  #: (n_items,)

    def take(self, n_rows: int) -> Rows:
        """Return the first rows of each fold in this order, about `n_rows` in all."""
        n_folds = int(self.folds.max()) + 1
        starts = np.searchsorted(self.folds[self.order], np.arange(n_folds + 1))
        height = -(-n_rows // n_folds)
        parts = [self.order[a : min(b, a + height)] for a, b in pairwise(starts)]
        rows = np.concatenate(parts)
        single = len(rows) * self.members.shape[2] > SINGLE_ENTRIES
        dtype: type[np.floating[Any]] = np.float32 if single else np.float64
        counts = self.counts[rows]
        counts.sum_duplicates()
        features = self.scale.apply(self.features[rows]).astype(dtype, copy=False)
        bounds = np.cumsum([0, *map(len, parts)])
        return Rows(self.members, rows, dtype, counts, features, bounds)


class _Learnt(NamedTuple):
    """What has been learnt from some rows."""

    design: Design
    base: Candidate  #: without tables
    chosen: Candidate  #: with them, where they help
    tables: LabelTables | None
    pseudo_labels: float


def fit_recalibration(
    members: Array, counts: Counts, features: Array | None, folds: Index
) -> CrossFitted:
    """Fit a recalibration to several labels per item.

    Predictions for folds left out come from weights that have not seen the labels of their fold;
    only the choice of floor and strengths and the last temperature, a handful of numbers, have. The
    order of the rows does not matter.

    Parameters
    ----------
    members : array of shape (n_items, n_members, n_classes)
        Predictions of an ensemble's members, or of one model.
    counts : array of shape (n_items, n_classes)
        Labels of each item by class, dense or CSR, at least one per item.
    features : array of shape (n_items, n_features), optional
        Numbers that may tell where the predictions err.
    folds : array of shape (n_items,)
        The fold of each item, from 0.

    Returns
    -------
    CrossFitted

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.calibration.first_order.recalibration import fit_recalibration
    >>> sure = np.tile([[0.99, 0.01], [0.01, 0.99]], (100, 1))[:, None]
    >>> counts = np.tile([[3, 1], [1, 3]], (100, 1))
    >>> fitted = fit_recalibration(sure, counts, None, np.arange(200) % 5)
    >>> fitted.final.apply(sure[:1]).round(2).tolist()
    [[0.75, 0.25]]
    """
    labels = sparse.csr_array(counts)
    inputs = np.zeros((len(members), 0)) if features is None else features
    order = np.lexsort((fingerprint(members, labels, inputs), folds))
    items = _Items(members, labels, inputs, FeatureScale.of(inputs), folds, order)
    with threadpool_limits(limits=1, user_api="blas"):
        return _finish(_fit(items), items)


def _fit(items: _Items) -> _Learnt:
    """Choose on a sample of the items, fit to all."""
    n_items, _, n_classes = items.members.shape
    n_choice = max(CHOICE_ENTRIES // n_classes, CHOICE_ITEMS)
    learnt = _learn(items.take(n_choice))
    if n_items <= n_choice:
        return learnt
    n_weights = n_classes * (1 + len(learnt.design.groups))
    return _learn_again(items.take(int(FIT_WORK // n_weights)), learnt)


def _finish(learnt: _Learnt, items: _Items) -> CrossFitted:
    """Find the last temperature, from predictions of items by the fit without their fold."""
    fit = learnt.chosen.fit
    scale = items.scale
    final = _model(learnt, scale, fit.weights, -1)
    folds = enumerate(fit.without)
    without = tuple(_model(learnt, scale, weights, fold) for fold, weights in folds)
    step = int(np.ceil(items.order.size * final.bias.size / TEMPERATURE_ENTRIES))
    few = items.order[::step]
    given = items.members[few], items.features[few], items.folds[few]
    predicted = CrossFitted(final, without).out_of_fold(*given)
    temperature = fit_temperature(predicted, items.counts[few])
    tempered = tuple(model._temper(temperature) for model in without)
    return CrossFitted(final._temper(temperature), tempered)


def _learn(rows: Rows) -> _Learnt:
    """Choose everything."""
    design = make_design(rows)
    grouped = make_columns(rows, design)
    tried = choose(grouped)
    base = best(tried)._replace(fit=average(tried, rows.shape[0]))
    learnt = _Learnt(design, base, base, None, np.nan)
    return learnt if design.has_matrix else _add_tables(rows, grouped, learnt, TABLE_GRID)


def _learn_again(rows: Rows, learnt: _Learnt) -> _Learnt:
    """Fit to more rows what has been chosen on fewer."""
    grouped = make_columns(rows, learnt.design)
    base = refit(grouped, learnt.base)
    again = learnt._replace(base=base, chosen=base, tables=None)
    if learnt.tables is None:
        return again
    return _add_tables(rows, grouped, again, (learnt.pseudo_labels,))


def _add_tables(rows: Rows, grouped: Grouped, learnt: _Learnt, grid: tuple[float, ...]) -> _Learnt:
    """Add the columns of tables with the best of several pseudo-labels, if any of them gains."""
    problem = grouped.problem
    tables = _count_tables(rows, problem, learnt.base.fit.without)
    strengths = {**learnt.base.strengths, "tables": TABLE_PRECISION}
    trial = Candidate(_insert_zeros(learnt.base.fit, len(problem.shared), 2), strengths)
    groups = (*grouped.shared_groups, "tables", "tables")
    for pseudo_labels in grid:
        columns = _left_out_columns(rows, tables, pseudo_labels)
        wider = problem._replace(shared=(*problem.shared, *columns))
        trial = refit(Grouped(wider, groups, grouped.own_groups), trial)
        if trial.fit.log_loss >= learnt.chosen.fit.log_loss:
            break
        learnt = learnt._replace(chosen=trial, tables=tables, pseudo_labels=pseudo_labels)
    return learnt


def _count_tables(rows: Rows, problem: Regression, without: Array) -> LabelTables:
    """Count labels, and those that are expected without tables, fold by fold."""
    counted = []
    for fold, part in enumerate(rows.folds):
        expected = held_out_probabilities(problem, fold, without[fold])
        expected *= problem.totals[part, None]
        counted.append(count_labels(rows.mean(part), rows.counts[part], expected))
    observed, modelled = np.stack(counted, axis=1)
    average = np.mean([rows.mean(part).mean(axis=0) for part in rows.folds], axis=0)
    return LabelTables(observed, modelled, average)


def _left_out_columns(rows: Rows, tables: LabelTables, pseudo_labels: float) -> Floats:
    """Return the columns of every item from the tables of the other folds."""
    n_items, _, n_classes = rows.shape
    columns = np.empty((2, n_items, n_classes), rows.dtype)
    for fold, part in enumerate(rows.folds):
        others = tables.without(fold, pseudo_labels)
        levels = table_levels(tables.average, others)
        for block in rows.blocks(part):
            columns[:, block] = table_columns(rows.mean(block), others)
            columns[:, block] -= levels[:, None]
    return columns


def _insert_zeros(fit: CrossFit, place: int, number: int) -> CrossFit:
    weights = np.insert(fit.weights, [place] * number, 0.0)
    return CrossFit(weights, np.insert(fit.without, [place] * number, 0.0, axis=1), fit.log_loss)


def _model(learnt: _Learnt, features: FeatureScale, weights: Array, fold: int) -> Recalibration:
    """Return weights as a recalibration, with tables that lack a fold (none for -1)."""
    design = learnt.design
    n_tables = 0 if learnt.tables is None else 2
    n_shared = len(design.shared_scale) + n_tables
    own = weights[n_shared:].reshape(1 + len(design.groups), -1)
    scaled = own[1:] / design.scale[:, None]
    n_classes = own.shape[1]
    names = np.array(design.groups, dtype=str)
    tables: Floats = np.zeros((0, n_classes, n_classes))
    bias = own[0] - design.centre @ scaled
    if learnt.tables is not None:
        tables = learnt.tables.without(fold, learnt.pseudo_labels)
        levels = table_levels(learnt.tables.average, tables)
        bias = bias - weights[n_shared - n_tables : n_shared] @ levels
    return Recalibration(
        floors=design.floors,
        shared=weights[:n_shared] / np.append(design.shared_scale, np.ones(n_tables)),
        bias=bias,
        matrix=scaled[names == "matrix"],
        members=scaled[names == "members"],
        features=scaled[names == "features"],
        feature_centre=features.centre,
        feature_spread=features.spread,
        tables=tables,
    )
