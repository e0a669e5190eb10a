"""A temperature for every item: learnt where labels ask for it, else left alone."""

import numpy as np

from hocal._base.typing import Array, IntArray
from hocal.calibration.by_item.temperatures import fit_temperatures, temper


def sharpened(where: Array, amount: float) -> tuple[Array, Array, IntArray]:
    """Return predictions, inputs and labels of items that are surer the larger an input is."""
    rng = np.random.default_rng(0)
    predictions = rng.dirichlet(np.ones(4), len(where)) + 1e-3
    predictions /= predictions.sum(axis=1, keepdims=True)
    truth = predictions ** np.exp(amount * where)[:, None]
    truth /= truth.sum(axis=1, keepdims=True)
    inputs = np.stack([np.ones(len(where)), where])
    return predictions, inputs, rng.multinomial(3, truth)


def test_temperatures_follow_an_input_on_which_they_depend() -> None:
    where = np.random.default_rng(1).normal(size=2000)
    predictions, inputs, counts = sharpened(where, 0.5)

    found = fit_temperatures(predictions, inputs, counts, np.arange(2000) % 5).final

    np.testing.assert_allclose(found, [0.0, 0.5], atol=0.06)


def test_predictions_that_are_right_stay_as_they_are() -> None:
    """With a hundred items a dependence can look better by chance, and makes them too sure."""
    where = np.random.default_rng(2).normal(size=100)
    predictions, inputs, counts = sharpened(where, 0.0)

    fitted = fit_temperatures(predictions, inputs, counts, np.arange(100) % 5)

    assert not fitted.final.any()
    assert fitted.without.shape == (5, 2)
    assert not fitted.without.any()
    np.testing.assert_allclose(temper(predictions, inputs, fitted.final), predictions, rtol=1e-12)
