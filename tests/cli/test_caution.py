"""Commands say what speaks against their numbers."""

from dataclasses import replace

import numpy as np
import pytest

import hocal
from hocal.cli.caution import cells_outside, warn_outside


def test_an_estimate_outside_its_limits_is_named_with_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    p = np.tile([[0.6, 0.4]], (300, 1))
    counts = np.random.default_rng(0).multinomial(4, p)
    calibrator = hocal.SnapshotCalibrator(method="cells").fit(p, counts)
    certificate = calibrator.certify()
    cell = int(certificate.n_items.argmax())
    elsewhere = {target: np.zeros(len(certificate)) for target in certificate.estimates}

    assert cells_outside(certificate) == []
    assert cells_outside(replace(certificate, estimates=elsewhere)) == [cell]
    warn_outside([cell])
    said = " ".join(capsys.readouterr().err.split())
    assert f"outside its limits in 1 cell ({cell}). It leans on other cells" in said
