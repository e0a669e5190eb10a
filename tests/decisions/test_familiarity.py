"""Items without labels: those like the calibration's give no warning, others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hocal
from hocal.decisions import familiarity

Array = NDArray[np.float64]


def draw(n_items: int, seed: int, sharpness: float = 0.5) -> tuple[Array, Array]:
    """Predictions and features."""
    generator = np.random.default_rng(seed)
    p = generator.dirichlet([sharpness] * 3, n_items)
    return p, generator.normal(size=(n_items, 3))


@pytest.fixture(scope="module")
def fitted() -> Any:
    p, features = draw(400, 0)
    labels = np.random.default_rng(1).multinomial(3, p)
    return hocal.SnapshotCalibrator().fit(p, labels, features=features)


def test_items_like_those_of_the_calibration_give_no_warning(fitted: Any) -> None:
    p, features = draw(300, 2)
    found = familiarity(fitted, p, features=features)

    assert not found.warning
    assert found.share.lower == 0
    assert "look like" in str(found)


def test_vaguer_predictions_give_a_warning(fitted: Any) -> None:
    p, features = draw(300, 3, sharpness=3.0)
    found = familiarity(fitted, p, features=features)

    assert found.warning
    assert 0.1 < found.share.lower < found.share.estimate < 1
    assert "This is a warning, not a guarantee" in str(found)


def test_moved_features_give_a_warning_and_say_so(fitted: Any) -> None:
    p, features = draw(300, 4)
    found = familiarity(fitted, p, features=features + 2)

    assert found.warning
    assert min(found.by_summary, key=lambda name: found.by_summary[name]) == "distance of features"


def test_a_strange_item_is_told_from_the_others(fitted: Any) -> None:
    p, features = draw(100, 5)
    features[7] = 20.0

    found = familiarity(fitted, p, features=features)

    assert found.unlike[7]
    assert found.unlike.mean() <= 0.1
    assert not found.warning


def test_the_share_is_no_more_than_that_of_the_strange_items(fitted: Any) -> None:
    """The lower end is certain with 1 - level."""
    p, features = draw(400, 6)
    features[:100] += 9

    share = familiarity(fitted, p, features=features).share

    assert 0 < share.lower <= 0.25 <= share.estimate + 0.05


def test_warnings_are_no_more_frequent_than_their_level() -> None:
    """10 fits of 20 sets each, all drawn alike: at the level of .1 some 20 warnings at most."""
    warnings = n_sets = 0
    rates = []
    for seed in range(10):
        p, _ = draw(80 + 20 * 40, seed)
        labels = np.random.default_rng(seed).multinomial(2, p[:80])
        calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), method="cells")
        calibrator.fit(p[:80], labels)
        for start in range(80, len(p), 40):
            found = familiarity(calibrator, p[start : start + 40], level=0.1)
            warnings += found.warning
            rates.append(found.unlike.mean())
            n_sets += 1

    assert warnings <= 0.1 * n_sets
    assert np.mean(rates) <= 0.05


def test_votes_of_few_models_give_no_warning_for_being_equal() -> None:
    """Shares of three votes take few values: ties make the test careful, not wrong."""
    votes = np.random.default_rng(0).multinomial(3, [0.5, 0.3, 0.2], 600) / 3
    labels = np.random.default_rng(1).multinomial(2, votes)
    calibrator = hocal.SnapshotCalibrator(method="cells").fit(votes[:300], labels[:300])

    assert not familiarity(calibrator, votes[300:]).warning


def test_two_items_at_least_are_compared(fitted: Any) -> None:
    p, features = draw(1, 0)
    with pytest.raises(hocal.InputError, match="`probabilities` must have at least 2 items"):
        familiarity(fitted, p, features=features)
