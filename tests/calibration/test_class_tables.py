"""Recalibration with hundreds of classes, where tables of labels take the place of a matrix."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import softmax

from hocal._base.typing import Array, IntArray
from hocal.calibration.first_order.recalibration import CrossFitted, fit_recalibration
from hocal.calibration.first_order.temperature import apply_temperature, fit_temperature

N_CLASSES = 250
N_FOLDS = 5


class Study(NamedTuple):
    """Items to fit with three labels each, and fresh ones."""

    said: Array  #: (n_items, n_classes) predictions
    counts: IntArray  #: (n_items, n_classes)
    meant: Array  #: (n_items, n_classes) label distributions
    fresh: Array  #: (n_items, n_classes) predictions of others
    truth: Array  #: (n_items, n_classes) their label distributions

    @property
    def folds(self) -> IntArray:
        """Fold of each item to fit."""
        return np.arange(len(self.said)) % N_FOLDS

    def recalibrate(self) -> CrossFitted:
        """Fit."""
        return fit_recalibration(self.said[:, None], self.counts, None, self.folds)

    def loss_of_temperature(self) -> float:
        """Return what the plainest recalibration loses on fresh items."""
        temperature = fit_temperature(self.said, self.counts)
        return log_loss(apply_temperature(self.fresh, temperature), self.truth)


def log_loss(mean: Array, truth: Array) -> float:
    """Return the mean over items of what their labels cost, in nats."""
    return float(-(truth * np.log(mean)).sum(axis=1).mean())


def draw_study(n_items: int, *, power: float, renamed: bool) -> Study:
    """Draw items of a model that is wrong about which classes are frequent."""
    rng = np.random.default_rng(0)
    frequent = 1.5 * rng.normal(size=N_CLASSES)
    favoured = rng.normal(size=N_CLASSES)
    logits = 2 * rng.normal(size=(2 * n_items, N_CLASSES)) + frequent
    truth = softmax(logits, axis=1)
    said = softmax(power * (logits + favoured), axis=1)
    names = rng.permutation(N_CLASSES) if renamed else np.arange(N_CLASSES)
    fit, fresh = slice(n_items), slice(n_items, None)
    said = said[:, names]
    return Study(said[fit], rng.multinomial(3, truth[fit]), truth[fit], said[fresh], truth[fresh])


@pytest.mark.parametrize("power", [0.3, 1.0])
@pytest.mark.parametrize("renamed", [False, True])
def test_labels_are_no_likelier_than_others_without_their_fold(power: float, renamed: bool) -> None:
    """A table that lacks the labels of a fold must not give away which these are.

    Biases know how frequent classes are: what is rare in the table is then frequent in the fold.
    """
    study = draw_study(400, power=power, renamed=renamed)
    fitted = study.recalibrate()
    left_out = fitted.out_of_fold(study.said[:, None], None, study.folds)

    by_labels = log_loss(left_out, study.counts / 3)

    assert by_labels == pytest.approx(log_loss(left_out, study.meant), abs=0.1)


@pytest.mark.parametrize("n_items", [400, 1600])
def test_hundreds_of_classes_lose_no_more_than_a_temperature(n_items: int) -> None:
    study = draw_study(n_items, power=0.5, renamed=False)
    mean = study.recalibrate().final.apply(study.fresh[:, None])

    assert log_loss(mean, study.truth) <= study.loss_of_temperature()


def test_tables_know_which_of_hundreds_of_classes_a_model_calls_by_another_name() -> None:
    study = draw_study(1600, power=2.0, renamed=True)
    fitted = study.recalibrate()
    mean = fitted.final.apply(study.fresh[:, None])

    assert len(fitted.final.tables) == 2
    assert log_loss(mean, study.truth) <= study.loss_of_temperature() - 0.3
