"""A scikit-learn meta-estimator: any classifier, calibrated to several labels per item."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from hocal._base.errors import InputError
from hocal._base.notebook import FittedInNotebooks
from hocal._base.typing import Array
from hocal._base.validation import check_counts, check_integer, check_mass, check_same_length
from hocal.calibration.calibrator import SnapshotCalibrator, fitted_html
from hocal.calibration.cross_fitting import (
    Fold,
    Labels,
    check_rows,
    check_splits,
    expand,
    frozen_classes,
    holds_counts,
    majority,
    out_of_fold,
    proba_by_class,
    read_labels,
    train,
)
from hocal.calibration.training_items import TrainingItems, deal_rows, warn_of_copies
from hocal.cells.partitions import as_partition
from hocal.guarantees.certificates import Certificate
from hocal.uncertainty.decomposition import Decomposition, Kind
from hocal.uncertainty.entropy import Entropy
from hocal.uncertainty.label_sets import LabelSets
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.sets import PredictionSets

__all__ = ["HigherOrderCalibratedClassifier"]


_CROSS_FITTED = (
    "The final model behaves like the models of the folds, whose predictions were calibrated."
)


class HigherOrderCalibratedClassifier(FittedInNotebooks, ClassifierMixin, BaseEstimator):
    """Classify, and tell what people disagree about from what the model does not know.

    Wraps a classifier and calibrates it with a `SnapshotCalibrator`. No item calibrates a model
    that was trained on it: a `FrozenEstimator` is taken as it is and all items calibrate it, any
    other estimator is trained and calibrated by cross-validation. Then the predictions of the
    folds' models on the items they have not seen are calibrated, and the estimator used for new
    items is trained on all of them. What is said about the training items themselves comes from the
    folds' models too, so `decompose` may be asked about them.

    An estimator is trained on every label: an item is repeated once for each class it has labels
    for, with their number as sample weight. One that takes no sample weights (a Pipeline: whose
    last step takes none) is trained on each item's most frequent label, ties going to the first
    class.

    Parameters
    ----------
    estimator : classifier with predict_proba, optional
        The model; ``LogisticRegression()`` by default. Wrap a model that was trained on other data
        in ``sklearn.frozen.FrozenEstimator``. Put preprocessing inside, as a Pipeline, to have it
        cross-validated too.
    calibrator : SnapshotCalibrator, optional
        How predictions become mixtures; ``SnapshotCalibrator()`` by default. It is cloned, and its
        partition must compute cells from predictions.
    cv : int, splitter or iterable of (train, test), optional
        How items are held out; 5 folds by default. A number of folds is stratified by each item's
        most frequent label, and keeps equal rows of X together, unless fewer than 20 rows differ.
        A splitter sees that label as `y`, and may hold out each item at most once; items it never
        holds out train the model and calibrate nothing. Unused with a frozen estimator.
    random_state : int, Generator or None
        Shuffles the items before they are assigned to a number of folds; None keeps their order.

    Attributes
    ----------
    estimator_ : classifier
        The model that predicts: trained on all items, or the frozen one.
    calibrator_ : SnapshotCalibrator
        Maps its predictions to mixtures; columns are in the order of `classes_`.
    classes_ : ndarray of shape (n_classes,)
        The label of each column.
    n_features_in_ : int
        Number of features, where `estimator_` knows it.
    feature_names_in_ : ndarray of str
        Names of the features, where `estimator_` knows them.

    Notes
    -----
    The guarantees of the calibrator hold for a frozen estimator that was trained on other items.
    With cross-validation they are about the models of the folds; that the final model, which has
    seen more items, behaves like them is an assumption. Items that belong together (frames of a
    video, say) need a group splitter as `cv`.

    This is no transformer, so `set_output` does not concern it: probabilities are numpy arrays, and
    ``decompose(X).to_frame()`` is a dataframe. scikit-learn's probability metrics (log_loss and
    others) expect the columns in sorted order of the labels; `classes` given to `fit` are kept as
    given.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.calibration.classifier import HigherOrderCalibratedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> dogs = rng.binomial(5, 1 / (1 + np.exp(-3 * X[:, 0])))  # five people label each picture
    >>> counts = np.column_stack([5 - dogs, dogs])
    >>> classifier = HigherOrderCalibratedClassifier()
    >>> classifier = classifier.fit(X, counts, classes=["cat", "dog"])
    >>> classifier.predict([[-2.0], [2.0]]).tolist()
    ['cat', 'dog']
    >>> parts = classifier.decompose([[0.0], [2.0]])
    >>> bool(parts.aleatoric[0] > parts.aleatoric[1])
    True
    """

    estimator_: Any
    calibrator_: SnapshotCalibrator
    training_items_: TrainingItems
    classes_: NDArray[Any]

    def __init__(
        self,
        estimator: Any = None,
        calibrator: SnapshotCalibrator | None = None,
        *,
        cv: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, classes: ArrayLike | None = None, **params: Any) -> Self:
        """Train the model unless it is frozen, and calibrate it.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n_items, n_features)
            Whatever the estimator takes; its rows are the items.
        y : array or sparse matrix of shape (n_items, n_classes), or (n_items,)
            Label counts of each item, or one label per item.
        classes : array of shape (n_classes,), optional
            The labels that the columns of counts stand for: by default those of a frozen estimator,
            else the columns' names in a dataframe, else 0, 1, 2, ... With one label per item: all
            labels there are, if some may not occur.
        **params : dict
            Passed to the estimator's `fit`, with items selected and repeated like those of X;
            sample weights multiply the label counts there and do not enter the calibration.
            `groups` goes to the splitter. With metadata routing enabled, each goes where it is
            requested. Unused with a frozen estimator.

        Returns
        -------
        self : HigherOrderCalibratedClassifier
            Fitted.
        """
        estimator = self._base_estimator()
        calibrator = self._calibrator()
        X = check_rows(X)
        labels = read_labels(y, classes, frozen_classes(estimator))
        items = np.arange(labels.counts.shape[0])
        check_same_length(X, items, ("X", "counts" if holds_counts(y) else "y"))
        if isinstance(estimator, FrozenEstimator):
            model = estimator
            p = proba_by_class(estimator, X, labels.classes)
            self.training_items_ = TrainingItems.none()
        else:
            to_fit, to_split = self._route(params)
            # Before the folds: what the estimator has to say against X should speak of all of X.
            model = train(estimator, X, labels, items, to_fit)
            items, p = out_of_fold(estimator, X, labels, self._splits(X, labels, to_split), to_fit)
            self.training_items_ = TrainingItems.of(_safe_indexing(X, items), p)
        self.calibrator_ = calibrator.fit(p, labels.counts[items])
        self.estimator_ = model
        self.classes_ = labels.classes
        return self

    def predict_proba(self, X: Any, *, counts: Any = None) -> Array:
        """Return calibrated probabilities (n_items, n_classes): the mean of each item's mixture.

        `counts` are the items' own labels, as in `decompose`.
        """
        raw = self.base_proba(X)
        return self.calibrator_.predict_proba(raw, counts=counts)

    def base_proba(self, X: Any) -> Array:
        """Return what the estimator itself predicts, uncalibrated, in the order of `classes_`.

        For an item that it was trained on, what the model of its fold said, which was not.
        """
        check_is_fitted(self, "calibrator_")
        X = check_rows(X)
        p = proba_by_class(self.estimator_, X, self.classes_)
        return self.training_items_.correct(X, p)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely label of each item, ties going to the first class."""
        winners = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winners])

    def predict_mixture(self, X: Any, *, counts: Any = None) -> Mixtures:
        """Return the calibrated distribution over label distributions of each item."""
        raw = self.base_proba(X)
        return self.calibrator_.predict_mixture(raw, counts=counts)

    def decompose(
        self,
        X: Any,
        entropy: str | Entropy = "shannon",
        *,
        counts: Any = None,
        base: float | None = None,
        kind: Kind = "mutual-information",
    ) -> Decomposition:
        """Split the uncertainty of each item; options as in `SnapshotCalibrator.decompose`.

        `counts` are the items' own labels. Items of the fit may be asked about as well: they are
        answered by models that have not seen them, and a calibrator of items does not count their
        labels twice.
        """
        raw = self.base_proba(X)
        return self.calibrator_.decompose(raw, entropy, counts=counts, base=base, kind=kind)

    def predict_set(
        self,
        X: Any,
        *,
        coverage: float = 0.9,
        kind: Any = "distributions",
        shape: Any = "ball",
        confidence: float = 0.95,
        counts: Any = None,
    ) -> PredictionSets | LabelSets:
        """Return a set for each item; options as in `SnapshotCalibrator.predict_set`."""
        raw = self.base_proba(X)
        options = {"kind": kind, "shape": shape, "confidence": confidence, "counts": counts}
        sets: PredictionSets | LabelSets
        sets = self.calibrator_.predict_set(raw, coverage=coverage, **options)
        return sets

    def certify(self, confidence: float = 0.95, **options: Any) -> Certificate:
        """Say what is guaranteed for each cell; options as in `SnapshotCalibrator.certify`.

        With cross-validation the certificate is about the models of the folds, see the notes above.
        """
        check_is_fitted(self, "calibrator_")
        certificate = self.calibrator_.certify(confidence, **options)
        if isinstance(self.estimator, FrozenEstimator):
            return certificate
        return replace(certificate, assumptions=(*certificate.assumptions, _CROSS_FITTED))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy; for label counts, the share of labels that equal the prediction."""
        if not holds_counts(y):
            return float(super().score(X, y, sample_weight))
        predicted = self.predict_proba(X).argmax(axis=1)
        counts = check_counts(y, n_classes=len(self.classes_))
        check_same_length(predicted, counts, ("X", "counts"))
        rows, codes, weights = expand(counts)
        if sample_weight is not None:
            weights = weights * check_mass(sample_weight, "sample_weight", len(predicted))[rows]
        return float(np.average(predicted[rows] == codes, weights=weights))

    @property
    def n_features_in_(self) -> int:
        """Number of features that the estimator has seen."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features that the estimator has seen."""
        return np.asarray(self.estimator_.feature_names_in_)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where metadata goes: to the estimator's `fit` and the splitter's `split`."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(
            estimator=self._base_estimator(),
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )
        return router.add(
            splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split")
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base_estimator())
        tags.input_tags = base.input_tags  # X is the estimator's business
        tags.classifier_tags = base.classifier_tags or tags.classifier_tags
        return tags

    def _base_estimator(self) -> Any:
        if self.estimator is None:
            from sklearn.linear_model import LogisticRegression  # slow to import

            return LogisticRegression()
        if not hasattr(self.estimator, "predict_proba"):
            raise InputError(
                "estimator",
                "must have predict_proba",
                value=repr(self.estimator),
                remedy="Wrap it in sklearn.calibration.CalibratedClassifierCV, "
                "or choose an option that gives it one.",
            )
        return self.estimator

    def _calibrator(self) -> SnapshotCalibrator:
        if self.calibrator is None:
            return SnapshotCalibrator()
        if not isinstance(self.calibrator, SnapshotCalibrator):
            rule = "must be a SnapshotCalibrator"
            raise InputError("calibrator", rule, value=repr(self.calibrator))
        if as_partition(self.calibrator.partition).takes_cells:
            raise InputError(
                "calibrator",
                "must have a partition that computes cells from predictions",
                value=repr(self.calibrator.partition),
                remedy="Use SnapshotCalibrator, which takes cells=, "
                "on the classifier's predictions.",
            )
        calibrator: SnapshotCalibrator = clone(self.calibrator)
        return calibrator

    def _fitted_html(self) -> str:
        return fitted_html(self.calibrator_) if hasattr(self, "calibrator_") else ""

    def _route(self, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters of the estimator's `fit` and of the splitter's `split`."""
        given = {name: value for name, value in params.items() if value is not None}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **given)
            return dict(routed["estimator"]["fit"]), dict(routed["splitter"]["split"])
        to_split = {"groups": given.pop("groups")} if "groups" in given else {}
        return given, to_split

    def _splits(self, X: Any, labels: Labels, options: dict[str, Any]) -> list[Fold]:
        """Return training and held-out items of each fold."""
        items = np.arange(labels.counts.shape[0])
        if len(items) == 1:
            rule = "must have at least two items"
            remedy = "What is said about an item comes from models that did not see it."
            raise InputError("X", rule, value=1, remedy=remedy)
        most = majority(labels.counts)
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, str):
            raise InputError(
                "cv",
                "must be a number of folds, a splitter or pairs of (train, test) items",
                value=repr(cv),
                remedy="Wrap an estimator that is trained already in "
                "sklearn.frozen.FrozenEstimator.",
            )
        is_number = isinstance(cv, Integral)
        if is_number:
            n_folds = check_integer(
                cv, "cv", minimum=2, maximum=len(items), why="Each fold needs an item."
            )
            cv = PredefinedSplit(deal_rows(X, labels.counts, n_folds, self.random_state))
        splits = check_cv(cv).split(X, labels.classes[most], **options)
        folds = check_splits([(items[train], items[test]) for train, test in splits], len(items))
        if not is_number:
            warn_of_copies(X, folds)
        return folds
