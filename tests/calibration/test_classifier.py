"""The scikit-learn meta-estimator: honest about which items calibrate, at home in scikit-learn."""

import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, RepeatedKFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import hocal
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.classifier import HigherOrderCalibratedClassifier
from hocal.calibration.training_items import TrainingItems, deal_rows

# Many a test, and scikit-learn's own, gives one label an item, of which the calibrator warns.
pytestmark = pytest.mark.filterwarnings("ignore:No item has two labels")


def make_world(
    n_items: int = 300, n_labels: int = 4, seed: int = 0
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return features and the counts of labels drawn from a softmax of them, three classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 2))
    scores = np.exp(2 * X @ np.array([[1.0, -1.0, 0.0], [0.0, 0.5, 1.0]]))
    return X, rng.multinomial(n_labels, scores / scores.sum(axis=1, keepdims=True))


X, COUNTS = make_world()
Y = COUNTS.argmax(axis=1)
NOISE = np.random.default_rng(1).integers(2, size=len(X))  # labels that X says nothing about


def classifier(
    estimator: Any = None, cv: Any = None, random_state: Any = None, **options: Any
) -> HigherOrderCalibratedClassifier:
    calibrator = SnapshotCalibrator(**{"method": "empirical", **options})
    return HigherOrderCalibratedClassifier(estimator, calibrator, cv=cv, random_state=random_state)


def memoriser() -> KNeighborsClassifier:
    """Return a model that knows every training item by heart."""
    return KNeighborsClassifier(n_neighbors=1)


def frozen(labels: NDArray[Any] = Y) -> FrozenEstimator:
    return FrozenEstimator(LogisticRegression().fit(X, labels))


def expected_failures(_: Any) -> dict[str, str]:
    return {
        "check_classifiers_one_label_sample_weights": (
            "sample weights train the estimator and do not weigh the calibration, where items are "
            "counted, so labels of items with weight 0 are still predicted"
        )
    }


