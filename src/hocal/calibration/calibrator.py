"""Calibrate a first-order predictor to a higher-order one from a few labels per item."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Index
from hocal._base.validation import check_choice
from hocal.calibration.calibrator_fitting import CalibratorFitting
from hocal.calibration.calibrator_predictions import CalibratorPredictions
from hocal.calibration.calibrator_state import (
    METHODS,
    THINNINGS,
    Located,
    check_fitted,
    check_new_items,
    fitted_html,
    predictor_of,
)
from hocal.calibration.certification import certified_mixtures, certify_levels
from hocal.calibration.evaluation import CalibrationError, calibration_error
from hocal.calibration.inputs import check_labels
from hocal.calibration.levels import QUANTITIES, LevelSets
from hocal.guarantees import certificates
from hocal.guarantees.certificates import Certificate
from hocal.uncertainty.entropy import get_entropy

__all__ = ["METHODS", "THINNINGS", "Located", "SnapshotCalibrator", "fitted_html"]

CERTIFIED = ("partition", *QUANTITIES)


class SnapshotCalibrator(CalibratorFitting, CalibratorPredictions):
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
        given, where, _ = check_new_items(self, probabilities, features, None, cells, by)
        labels = check_labels(counts, given)
        snapshots = self.method == "empirical"
        return calibration_error(
            self.cell_mixtures_[where] if snapshots else predictor_of(self).compared(given, where),
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
        check_fitted(self)
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
        `panel_size` has no part in it.
        """
        levels = self._level_sets(by)
        given, where, _ = check_new_items(self, probabilities, features, None, cells, None)
        parts = predictor_of(self).decompose(
            given, where, None, get_entropy("shannon"), kind="mutual-information", panel_size=None
        )
        return levels.assign(parts.as_dict()[by])

    def _level_sets(self, by: str) -> LevelSets:
        check_fitted(self)
        quantity = check_choice(by, "by", QUANTITIES)
        if quantity not in self.levels_:
            rule = 'must be "partition" unless the calibrator was fitted with method="items"'
            raise InputError("by", rule, value=repr(by))
        return self.levels_[quantity]
