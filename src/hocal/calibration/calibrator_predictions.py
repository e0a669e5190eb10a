"""Predict with a fitted calibrator: mixtures, their means, their parts, sets."""

from __future__ import annotations

from typing import Any, Literal, overload

from numpy.typing import ArrayLike

from hocal._base.typing import Array
from hocal._base.validation import check_choice, check_fraction, check_kind
from hocal.calibration.calibrator_state import (
    CalibratorState,
    check_new_items,
    predictor_of,
)
from hocal.calibration.reference import Expected, summarise
from hocal.calibration.set_calibration import check_set_calibration, expected_error
from hocal.guarantees.certified_sets import ball_around
from hocal.uncertainty.decomposition import Decomposition
from hocal.uncertainty.entropy import Entropy, get_entropy
from hocal.uncertainty.label_sets import LabelSets, choose_labels
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.sets import KINDS, PredictionSets, predict_set

__all__ = ["CalibratorPredictions"]


class CalibratorPredictions(CalibratorState):
    """What `SnapshotCalibrator` says about items."""

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
        given, where, _ = check_new_items(self, probabilities, features, None, cells, by)
        return predictor_of(self).expect(given, where, None)

    def summarise(
        self,
        probabilities: ArrayLike,
        *,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Array:
        """Return what predictions and features of items look like, as `reference_` has it."""
        given, where, _ = check_new_items(self, probabilities, features, None, cells, by)
        reference = self.known_reference()
        centre, spread = reference.feature_centre, reference.feature_spread
        return summarise(given, predictor_of(self).expect(given, where, None), centre, spread)

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
        given, where, own = check_new_items(self, probabilities, features, counts, cells, by)
        return predictor_of(self).mixtures(given, where, own)

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
        given, where, own = check_new_items(self, probabilities, features, counts, cells, by)
        return predictor_of(self).means(given, where, own)

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
            what is left when they are known. With ``method="items"`` labels that an item had in
            `fit` are not counted twice: the item is known again by its prediction and its labels,
            and its mixture comes from the other items. Mixtures of cells have seen the labels of
            their items: asked about these again, small cells are somewhat too sure.
        cells : array of shape (n_items,), optional
            The cells of a PrecomputedPartition.
        by : array of shape (n_items,), optional
            The group of each item, if the fit had groups.

        Returns
        -------
        Decomposition
            Predictive, aleatoric and epistemic uncertainty of each item.
        """
        given, where, own = check_new_items(self, probabilities, features, counts, cells, by)
        measure = get_entropy(entropy, base=base)
        return predictor_of(self).decompose(
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
        shape: Any = "ball",
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
        shape : {"ball", "atoms", "certified"}, default="ball"
            Of sets of distributions: balls around the mean, or the heaviest atoms, as in
            `hocal.predict_set`, which believe the mixtures; or balls that were proved to be large
            enough, as in `hocal.guarantees.certified_set`. Atoms are single points, which stand for
            all that lies between them: expand such sets before asking what they hold.
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
        given, where, own = check_new_items(self, probabilities, features, counts, cells, by)
        calibration = check_set_calibration(self.sets_, own, self.method)
        predicted = predictor_of(self).item_mixtures(given, where, None)
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