@parametrize_with_checks(
    [classifier(LogisticRegression(), cv=2)], expected_failed_checks=expected_failures
)
def test_scikit_learn_common_check_passes(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([HigherOrderCalibratedClassifier(LogisticRegression(), cv=2)])
def test_scikit_learn_common_check_passes_by_default(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_calibrator_is_the_default_one_unless_given() -> None:
    fitted = HigherOrderCalibratedClassifier().fit(X, COUNTS)

    assert fitted.calibrator_.method == SnapshotCalibrator().method


def test_what_is_no_calibrator_is_refused() -> None:
    with pytest.raises(hocal.InputError, match="`calibrator` must be a SnapshotCalibrator, got"):
        HigherOrderCalibratedClassifier(calibrator="cells").fit(X, COUNTS)  # type: ignore[arg-type]


def test_items_of_the_fit_are_answered_by_models_that_have_not_seen_them() -> None:
    """A memoriser of noise is certain about its training items, and wrong about all others."""
    fitted = HigherOrderCalibratedClassifier(memoriser(), cv=5).fit(X, NOISE)

    assert fitted.base_proba(X)[np.arange(len(X)), NOISE].mean() < 0.7
    assert fitted.estimator_.predict_proba(X)[np.arange(len(X)), NOISE].mean() == 1


def test_new_items_are_answered_by_the_model_of_all() -> None:
    fitted = HigherOrderCalibratedClassifier(LogisticRegression(), cv=3).fit(X, COUNTS)
    new, _ = make_world(20, seed=5)

    assert (fitted.base_proba(new) == fitted.estimator_.predict_proba(new)).all()


def test_aleatoric_uncertainty_of_training_items_is_right() -> None:
    """Forests are over-confident about items they were trained on."""
    world, counts = make_world(800, 4, seed=7)
    scores = np.exp(2 * world @ np.array([[1.0, -1.0, 0.0], [0.0, 0.5, 1.0]]))
    truth = scores / scores.sum(axis=1, keepdims=True)
    entropy = -(truth * np.log(truth)).sum(axis=1).mean()
    forest = RandomForestClassifier(n_estimators=30, random_state=0)

    fitted = HigherOrderCalibratedClassifier(forest, cv=5).fit(world, counts)

    assert fitted.decompose(world).aleatoric.mean() == pytest.approx(entropy, abs=0.06)


def test_training_items_are_known_again_in_dataframes_with_text() -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down")})
    items = TrainingItems.of(frame, np.eye(3)[Y])

    corrected = items.correct(frame[::-1], np.zeros((len(X), 3)))

    assert (corrected == np.eye(3)[Y][::-1]).all()


def test_own_labels_of_training_items_are_not_counted_twice() -> None:
    fitted = HigherOrderCalibratedClassifier(LogisticRegression(), cv=3).fit(X, COUNTS)

    known = fitted.calibrator_.seen_.fingerprints

    assert len(known) == len(X)
    assert np.isfinite(fitted.decompose(X, counts=COUNTS).aleatoric).all()


def test_a_memoriser_does_not_look_calibrated_on_the_items_it_has_seen() -> None:
    """It would predict its training items without error; held-out items show it knows nothing."""
    fitted = classifier(memoriser()).fit(X, NOISE)

    assert np.abs(fitted.predict_proba(X) - 0.5).max() < 0.15


def test_groups_keep_copies_of_an_item_together() -> None:
    twice, labels, groups = (
        np.repeat(X, 2, axis=0),
        np.repeat(NOISE, 2),
        np.repeat(np.arange(len(X)), 2),
    )
    fitted = classifier(memoriser(), cv=GroupKFold(5)).fit(twice, labels, groups=groups)

    assert np.abs(fitted.predict_proba(twice) - 0.5).max() < 0.15


@pytest.mark.parametrize("as_given", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_copies_of_an_item_are_answered_by_models_that_have_seen_none(as_given: Any) -> None:
    """One row per judgement: a model that saw another judgement of the item knows its label."""
    twice, labels = np.repeat(X, 2, axis=0), np.repeat(NOISE, 2)
    fitted = classifier(memoriser()).fit(as_given(twice), labels)

    own = fitted.base_proba(as_given(twice))[np.arange(len(labels)), labels]

    assert own.mean() < 0.6


def test_the_folds_of_copies_hold_equally_many_rows() -> None:
    distinct = X[:, :1].round(1)

    sizes = np.bincount(deal_rows(distinct, COUNTS, 3, None))

    assert len(np.unique(distinct)) < 0.3 * len(X)
    assert sizes.min() > 0.7 * len(X) / 3


def test_a_splitter_that_separates_copies_brings_a_warning() -> None:
    twice, labels = np.repeat(X, 2, axis=0), np.repeat(NOISE, 2)

    with pytest.warns(UserWarning, match="472 rows of X that `cv` holds out have copies"):
        classifier(memoriser(), cv=KFold(5, shuffle=True, random_state=0)).fit(twice, labels)


def test_items_of_a_few_categories_are_no_copies() -> None:
    """Of a category that it has not seen, a model knows less than the final one does."""
    category = np.arange(len(X)) % 4
    labels = category // 2
    tree = DecisionTreeClassifier()

    fitted = classifier(tree).fit(category[:, None], labels)

    assert (fitted.base_proba(category[:, None]).argmax(axis=1) == labels).all()


def test_every_item_calibrates_once_in_cross_validation() -> None:
    assert classifier().fit(X, COUNTS).calibrator_.statistics_.n_items.sum() == len(X)


def test_items_never_held_out_do_not_calibrate() -> None:
    fitted = classifier(cv=ShuffleSplit(1, test_size=60, random_state=0)).fit(X, COUNTS)

    assert fitted.calibrator_.statistics_.n_items.sum() == 60


def test_the_final_estimator_is_trained_on_all_items() -> None:
    assert np.array_equal(
        classifier().fit(X, Y).estimator_.coef_, LogisticRegression().fit(X, Y).coef_
    )


def test_a_frozen_estimator_is_not_touched() -> None:
    model = frozen()
    before = pickle.dumps(model)
    fitted = classifier(model).fit(*make_world(seed=2))

    assert fitted.estimator_ is model
    assert pickle.dumps(model) == before


def test_all_items_calibrate_a_frozen_estimator() -> None:
    fresh, counts = make_world(seed=2)
    model = frozen()
    by_hand = SnapshotCalibrator(method="empirical").fit(model.predict_proba(fresh), counts)

    assert np.array_equal(
        classifier(model).fit(fresh, counts).predict_proba(X),
        by_hand.predict_proba(model.predict_proba(X)),
    )


def test_counts_train_like_repeated_labels() -> None:
    rows, labels = (
        np.repeat(np.arange(len(X)), 4),
        np.concatenate([np.repeat([0, 1, 2], row) for row in COUNTS]),
    )
    repeated = LogisticRegression(tol=1e-8).fit(X[rows], labels)

    fitted = classifier(LogisticRegression(tol=1e-8)).fit(X, COUNTS)

    np.testing.assert_allclose(fitted.estimator_.coef_, repeated.coef_, atol=1e-5)


def test_one_label_per_item_is_a_row_of_counts_with_a_single_one() -> None:
    single, counted = classifier().fit(X, Y), classifier().fit(X, np.eye(3, dtype=int)[Y])

    assert np.array_equal(single.predict_proba(X), counted.predict_proba(X))


def test_the_last_step_of_a_pipeline_gets_the_weights() -> None:
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    rows, classes = np.nonzero(COUNTS)
    by_hand = clone(pipeline).fit(X[rows], classes, gaussiannb__sample_weight=COUNTS[rows, classes])

    assert np.array_equal(
        classifier(pipeline).fit(X, COUNTS).estimator_.predict_proba(X), by_hand.predict_proba(X)
    )


def test_a_pipeline_that_requests_weights_gets_them() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        asking = make_pipeline(GaussianNB().set_fit_request(sample_weight=True))
        fitted = classifier(asking).fit(X, COUNTS)

    plain = classifier(GaussianNB()).fit(X, COUNTS)

    assert np.array_equal(fitted.predict_proba(X), plain.predict_proba(X))


def test_an_estimator_without_weights_learns_the_majority_label() -> None:
    fitted = classifier(memoriser()).fit(X, COUNTS)

    assert np.array_equal(fitted.estimator_.predict(X), Y)


def test_sample_weights_multiply_the_counts_in_training() -> None:
    weights = np.random.default_rng(3).uniform(size=len(X))
    rows, classes = np.nonzero(COUNTS)
    by_hand = GaussianNB().fit(
        X[rows], classes, sample_weight=COUNTS[rows, classes] * weights[rows]
    )

    fitted = classifier(GaussianNB()).fit(X, COUNTS, sample_weight=weights)

    assert np.array_equal(fitted.estimator_.predict_proba(X), by_hand.predict_proba(X))


def test_metadata_goes_where_it_is_requested() -> None:
    weights = np.random.default_rng(3).uniform(size=len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        base = GaussianNB().set_fit_request(sample_weight=True)
        fitted = classifier(base, cv=GroupKFold(5)).fit(
            X, Y, sample_weight=weights, groups=np.arange(len(X))
        )

    by_hand = GaussianNB().fit(X, Y, sample_weight=weights)

    assert np.array_equal(fitted.estimator_.predict_proba(X), by_hand.predict_proba(X))


def test_metadata_nobody_requested_is_refused() -> None:
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(TypeError, match="unexpected argument"),
    ):
        classifier(GaussianNB()).fit(X, Y, groups=np.arange(len(X)))


def test_classes_of_counts_are_numbers_by_default() -> None:
    assert classifier().fit(X, COUNTS).classes_.tolist() == [0, 1, 2]


def test_columns_of_a_dataframe_name_the_classes() -> None:
    frame = pd.DataFrame(COUNTS, columns=["dog", "cat", "ant"])

    assert classifier().fit(X, frame).classes_.tolist() == ["dog", "cat", "ant"]
    assert classifier().fit(X, frame.set_axis([2, 1, 0], axis=1)).classes_.tolist() == [0, 1, 2]


def test_columns_in_another_order_than_the_classes_are_refused() -> None:
    frame = pd.DataFrame(COUNTS, columns=["dog", "cat", "ant"])

    with pytest.raises(
        ValueError, match=r"the order of the classes, \['ant', 'cat', 'dog'\], got \['dog', 'cat'"
    ):
        classifier().fit(X, frame, classes=["ant", "cat", "dog"])


def test_a_trained_estimator_is_to_be_frozen_not_announced() -> None:
    with pytest.raises(
        ValueError, match=r"got 'prefit'\. Wrap .* in sklearn\.frozen\.FrozenEstimator"
    ):
        classifier(cv="prefit").fit(X, COUNTS)


def test_classes_name_the_columns_in_the_order_given() -> None:
    numbered, named = (
        classifier().fit(X, COUNTS),
        classifier().fit(X, COUNTS, classes=["dog", "cat", "ant"]),
    )

    assert np.array_equal(named.predict(X), np.array(["dog", "cat", "ant"])[numbered.predict(X)])


def test_columns_of_counts_follow_a_frozen_estimators_classes() -> None:
    names = np.array(["a", "b", "c"])

    assert classifier(frozen(names[Y])).fit(X, COUNTS).classes_.tolist() == ["a", "b", "c"]


def test_classes_reorder_a_frozen_estimators_columns() -> None:
    plain = classifier(frozen()).fit(X, COUNTS)
    turned = classifier(frozen()).fit(X, COUNTS[:, ::-1], classes=[2, 1, 0])

    np.testing.assert_allclose(turned.predict_proba(X)[:, ::-1], plain.predict_proba(X))


def test_one_label_per_item_may_lack_classes_of_a_frozen_estimator() -> None:
    fitted = classifier(frozen()).fit(X[Y == 1], Y[Y == 1])

    assert fitted.predict_proba(X).tolist() == [[0, 1, 0]] * len(X)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-3, 7], [1.0, 2.0]])
