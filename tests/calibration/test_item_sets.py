"""Sets of a calibrator that its own calibration labels vouch for."""

from pathlib import Path

import numpy as np
import pytest

import hocal
from hocal.datasets import make_mixture_world

SEED = 20240612
WORLD = make_mixture_world(3000, 4, random_state=SEED)
FIT, NEW = slice(0, 1000), slice(1000, None)
COUNTS = WORLD.draw(3, random_state=SEED)
CALIBRATOR = hocal.SnapshotCalibrator().fit(WORLD.predictions[FIT], COUNTS[FIT])
NEW_PREDICTIONS = WORLD.predictions[NEW]


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_label_sets_hold_new_labels_as_often_as_asked(coverage: float) -> None:
    sets = CALIBRATOR.predict_set(NEW_PREDICTIONS, kind="labels", coverage=coverage)

    assert sets.n_calibration == 1000
    assert hocal.coverage(sets, COUNTS[NEW]) >= coverage - 0.03  # of 2,000 items with three labels


def test_label_sets_that_labels_vouch_for_are_smaller_than_those_that_believe_the_mean() -> None:
    """Whole classes overshoot the mass asked for, which labels notice."""
    believed = hocal.predict_set(
        CALIBRATOR.predict_mixture(NEW_PREDICTIONS[:200]), kind="labels", coverage=0.8
    )
    vouched = CALIBRATOR.predict_set(NEW_PREDICTIONS[:200], kind="labels", coverage=0.8)

    assert vouched.sizes.mean() < believed.sizes.mean()


@pytest.mark.parametrize("coverage", [0.5, 0.8])
def test_certified_balls_hold_the_true_label_distributions(coverage: float) -> None:
    sets = CALIBRATOR.predict_set(NEW_PREDICTIONS, shape="certified", coverage=coverage)

    truth = WORLD.label_distributions[NEW]
    assert hocal.coverage(sets, label_distributions=truth) >= coverage
    assert sets.radius.mean() < 1  # of 1.41: they say something


def test_sets_hold_about_as_many_true_label_distributions_as_they_believe() -> None:
    """Balls; of atoms, single points that stand for what is between them, none would."""
    sets = CALIBRATOR.predict_set(NEW_PREDICTIONS, coverage=0.8)

    truth = WORLD.label_distributions[NEW]
    assert hocal.coverage(sets, label_distributions=truth) == pytest.approx(0.8, abs=0.1)


def test_sets_survive_a_file(tmp_path: Path) -> None:
    hocal.save(CALIBRATOR, tmp_path / "model.hocal")
    loaded = hocal.load(tmp_path / "model.hocal")

    for options in ({"kind": "labels"}, {"shape": "certified"}):
        first, second = (
            each.predict_set(NEW_PREDICTIONS, **options) for each in (CALIBRATOR, loaded)
        )
        np.testing.assert_array_equal(first.mass, second.mass)


@pytest.mark.parametrize("options", [{"kind": "labels"}, {"shape": "certified"}])
def test_cells_alone_vouch_for_no_sets(options: dict[str, str]) -> None:
    cells = hocal.SnapshotCalibrator(method="cells").fit(WORLD.predictions[FIT], COUNTS[FIT])

    with pytest.raises(hocal.InputError, match='`method` must be "items"'):
        cells.predict_set(NEW_PREDICTIONS, **options)


def test_own_labels_are_refused_where_sets_were_judged_without() -> None:
    with pytest.raises(hocal.InputError, match="`counts` must be left out for kind"):
        CALIBRATOR.predict_set(NEW_PREDICTIONS, kind="labels", counts=COUNTS[NEW])


def test_a_classifier_gives_label_sets() -> None:
    from sklearn.linear_model import LogisticRegression

    generator = np.random.default_rng(SEED)
    X = generator.normal(size=(300, 2))
    counts = generator.multinomial(3, [0.5, 0.3, 0.2], size=300)
    classifier = hocal.HigherOrderCalibratedClassifier(LogisticRegression()).fit(X, counts)

    sets = classifier.predict_set(X[:5], kind="labels", coverage=0.7)

    assert len(sets) == 5
