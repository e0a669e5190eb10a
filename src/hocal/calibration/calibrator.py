"""Calibrate a first-order predictor to a higher-order one from a few labels per item."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from hocal._base.errors import InputError, OneLabelWarning
from hocal._base.notebook import FittedInNotebooks, fitted_table
from hocal._base.typing import Array, Counts, Index
from hocal._base.validation import check_choice, check_fraction, check_kind
from hocal.calibration.by_cell.fitting import (
    class_orders,
    fit_deconvolved,
    fit_empirical,
    put_in_order,
)
from hocal.calibration.by_cell.prediction import CellMixtures
from hocal.calibration.by_item.fitting import FEWEST_ITEMS
from hocal.calibration.by_item.model import ItemModel
from hocal.calibration.certification import certified_mixtures, certify_levels
from hocal.calibration.evaluation import CalibrationError, calibration_error
from hocal.calibration.first_order.temperature import fit_temperature
from hocal.calibration.inputs import (
    GivenItems,
    InputShape,
    cells_or_groups,
    check_items,
    check_labels,
    check_own_labels,
    choose_partition,
    partition_of,
)
from hocal.calibration.item_fit import fit_with_folds
from hocal.calibration.levels import QUANTITIES, LevelSets
from hocal.calibration.predictor import Predictor
from hocal.calibration.reference import Expected, Reference, learn_reference, summarise, thinned
from hocal.calibration.seen_items import SeenItems
from hocal.calibration.set_calibration import (
    SetCalibration,
    check_set_calibration,
    expected_error,
)
from hocal.cells.partitions import as_partition
from hocal.cells.protocol import Partition
from hocal.cells.statistics import CellStatistics
from hocal.guarantees import certificates
from hocal.guarantees.certificates import Certificate
from hocal.guarantees.certified_sets import ball_around
from hocal.uncertainty.decomposition import Decomposition, check_panel_size, decompose
from hocal.uncertainty.entropy import Entropy, get_entropy
from hocal.uncertainty.label_sets import LabelSets, choose_labels
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.sets import KINDS, PredictionSets, predict_set

__all__ = ["Located", "SnapshotCalibrator", "fitted_html"]

METHODS = ("items", "cells", "empirical")
THINNINGS = ("exact", "draw")
CERTIFIED = ("partition", *QUANTITIES)
_ONE_LABEL = (
    "No item has two labels, and one label cannot tell disagreement from ignorance: how the "
    "uncertainty is split rests on the method alone. Collect a second label for some of the "
    "items."
)
_NO_ITEMS = (
    'Without the items themselves, method="items" gives every item the mixture of its cell. '
    'Pass method="cells" to say that this is meant, or fit on predictions and counts.'
)


class Located(NamedTuple):
    """Predictions and where they belong."""

    probabilities: Array  #: (n_items, n_classes), checked
    cells: Index  #: (n_items,)


class SnapshotCalibrator(FittedInNotebooks, BaseEstimator):
    """Turn predictions and a few labels per item into mixtures: disagreement apart from ignorance.

    By default every item gets a mixture of its own. First the prediction is recalibrated class by
    class; then, given all of it, the members of an ensemble and features where there are any, the
    distribution of the item's true label distribution is estimated from the labels of the
    calibration items. On average over a cell of the partition it agrees with what the labels of
    that cell say. Labels of one item must be independent of each other given the item.

    Parameters
    ----------
    partition : Partition or callable, optional
        How predictions are sorted into cells, which certificates and averages are about; ten
        slices for each top label by default.
    method : {"items", "cells", "empirical"}
        "items" predicts a mixture for each item; with fewer than 20 items to learn from, that of
        its cell. "cells" estimates one mixture per cell from
        histograms of labels, which an engine can count; items of a cell share it. "empirical" is
        the paper's method: the histogram of k-snapshots itself, which sees too little disagreement
        when labels are few. Where all items have one label, none can know: the first two then
        report what their priors guess, the third none; the certificate says that nothing is
        certain.
    k : int, optional
        Snapshot size for "empirical"; the smallest number of labels of an item by default.
    thinning : {"exact", "draw"}
        For "empirical" and items with more than k labels: count all their k-snapshots, or draw one.
    panel_size : int, optional
        Report aleatoric uncertainty as a panel of this many annotators would show it.
    random_state : int, Generator or None
        For ``thinning="draw"``; everything else is deterministic.

    Attributes
    ----------
    partition_ : Partition
        The fitted partition.
    statistics_ : CellStatistics
        The labels of the calibration items, cell by cell.
    cell_mixtures_ : Mixtures
        One mixture per cell; but for "empirical", of label distributions in order of falling
        prediction, or in the order of the cell's labels where `class_orders_` has one.
    class_orders_ : ndarray of shape (n_cells, n_classes)
        The classes of a cell by falling frequency where labels order them better than predictions
        do, else -1.
    source_ : ndarray of str of shape (n_cells,)
        "cell" where a cell has items of its own, else "neighbours" or "pool".
    item_model_ : ItemModel or None
        What predicts the mixtures of items; None for the other methods.
    reference_ : Reference or None
        What the calibration items were like, to compare new ones with; None after a fit on
        statistics or in parts.
    temperature_ : float
        What temperature scaling alone would divide the logarithms of the prediction by, to compare
        with; NaN after a fit on statistics.
    diagnostics_ : dict
        How the fit went: the snapshot size, or the amount of shrinkage and the convergence of the
        solver.

    Examples
    --------
    A model says 50% for all. Two people agree half of the time on the first items, always on the
    others.

    >>> import hocal
    >>> p, calibrator = [[0.5, 0.5]] * 400, hocal.SnapshotCalibrator()
    >>> ambiguous = [[2, 0]] * 100 + [[1, 1]] * 200 + [[0, 2]] * 100
    >>> clear = [[2, 0]] * 200 + [[0, 2]] * 200
    >>> for counts in (ambiguous, clear):
    ...     parts = calibrator.fit(p, counts).decompose(p, base=2)
    ...     print("aleatoric" if parts.aleatoric[0] > parts.epistemic[0] else "epistemic")
    aleatoric
    epistemic

    An item's own labels say more about it than its prediction does.

    >>> alone, with_labels = (
    ...     calibrator.decompose([[0.5, 0.5]], counts=own).epistemic[0] for own in (None, [[3, 0]])
    ... )
    >>> bool(with_labels < alone)
    True
    """

    partition_: Partition
    statistics_: CellStatistics
    cell_mixtures_: Mixtures
    class_orders_: Index
    source_: NDArray[np.str_]
    item_model_: ItemModel | None
    levels_: dict[str, LevelSets]
    seen_: SeenItems
    sets_: SetCalibration | None
    input_shape_: InputShape
    reference_: Reference | None
    temperature_: float
    diagnostics_: dict[str, Any]

    def __init__(
        self,
        partition: Any = None,
        *,
        method: Literal["items", "cells", "empirical"] = "items",
        k: int | None = None,
        thinning: Literal["exact", "draw"] = "exact",
        panel_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.partition = partition
        self.method = method
        self.k = k
        self.thinning = thinning
        self.panel_size = panel_size
        self.random_state = random_state

    def fit(
        self,
        probabilities: ArrayLike,
        counts: Any,
        *,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Self:
        """Calibrate on predictions and labels of the same items.

        The model must not have been trained on these items.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes) or (n_items, n_members, n_classes)
            Predictions, or those of each member of an ensemble, whose mean is the prediction.
        counts : array or sparse matrix of shape (n_items, n_classes)
            How often people gave each label; rows may have different totals.
        features : array of shape (n_items, n_features), optional
            Whatever else is known about the items, as numbers: an embedding, say. For
            ``method="items"``.
        cells : array of shape (n_items,), optional
            The cells of a PrecomputedPartition.
        by : array of shape (n_items,), optional
            The group of each item, such as the aspect that was judged: cells are crossed with the
            groups, and "items" learns what they differ in. A pandas series gives them its name.
            Whoever predicts later must name groups as well, and of these only.

        Returns
        -------
        self : SnapshotCalibrator
            Fitted.
        """
        self._check_parameters()
        given = check_items(probabilities, features)
        if given.features is not None and self.method != "items":
            rule = 'must be left out unless method="items"'
            raise InputError("features", rule, value=f"method={self.method!r}")
        labels = check_labels(counts, given)
        self.partition_ = choose_partition(self.partition, by).fit_checked(given.mean)
        where = self._assign(given, cells, by)
        given = given.beside(self.partition_.item_columns(where))
        self._fit_cells(self._count(given, labels, where))
        self.input_shape_ = given.shape
        self._forget_items()
        self.temperature_ = fit_temperature(given.mean, labels)
        folds = None
        if self.method == "items" and len(given) >= FEWEST_ITEMS:
            folds = self._fit_items(given, labels, where)
        else:
            self.seen_ = SeenItems.without_labels(given)
        self.reference_ = self._refer(given, labels, where, folds)
        return self

    def partial_fit(
        self,
        probabilities: ArrayLike,
        counts: Any,
        *,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Self:
        """Add items to those seen before; the result is the same as fitting on all at once.

        For the methods "cells" and "empirical", which need no items. A partition that learns from
        predictions (quantiles, k-means) learns from the first batch only, and all groups of `by`
        must be in it.
        """
        self._check_parameters()
        self._warn_without_items()
        given = check_items(probabilities, expected=self._shape_so_far())
        labels = check_labels(counts, given)
        if not hasattr(self, "statistics_"):
            self.partition_ = choose_partition(self.partition, by).fit_checked(given.mean)
        where = self._assign(given, cells, by)
        given = given.beside(self.partition_.item_columns(where))
        statistics = self._count(given, labels, where)
        if hasattr(self, "statistics_"):
            statistics = self.statistics_ + statistics
        self._fit_cells(statistics)
        self.input_shape_ = given.shape
        self._forget_items()
        return self

    def fit_statistics(self, statistics: CellStatistics) -> Self:
        """Calibrate from statistics gathered elsewhere with this calibrator's partition.

        For the methods "cells" and "empirical", which need no items.
        """
        self._check_parameters()
        check_kind(statistics, "statistics", CellStatistics)
        self._warn_without_items()
        self.partition_ = partition_of(statistics, as_partition(self.partition))
        self._fit_cells(statistics)
        n_columns = self.partition_.n_item_columns
        self.input_shape_ = InputShape(1, statistics.n_classes, n_columns)
        self._forget_items()
        return self

    def locate(self, probabilities: ArrayLike, cells: ArrayLike | None = None) -> Located:
        """Return the predictions after checking them, and the cell of each item.

        What comes with the data is in `cells`: cell numbers, or groups where the fit had `by`.
        """
        given = self._check_given(probabilities, None, any_features=True)
        return Located(given.mean, self.partition_.assign_checked(given.mean, cells))

    def expect(
        self,
        probabilities: ArrayLike,
        *,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Expected:
        """Say what labels of items should be like: their distribution, and how often two differ.

        Parameters are those of `decompose`. `panel_size` has no part in it.

        Returns
        -------
        Expected
            The cell of each item, the mean of its mixture, and the chance that two people disagree.
        """
        given, where, _ = self._check_all(probabilities, features, None, cells, by)
        return self._predictor().expect(given, where, None)

    def summarise(
        self,
        probabilities: ArrayLike,
        *,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Array:
        """Return what predictions and features of items look like, as `reference_` has it."""
        given, where, _ = self._check_all(probabilities, features, None, cells, by)
        reference = self.known_reference()
        centre, spread = reference.feature_centre, reference.feature_spread
        return summarise(given, self._predictor().expect(given, where, None), centre, spread)

    def known_reference(self) -> Reference:
        """Return `reference_`, or say that there is none."""
        self._check_fitted()
        if self.reference_ is None:
            raise InputError(
                "calibrator",
                "must have been fitted with `fit`, on items, by this version of hocal",
                value="one that knows no calibration items",
                remedy="Call fit(probabilities, counts); save it again if it comes from a file.",
            )
        return self.reference_

    def predict_mixture(
        self,
        probabilities: ArrayLike,
        *,
        features: ArrayLike | None = None,
        counts: Any = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Mixtures:
        """Return the calibrated mixture of each item, in class order.

        Parameters are those of `decompose`. A mixture per item takes much memory: predict in
        batches where there are many; `decompose` and `predict_proba` need none.
        """
        given, where, own = self._check_all(probabilities, features, counts, cells, by)
        return self._predictor().mixtures(given, where, own)

    def predict_proba(
        self,
        probabilities: ArrayLike,
        *,
        features: ArrayLike | None = None,
        counts: Any = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Array:
        """Return the mean of each item's mixture, a calibrated first-order prediction.

        Parameters are those of `decompose`.
        """
        given, where, own = self._check_all(probabilities, features, counts, cells, by)
        return self._predictor().means(given, where, own)

    def decompose(
        self,
        probabilities: ArrayLike,
        entropy: str | Entropy = "shannon",
        *,
        features: ArrayLike | None = None,
        counts: Any = None,
        base: float | None = None,
        kind: Any = "mutual-information",
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Decomposition:
        """Split the uncertainty of each item.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes) or (n_items, n_members, n_classes)
            Predictions, of the same form as in `fit`.
        entropy, base, kind
            As in `hocal.decompose`.
        features : array of shape (n_items, n_features), optional
            Those of the items, if there were any in `fit`.
        counts : array or sparse matrix of shape (n_items, n_classes), optional
            The items' own labels; a row of zeros for an item without any. The uncertainty is then
            what is left when they are known. Labels that an item had in `fit` are not counted
            twice: the item is known again by its prediction and its labels, and its mixture comes
            from the other items.
        cells : array of shape (n_items,), optional
            The cells of a PrecomputedPartition.
        by : array of shape (n_items,), optional
            The group of each item, if the fit had groups.

        Returns
        -------
        Decomposition
            Predictive, aleatoric and epistemic uncertainty of each item.
        """
        given, where, own = self._check_all(probabilities, features, counts, cells, by)
        measure = get_entropy(entropy, base=base)
        return self._predictor().decompose(
            given, where, own, measure, kind=kind, panel_size=self.panel_size
        )

    @overload
    def predict_set(
        self,
        probabilities: ArrayLike,
        *,
        coverage: float = ...,
        kind: Literal["distributions"] = ...,
        shape: Any = ...,
        confidence: float = ...,
        features: ArrayLike | None = ...,
        counts: Any = ...,
        cells: ArrayLike | None = ...,
        by: ArrayLike | None = ...,
    ) -> PredictionSets: ...

    @overload
    def predict_set(
        self,
        probabilities: ArrayLike,
        *,
        coverage: float = ...,
        kind: Literal["labels"],
        features: ArrayLike | None = ...,
        cells: ArrayLike | None = ...,
        by: ArrayLike | None = ...,
    ) -> LabelSets: ...

    def predict_set(
        self,
        probabilities: ArrayLike,
        *,
        coverage: float = 0.9,
        kind: Literal["distributions", "labels"] = "distributions",
        shape: Any = "atoms",
        confidence: float = 0.95,
        features: ArrayLike | None = None,
        counts: Any = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> PredictionSets | LabelSets:
        """Return a set of label distributions, or of labels, for each item.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes) or (n_items, n_members, n_classes)
            Predictions, of the same form as in `fit`.
        coverage : float, default=0.9
            Mass of a set of label distributions; probability with which a set of labels holds the
            label of a new person about a new item.
        kind : {"distributions", "labels"}
            What the sets are made of. Sets of labels are as large as the labels of the fit say they
            must be, each judged by parameters of other folds.
        shape : {"atoms", "ball", "certified"}
            Of sets of distributions: as in `hocal.predict_set`, which believe the mixtures; or
            balls that were proved to be large enough, as in `hocal.guarantees.certified_set`.
        confidence : float, default=0.95
            Probability with which certified balls have their coverage.
        features : array of shape (n_items, n_features), optional
            Those of the items, if there were any in `fit`.
        counts : array or sparse matrix of shape (n_items, n_classes), optional
            The items' own labels; not for sets that rest on labels of the fit, which were judged
            without any.
        cells : array of shape (n_items,), optional
            The cells of a PrecomputedPartition.
        by : array of shape (n_items,), optional
            The group of each item, if the fit had groups.

        Returns
        -------
        PredictionSets or LabelSets
            One set per item. Sets of labels and certified balls need ``method="items"``.
        """
        labels = check_choice(kind, "kind", KINDS) == "labels"
        check_kind(shape, "shape", str)
        if not labels and shape != "certified":
            mixtures = self.predict_mixture(
                probabilities, features=features, counts=counts, cells=cells, by=by
            )
            return predict_set(mixtures, coverage=coverage, shape=shape)
        wanted = check_fraction(coverage, "coverage")
        given, where, own = self._check_all(probabilities, features, counts, cells, by)
        calibration = check_set_calibration(self.sets_, own, self.method)
        predicted = self._predictor().item_mixtures(given, where, None)
        means = predicted.mean()
        if labels:
            return choose_labels(means, wanted, calibration.scores)
        return ball_around(
            means,
            expected_error(predicted),
            calibration.errors,
            coverage=wanted,
            confidence=confidence,
        )

    def calibration_error(
        self,
        probabilities: ArrayLike,
        counts: Any,
        *,
        k: int | None = None,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
        n_resamples: int = 100,
        random_state: Any = None,
    ) -> CalibrationError:
        """Measure calibration on test items, cell by cell; options as in `hocal.calibration_error`.

        Predicted and observed snapshots are compared class by class, so that a prediction of the
        wrong class shows. "empirical" predicts snapshots, of the k of its fit.
        """
        given, where, _ = self._check_all(probabilities, features, None, cells, by)
        labels = check_labels(counts, given)
        snapshots = self.method == "empirical"
        return calibration_error(
            self.cell_mixtures_[where] if snapshots else self._predictor().compared(given, where),
            labels,
            k=self.diagnostics_["k"] if snapshots and k is None else k,
            cells=where,
            n_cells=self.statistics_.n_cells,
            predictor="snapshot" if snapshots else "mixture",
            n_resamples=n_resamples,
            random_state=random_state,
        )

    def certify(
        self,
        confidence: float = 0.95,
        *,
        by: Literal["partition", "aleatoric", "epistemic"] = "partition",
        simultaneous: bool = False,
        k: int | None = None,
        design_effect: float = 1.0,
        anytime: bool = False,
    ) -> Certificate:
        """Say what the calibration labels prove about each cell; as `hocal.guarantees.certify`.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability with which a statement holds.
        by : {"partition", "aleatoric", "epistemic"}
            What the cells are: those of the partition, or tenths of the calibration items by the
            uncertainty that is predicted for them, for ``method="items"``. Each item's prediction
            then comes from the labels of other items.
        simultaneous : bool, default=False
            Whether it is to hold for all cells at once; one quantity at a time in both cases.
        k : int, optional
            Labels in the snapshots of epsilon.
        design_effect : float, default=1.0
            How many items are worth one independent item where items share annotators, as
            ``hocal.check_annotations(...).sharing.design_effect`` estimates it.
        anytime : bool, default=False
            Whether it is to hold however often one looks, as after every `partial_fit`. Intervals
            are then wider; without it they are for a number of items that was fixed in advance.

        Returns
        -------
        Certificate
            Arrays by cell number; ``names`` says what the level sets are.
        """
        self._check_fitted()
        options: dict[str, Any] = {
            "confidence": confidence,
            "simultaneous": simultaneous,
            "k": k,
            "design_effect": design_effect,
            "anytime": anytime,
        }
        if check_choice(by, "by", CERTIFIED) != "partition":
            return certify_levels(self._level_sets(by), by, options)
        return certificates.certify(
            self.statistics_,
            certified_mixtures(self.cell_mixtures_, self.class_orders_, self.statistics_),
            aligned=self.method != "empirical",
            snapshot_size=self.diagnostics_.get("k"),
            source=self.source_,
            **options,
        )

    def level(
        self,
        probabilities: ArrayLike,
        by: Literal["aleatoric", "epistemic"] = "aleatoric",
        *,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
    ) -> Index:
        """Return the level set of each item, the cell number in ``certify(by=...)``.

        What comes with the data is in `cells`: cell numbers, or groups where the fit had some.
        """
        levels = self._level_sets(by)
        parts = self.decompose(probabilities, features=features, cells=cells).as_dict()
        return levels.assign(parts[by])

    def _level_sets(self, by: str) -> LevelSets:
        self._check_fitted()
        quantity = check_choice(by, "by", QUANTITIES)
        if quantity not in self.levels_:
            rule = 'must be "partition" unless the calibrator was fitted with method="items"'
            raise InputError("by", rule, value=repr(by))
        return self.levels_[quantity]

    def _fitted_html(self) -> str:
        return fitted_html(self)

    def _count(self, given: GivenItems, labels: Counts, where: Index) -> CellStatistics:
        layout = self.partition_.layout_
        return CellStatistics.from_checked(given.mean, labels, where, layout)

    def _fit_cells(self, statistics: CellStatistics) -> None:
        if statistics.observed.totals.max() == 1:
            warnings.warn(_ONE_LABEL, OneLabelWarning, stacklevel=4)
        if self.method == "empirical":
            orders = np.full((statistics.n_cells, statistics.n_classes), -1, dtype=np.intp)
            fit = fit_empirical(statistics, self.k, self.thinning, self.random_state)
        else:
            orders = class_orders(statistics)
            fit = fit_deconvolved(put_in_order(statistics, orders))
        self.class_orders_ = orders
        self.cell_mixtures_ = fit.mixtures
        self.source_ = fit.source
        self.diagnostics_ = fit.diagnostics
        self.statistics_ = statistics

    def _forget_items(self) -> None:
        self.temperature_ = math.nan
        self.reference_ = None
        self.item_model_ = None
        self.levels_ = {}
        self.seen_ = SeenItems.none()
        self.sets_ = None

    def _fit_items(self, given: GivenItems, labels: Counts, where: Index) -> Index:
        """Fit the mixtures of items, with the mixtures of the cells as anchors; return folds."""
        layout = self.partition_.layout_
        fit = fit_with_folds(given, labels, where, layout, self.cell_mixtures_)
        self.item_model_ = fit.model
        self.seen_ = fit.seen
        self.sets_ = fit.sets
        self.levels_ = fit.levels
        return fit.folds

    def _predictor(self) -> Predictor:
        orders = None if self.method == "empirical" else self.class_orders_
        return Predictor(CellMixtures(self.cell_mixtures_, orders), self.item_model_, self.seen_)

    def _refer(
        self, given: GivenItems, labels: Counts, where: Index, folds: Index | None
    ) -> Reference:
        """Return what the items of the fit are like, each predicted without its own fold."""
        rows = thinned(given)
        items, cells = given.rows(rows), where[rows]
        predictor = self._predictor()
        without_own = predictor.expect(items, cells, None if folds is None else folds[rows])
        final = without_own if folds is None else predictor.expect(items, cells, None)
        n_cells = self.statistics_.n_cells
        return learn_reference(items, labels[rows], without_own, final, n_cells)

    def _check_all(
        self, probabilities: Any, features: Any, counts: Any, cells: Any, by: Any
    ) -> tuple[GivenItems, Index, Counts | None]:
        """Check what is given about items, find their cells, and take their own labels."""
        given = self._check_given(probabilities, features)
        where = self._assign(given, cells, by)
        given = given.beside(self.partition_.item_columns(where))
        return given, where, check_own_labels(counts, given)

    def _assign(self, given: GivenItems, cells: Any, by: Any) -> Index:
        partition = self.partition_
        return partition.assign_checked(given.mean, cells_or_groups(cells, by, partition))

    def _check_given(
        self, probabilities: Any, features: Any, *, any_features: bool = False
    ) -> GivenItems:
        self._check_fitted()
        expected = self._expected_shape()
        if any_features:
            expected = expected._replace(n_features=0)
        return check_items(probabilities, features, expected)

    def _expected_shape(self) -> InputShape:
        """Return the shape of what is given; columns of the partition are not."""
        n_given = self.input_shape_.n_features - self.partition_.n_item_columns
        return self.input_shape_._replace(n_features=n_given)

    def _shape_so_far(self) -> InputShape | None:
        return self._expected_shape() if hasattr(self, "statistics_") else None

    def _check_parameters(self) -> None:
        check_choice(self.method, "method", METHODS)
        check_choice(self.thinning, "thinning", THINNINGS)
        if self.panel_size is not None:
            check_panel_size(self.panel_size)

    def _warn_without_items(self) -> None:
        if self.method == "items":
            warnings.warn(_NO_ITEMS, UserWarning, stacklevel=3)

    def _check_fitted(self) -> None:
        if not hasattr(self, "cell_mixtures_"):
            raise NotFittedError(
                "This SnapshotCalibrator is not fitted yet. Call fit(probabilities, counts) first."
            )


def fitted_html(calibrator: SnapshotCalibrator) -> str:
    """Return what a notebook shows of a fitted calibrator; nothing of one that is not."""
    if not hasattr(calibrator, "cell_mixtures_"):
        return ""
    parts = decompose(calibrator.cell_mixtures_, panel_size=calibrator.panel_size)
    n_borrowed = int((calibrator.source_ != "cell").sum())
    return fitted_table(calibrator.statistics_, parts.as_dict(), n_borrowed=n_borrowed)