def test_predictions_are_labels(labels: list[Any]) -> None:
    names = np.array(labels)

    assert set(classifier().fit(X, names[(X[:, 0] > 0).astype(int)]).predict(X).tolist()) == set(
        labels
    )


def test_two_classes_have_two_columns() -> None:
    assert classifier().fit(X, NOISE).predict_proba(X).shape == (len(X), 2)


def test_a_class_absent_from_a_folds_training_part_keeps_its_column() -> None:
    """The only item of class 2 is held out once, and that fold's model has never seen the class."""
    labels = np.where(np.arange(len(X)) == 17, 2, (X[:, 0] > 0).astype(int))
    fitted = classifier(partition=lambda p: np.zeros(len(p), dtype=int)).fit(X, labels)

    np.testing.assert_allclose(fitted.predict_proba(X)[:, 2], 1 / len(X))


def test_folds_are_dealt_in_order_without_a_seed() -> None:
    first, second = (classifier(memoriser()).fit(X, NOISE).predict_proba(X) for _ in range(2))

    assert np.array_equal(first, second)


def test_a_seed_shuffles_the_folds() -> None:
    ordered = classifier(memoriser()).fit(X, NOISE).predict_proba(X)

    assert not np.array_equal(
        classifier(memoriser(), random_state=0).fit(X, NOISE).predict_proba(X), ordered
    )


