"""The numbers of the entropy distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocal
from hocal.plot import EntropyDistributionDisplay
from hocal.uncertainty.entropy import Shannon


def entropies(scene: Any, **options: Any) -> EntropyDistributionDisplay:
    settings: dict[str, Any] = {"n_resamples": 50, "random_state": 0, **options}
    return EntropyDistributionDisplay.from_estimator(
        scene.calibrator, scene.test.predictions, scene.counts, **settings
    )


def test_observed_entropies_are_those_of_the_label_shares(scene: Any) -> None:
    display = entropies(scene, shown=2)
    own = Shannon().value(scene.counts[scene.cells == display.cells[0]] / 5)

    assert display.observed_mean[0] == pytest.approx(own.mean())
    assert display.observed[0] == pytest.approx(np.histogram(own, display.edges)[0] / len(own))
    assert display.n_items[0] == len(own)


def test_the_most_aleatoric_of_the_large_cells_are_shown(scene: Any) -> None:
    n_items = np.bincount(scene.cells, minlength=15)
    aleatoric = hocal.decompose(scene.calibrator.cell_mixtures_).aleatoric
    ranked = sorted(np.flatnonzero(n_items >= 30), key=lambda cell: -aleatoric[cell])

    assert entropies(scene, shown=2).cells.tolist() == ranked[:2]


def test_predicted_entropies_are_what_a_panel_of_the_same_size_would_show() -> None:
    """Five labels from (1/2, 1/2) fall short of its entropy, on both sides alike."""
    mixtures = hocal.Mixtures.from_points([[0.5, 0.5]])[np.zeros(200, dtype=int)]
    panel = hocal.decompose(mixtures, panel_size=5).aleatoric[0]

    display = EntropyDistributionDisplay.from_predictions(
        mixtures, mixtures.draw(5, random_state=0), n_resamples=100, random_state=1
    )

    assert panel < np.log(2) - 0.1
    assert display.predicted_mean[0] == pytest.approx(panel, abs=0.01)


def test_true_label_distributions_are_compared_with_the_atoms_themselves(scene: Any) -> None:
    display = EntropyDistributionDisplay.from_predictions(
        scene.test.mixtures,
        label_distributions=scene.test.label_distributions,
        cells=scene.test.cells,
        n_resamples=200,
        random_state=0,
    )
    truth = hocal.decompose(scene.test.mixtures.stored()).aleatoric[display.cells]

    assert display.predicted_mean == pytest.approx(truth, abs=0.01)


def test_the_band_holds_most_bins_when_the_prediction_is_right(scene: Any) -> None:
    display = EntropyDistributionDisplay.from_predictions(
        scene.test.mixtures,
        scene.counts,
        cells=scene.test.cells,
        shown=[0, 1, 2, 3],
        n_resamples=200,
        random_state=0,
    )
    inside = (display.band[0] - 1e-9 <= display.observed) & (
        display.observed <= display.band[1] + 1e-9
    )

    assert inside.mean() > 0.9


def test_the_band_of_a_large_cell_is_as_narrow_as_its_items_make_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of the items have entropy 0: the standard error of their share is .5 / sqrt(1000)."""
    mixtures = hocal.Mixtures([[1, 0], [0.5, 0.5]], [0.5, 0.5], [0, 2], np.zeros(1000, dtype=int))
    monkeypatch.setattr("hocal.plot.entropy_distribution.MAX_DRAWN", 100)

    display = EntropyDistributionDisplay.from_predictions(
        mixtures,
        label_distributions=mixtures.sample(random_state=0),
        n_resamples=400,
        random_state=0,
    )

    assert display.band[1, 0, 0] - display.band[0, 0, 0] == pytest.approx(
        2 * 1.96 * 0.5 / 1000**0.5, rel=0.15
    )


def test_distributions_are_drawn_at_the_numbers(scene: Any) -> None:
    display = entropies(scene, shown=2).plot()
    drawn = {patch.get_label(): patch.get_data() for patch in display.axes_[1].patches}

    assert np.array_equal(drawn["observed"].values, display.observed[1])
    assert np.array_equal(drawn["predicted"].values, display.predicted[1])
    assert np.array_equal(drawn["observed"].edges, display.edges)


def test_each_cell_needs_axes(scene: Any) -> None:
    from matplotlib.figure import Figure

    with pytest.raises(ValueError, match="`ax` must hold 2 axes, one for each panel, got 1"):
        entropies(scene, shown=2).plot(Figure().subplots())


def test_a_cell_without_items_cannot_be_shown(scene: Any) -> None:
    empty = int(np.flatnonzero(np.bincount(scene.cells, minlength=15) == 0)[0])

    with pytest.raises(
        ValueError, match=f"`shown` must name cells with items, got {empty}, which has none"
    ):
        entropies(scene, shown=[empty])


def test_mixtures_are_no_choice_of_cells(scene: Any) -> None:
    with pytest.raises(ValueError, match="`shown` must be"):
        entropies(scene, shown=hocal.Mixtures.from_points([[0.5, 0.5]]))


def test_min_items_must_leave_a_cell(scene: Any) -> None:
    with pytest.raises(ValueError, match="`min_items` must leave a cell to show, got 10000"):
        entropies(scene, min_items=10_000)


def test_labels_or_label_distributions_are_needed(scene: Any) -> None:
    with pytest.raises(
        ValueError, match="`counts` must be given, or `label_distributions` instead of it"
    ):
        EntropyDistributionDisplay.from_predictions(scene.test.mixtures)


def test_classes_are_in_their_order_where_it_matters(scene: Any) -> None:
    """Over ranks, torn between the first and the last class looks like torn between neighbours."""
    mixtures = scene.calibrator.predict_mixture(scene.test.predictions)
    expected = EntropyDistributionDisplay.from_predictions(
        mixtures, scene.counts, cells=scene.cells, entropy="ordinal", n_resamples=50, random_state=0
    )

    display = entropies(scene, entropy="ordinal")

    assert display.cells.tolist() == expected.cells.tolist()
    assert display.predicted_mean == pytest.approx(expected.predicted_mean)
