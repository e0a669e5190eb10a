"""The numbers of the certificate display."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocal
from hocal.guarantees.certificates import Certificate, certify
from hocal.plot import CertificateDisplay


@pytest.fixture(scope="module")
def certificate(scene: Any) -> Certificate:
    made: Certificate = scene.calibrator.certify(0.9)
    return made


def test_the_numbers_are_those_of_the_certificate(scene: Any, certificate: Certificate) -> None:
    display = CertificateDisplay.from_estimator(
        scene.calibrator, confidence=0.9, quantity="epistemic"
    )
    lower, upper = certificate.interval("epistemic")

    assert np.array_equal(display.lower, lower[display.cells])
    assert np.array_equal(display.upper, upper[display.cells])
    assert np.array_equal(display.estimate, certificate.estimate("epistemic")[display.cells])
    assert np.array_equal(display.width, (upper - lower)[display.cells])
    assert (display.confidence, display.simultaneous) == (0.9, False)


def test_cells_with_items_come_in_order_of_the_estimate(certificate: Certificate) -> None:
    display = CertificateDisplay.from_certificate(certificate)

    assert (np.diff(display.estimate) >= 0).all()
    assert sorted(display.cells) == np.flatnonzero(certificate.n_items).tolist()


def test_intervals_and_estimates_are_drawn_at_the_numbers(certificate: Certificate) -> None:
    display = CertificateDisplay.from_certificate(certificate).plot()
    said = ~display.vacuous
    ends = np.stack([segment[:, 1] for segment in display.artists_["interval"].get_segments()])
    points = display.artists_["estimate"].get_offsets()

    assert np.array_equal(ends, np.stack([display.lower, display.upper], axis=1)[said])
    assert np.array_equal(points[:, 1], display.estimate[display.inside])


def test_intervals_that_say_nothing_are_marked() -> None:
    certificate = (
        hocal.SnapshotCalibrator().fit([[0.5, 0.5]] * 3, [[2, 0], [2, 0], [0, 2]]).certify(0.999)
    )
    display = CertificateDisplay.from_certificate(certificate, quantity="epistemic")
    name = "says nothing: the whole range"

    assert display.vacuous.all()
    assert set(display.plot().artists_) == {name, "estimate"}
    assert display.plot(kind="width").artists_[name].get_offsets().tolist() == [
        [3, pytest.approx(np.log(2))]
    ]


def test_estimates_outside_their_interval_are_marked(scene: Any) -> None:
    wrong = hocal.Mixtures.from_vertices(scene.calibrator.cell_mixtures_.mean())
    certificate = certify(scene.calibrator.statistics_, wrong, aligned=True)

    display = CertificateDisplay.from_certificate(certificate).plot()

    assert (
        len(display.artists_["estimate outside its interval"].get_offsets())
        == (~display.inside).sum()
        > 0
    )


def test_widths_are_drawn_against_items(certificate: Certificate) -> None:
    display = CertificateDisplay.from_certificate(certificate).plot(kind="width")
    said = ~display.vacuous

    drawn = display.artists_["a cell"].get_offsets()

    assert np.array_equal(drawn, np.stack([display.n_items, display.width], axis=1)[said])


def test_many_cells_are_counted_instead_of_named(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocal.plot.certificate.MAX_NAMED", 2)
    display = CertificateDisplay.from_certificate(certificate).plot()

    assert display.ax_.get_xlabel() == f"{len(display.cells)} cells in order of the estimate"


def test_the_legend_says_what_the_confidence_is_for(scene: Any) -> None:
    display = CertificateDisplay.from_estimator(scene.calibrator, simultaneous=True).plot()

    assert (
        display.figure_.legends[0].get_title().get_text() == "0.95 confidence for all cells at once"
    )


def test_an_unknown_kind_is_refused(certificate: Certificate) -> None:
    with pytest.raises(ValueError, match="`kind` must be one of 'interval', 'width', got 'bars'"):
        CertificateDisplay.from_certificate(certificate).plot(kind="bars")  # type: ignore[arg-type]