def test_an_iterable_of_splits_holds_items_out() -> None:
    half = np.arange(len(X)) % 2 == 0
    fitted = classifier(cv=[(half, ~half), (~half, half)]).fit(X, COUNTS)

    assert np.allclose(
        fitted.predict_proba(X),
        classifier(cv=[(~half, half), (half, ~half)]).fit(X, COUNTS).predict_proba(X),
    )


def test_parts_of_uncertainty_add_up() -> None:
    parts = classifier().fit(X, COUNTS).decompose(X, "brier")

    np.testing.assert_allclose(parts.predictive, parts.aleatoric + parts.epistemic, atol=1e-12)


def test_options_of_decompose_reach_it() -> None:
    fitted = classifier().fit(X, COUNTS)

    np.testing.assert_allclose(
        fitted.decompose(X, base=2).aleatoric * np.log(2), fitted.decompose(X).aleatoric
    )


def test_panel_size_reaches_the_calibrator() -> None:
    fitted = classifier().fit(X, COUNTS)
    panel = classifier(panel_size=2).fit(X, COUNTS)

    assert panel.decompose(X).aleatoric.mean() < fitted.decompose(X).aleatoric.mean()


def test_probabilities_are_the_mean_of_the_mixtures() -> None:
    fitted = classifier().fit(X, COUNTS)

    np.testing.assert_allclose(fitted.predict_mixture(X).mean(), fitted.predict_proba(X))


