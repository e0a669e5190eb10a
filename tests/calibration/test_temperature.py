"""Temperature scaling by blocks is that of all items at once."""

import numpy as np
import pytest
from scipy import optimize, special

from hocal.calibration.first_order.temperature import fit_temperature


def labelled(n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions that are too sure of themselves, and labels."""
    generator = np.random.default_rng(0)
    p = generator.dirichlet([0.5, 0.5, 0.5], n_items)
    return p, generator.multinomial(3, special.softmax(np.log(p + 1e-6) / 2, axis=1))


def test_the_temperature_minimises_the_log_loss_of_all_items() -> None:
    """The slow version lists every probability at every temperature."""
    p, counts = labelled(300)
    logs = np.log(np.maximum(p, 1e-6))

    def loss(temperature: float) -> float:
        return -float((counts * special.log_softmax(logs / temperature, axis=1)).sum())

    found = optimize.minimize_scalar(loss, bounds=(0.5, 5), method="bounded")
    assert fit_temperature(p, counts) == pytest.approx(found.x, rel=1e-3)


def test_blocks_of_items_do_not_change_the_temperature(monkeypatch: pytest.MonkeyPatch) -> None:
    p, counts = labelled(100)
    whole = fit_temperature(p, counts)
    monkeypatch.setattr("hocal.calibration.first_order.temperature.BLOCK_NUMBERS", 21)

    assert fit_temperature(p, counts) == whole