def test_there_is_a_prediction_set_for_each_item() -> None:
    assert len(classifier().fit(X, COUNTS).predict_set(X, coverage=0.8)) == len(X)


def test_sets_have_the_shape_that_the_calibrator_gives_unless_asked() -> None:
    fitted = classifier().fit(X, COUNTS)

    own = fitted.calibrator_.predict_set(fitted.base_proba(X))

    assert np.array_equal(fitted.predict_set(X).radius, own.radius)


def test_certify_forwards_to_the_calibrator() -> None:
    certificate = classifier(frozen()).fit(X, COUNTS).certify(0.9, simultaneous=True)

    assert (certificate.confidence, certificate.simultaneous) == (0.9, True)


def test_a_certificate_after_cross_validation_names_its_further_assumption() -> None:
    crossed, held = (
        classifier(each).fit(X, COUNTS).certify() for each in (LogisticRegression(), frozen())
    )

    assert set(crossed.assumptions) - set(held.assumptions) == {
        "The final model behaves like the models of the folds, whose predictions were calibrated."
    }


def test_score_of_single_labels_is_the_accuracy() -> None:
    fitted = classifier().fit(X, Y)

    assert fitted.score(X, Y) == pytest.approx(np.mean(fitted.predict(X) == Y))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_score_of_counts_is_the_share_of_labels_predicted(container: Any) -> None:
    fitted = classifier().fit(X, COUNTS)

    hits = COUNTS[np.arange(len(X)), fitted.predict(X)]

    assert fitted.score(X, container(COUNTS)) == pytest.approx(hits.sum() / COUNTS.sum())


def test_score_of_counts_weighs_items() -> None:
    fitted, weights = classifier().fit(X, COUNTS), np.arange(len(X))

    hits = COUNTS[np.arange(len(X)), fitted.predict(X)]

    assert fitted.score(X, COUNTS, weights) == pytest.approx(hits @ weights / (4 * weights.sum()))


def test_works_as_the_last_step_of_a_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), classifier()).fit(X, COUNTS)

    assert pipeline.score(X, COUNTS) > 0.6


def test_feature_names_come_through_a_pipeline_that_outputs_dataframes() -> None:
    """`set_output` concerns the transformers before the classifier."""
    pipeline = make_pipeline(StandardScaler(), classifier()).set_output(transform="pandas")
    pipeline.fit(pd.DataFrame(X, columns=["width", "height"]), COUNTS)

    assert pipeline[-1].feature_names_in_.tolist() == ["width", "height"]


def test_probabilities_of_a_dataframe_are_a_numpy_array() -> None:
    frame = pd.DataFrame(X, columns=["width", "height"])

    assert type(classifier().fit(frame, COUNTS).predict_proba(frame)) is np.ndarray


def test_dataframes_give_the_numbers_of_arrays() -> None:
    index = np.random.default_rng(4).permutation(len(X))  # a row's label says nothing of its place
    frame, table = (
        pd.DataFrame(X, columns=["width", "height"], index=index),
        pd.DataFrame(COUNTS, index=index[::-1]),
    )

    fitted = classifier().fit(frame, table)

    assert np.array_equal(fitted.predict_proba(frame), classifier().fit(X, COUNTS).predict_proba(X))


def test_sparse_features_give_the_numbers_of_dense_ones() -> None:
    fitted = classifier().fit(sparse.coo_array(X), COUNTS)

    np.testing.assert_allclose(
        fitted.predict_proba(sparse.csr_array(X)), classifier().fit(X, COUNTS).predict_proba(X)
    )


def test_sparse_counts_give_the_numbers_of_dense_ones() -> None:
    fitted = classifier().fit(X, sparse.csr_array(COUNTS))

    np.testing.assert_allclose(
        fitted.predict_proba(X), classifier().fit(X, COUNTS).predict_proba(X)
    )


def test_grid_search_sets_the_number_of_slices() -> None:
    search = GridSearchCV(
        classifier(partition=hocal.TopLabelPartition()),
        {"calibrator__partition__n_slices": [1, 5]},
        cv=3,
    )
    search.fit(X, COUNTS)

    n_slices = search.best_params_["calibrator__partition__n_slices"]

    assert search.best_estimator_.calibrator_.partition_.n_cells_ == 3 * n_slices


def test_grid_search_takes_sparse_counts() -> None:
    search = GridSearchCV(classifier(), {"calibrator__k": [1, 2]}, cv=3)
    dense, thin = (clone(search).fit(X, counts) for counts in (COUNTS, sparse.csr_array(COUNTS)))

    np.testing.assert_allclose(
        thin.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"]
    )


def test_a_clone_is_not_fitted_and_has_the_same_parameters() -> None:
    original = classifier(LogisticRegression(C=3), partition=hocal.UniformPartition(4), cv=3).fit(
        X, NOISE
    )
    copy = clone(original)

    assert repr(copy) == repr(original)
    assert not hasattr(copy, "calibrator_")


def test_the_default_estimator_is_a_logistic_regression() -> None:
    assert isinstance(classifier().fit(X, COUNTS).estimator_, LogisticRegression)


class SparseModel(LogisticRegression):
    """Says that it takes sparse features; old versions of scikit-learn say so of no model."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@pytest.mark.parametrize(("base", "takes_sparse"), [(SparseModel(), True), (GaussianNB(), False)])
def test_tags_of_the_features_are_those_of_the_estimator(base: Any, takes_sparse: bool) -> None:
    assert sklearn.utils.get_tags(classifier(base)).input_tags.sparse is takes_sparse


class WordModel(BaseEstimator):
    """Classify strings by their length; knows no number of features."""

    def fit(self, X: list[str], y: Any) -> "WordModel":
        """Remember the classes."""
        assert all(isinstance(word, str) for word in X)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: list[str]) -> Any:
        """Return 0.9 for the second class of a long word."""
        long = np.array([0.9 if len(word) > 3 else 0.1 for word in X])
        return np.column_stack([1 - long, long])


def test_features_are_whatever_the_estimator_takes() -> None:
    words = ["cat", "horse"] * 20

    assert classifier(WordModel()).fit(words, [0, 1] * 20).predict(["ant", "camel"]).tolist() == [
        0,
        1,
    ]


def test_number_of_features_is_unknown_where_the_estimator_does_not_know_it() -> None:
    assert not hasattr(
        classifier(WordModel()).fit(["cat", "horse"] * 20, [0, 1] * 20), "n_features_in_"
    )


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_mixture", "predict_set", "decompose"]
)
def test_predicting_before_fitting_is_refused(method: str) -> None:
    with pytest.raises(
        NotFittedError, match="HigherOrderCalibratedClassifier instance is not fitted yet"
    ):
        getattr(classifier(), method)(X)


def test_an_unfitted_frozen_estimator_is_refused() -> None:
    with pytest.raises(NotFittedError, match="FrozenEstimator instance is not fitted yet"):
        classifier(FrozenEstimator(LogisticRegression())).fit(X, COUNTS)


def test_an_estimator_without_probabilities_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`estimator` must have predict_proba, got Perceptron\(\)\. Wrap it in"
    ):
        classifier(Perceptron()).fit(X, COUNTS)


@pytest.mark.parametrize(
    ("labels", "name"),
    [(COUNTS[:-1], "counts"), (sparse.csr_array(COUNTS[:-1]), "counts"), (Y[:-1], "y")],
)
def test_mismatched_rows_are_refused(labels: Any, name: str) -> None:
    with pytest.raises(
        ValueError, match=f"`X` and `{name}` must describe the same items, got 300 and 299 rows"
    ):
        classifier().fit(X, labels)


def test_mismatched_rows_are_refused_in_score() -> None:
    with pytest.raises(
        ValueError, match="`X` and `counts` must describe the same items, got 300 and 299 rows"
    ):
        classifier().fit(X, COUNTS).score(X, COUNTS[:-1])


def test_items_without_labels_are_refused() -> None:
    counts = COUNTS.copy()
    counts[7] = 0

    with pytest.raises(
        ValueError, match="`counts` must have at least 1 label in each row, got 0 in row 7"
    ):
        classifier().fit(X, counts)


def test_more_classes_than_a_frozen_estimator_knows_are_refused() -> None:
    with pytest.raises(
        ValueError,
        match="a column for each of the 3 classes of the frozen estimator, got 4 columns",
    ):
        classifier(frozen()).fit(X, np.column_stack([COUNTS, Y]))


def test_a_label_that_a_frozen_estimator_does_not_know_is_refused() -> None:
    labels = np.where(np.arange(len(X)) == 5, 9, Y)

    with pytest.raises(ValueError, match=r"among the classes \[0, 1, 2\], got 9 in row 5\. Drop"):
        classifier(frozen()).fit(X, labels)


def test_other_classes_than_a_frozen_estimators_are_refused() -> None:
    message = (
        "`classes` must be those of the frozen estimator, [0, 1, 2], in any order, got [0, 1, 5]."
    )

    with pytest.raises(ValueError, match=re.escape(message)):
        classifier(frozen()).fit(X, COUNTS, classes=[0, 1, 5])


def test_too_few_names_for_the_columns_are_refused() -> None:
    with pytest.raises(
        ValueError, match="a column for each of the 2 given `classes`, got 3 columns"
    ):
        classifier().fit(X, COUNTS, classes=["a", "b"])


def test_equal_names_for_two_columns_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`classes` must be a list of distinct labels, got \['a', 'b', 'a'\]"
    ):
        classifier().fit(X, COUNTS, classes=["a", "b", "a"])


def test_a_single_class_is_refused() -> None:
    with pytest.raises(
        ValueError, match="`y` must hold labels of at least two classes, got one class, 0"
    ):
        classifier().fit(X, np.zeros(len(X), dtype=int))


def test_one_item_is_too_few_to_hold_any_out() -> None:
    with pytest.raises(hocal.InputError, match="`X` must have at least two items, got 1"):
        classifier(cv=2).fit(X[:1], [[1, 1]])


def test_more_folds_than_items_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`cv` must be an integer from 2 to 4, got 5\. Each fold needs an item"
    ):
        classifier().fit(X[:4], [0, 1, 0, 1])


def test_holding_an_item_out_twice_is_refused() -> None:
    with pytest.raises(
        ValueError, match="`cv` must hold out each item at most once, got item 0 held out 2 times"
    ):
        classifier(cv=RepeatedKFold(n_splits=5, n_repeats=2, random_state=0)).fit(X, COUNTS)


def test_training_on_held_out_items_is_refused() -> None:
    everything = np.arange(len(X))

    with pytest.raises(
        ValueError, match="`cv` must not train on the items it holds out, got item 0 in both parts"
    ):
        classifier(cv=[(everything, everything)]).fit(X, COUNTS)


def test_a_partition_that_needs_cells_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"`calibrator` must have a partition that computes cells from predictions, got Pre",
    ):
        classifier(partition=hocal.PrecomputedPartition(n_cells=3)).fit(X, COUNTS)


class NoArray:
    """An object that will not become an array."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")


@pytest.mark.parametrize("method", ["fit", "decompose"])
def test_an_x_without_rows_is_refused_in_words(method: str) -> None:
    x = np.repeat(np.eye(2), 20, axis=0)
    classifier = HigherOrderCalibratedClassifier(LogisticRegression())
    if method != "fit":
        classifier.fit(x, 2 * x.astype(int))
    more = (2 * x.astype(int),) if method == "fit" else ()

    with pytest.raises(hocal.InputError, match=r"`X` must be an array, .* got NoArray: no array"):
        getattr(classifier, method)(NoArray(), *more)
