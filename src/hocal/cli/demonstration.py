"""The demonstration: hard digits, a weak model, and what a few labels per item tell about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from scipy import special

from hocal._base.errors import InputError
from hocal._base.plurals import counted
from hocal._base.typing import Array, IntArray
from hocal._base.validation import check_integer
from hocal.calibration.against_truth import aleatoric_error
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.datasets import World, make_ambiguous_digits
from hocal.report import Report, Summary, summarise
from hocal.report.contrast_words import tell_contrast
from hocal.uncertainty.decomposition import Decomposition, decompose

__all__ = ["CertifiedCell", "Demonstration", "Estimate", "ShownDigit", "demonstrate"]

METHOD_NAMES: dict[Literal["empirical", "items"], str] = {
    "empirical": "the paper's method",
    "items": "hocal",
}
# cells of the certificate, as many as fit under the other table on a screen
N_SHOWN = 6


class Estimate(NamedTuple):
    """What a method says about the model's uncertainty after seeing k labels per item, in nats."""

    k: int  #: labels of each calibration item
    method: str  #: in plain words
    aleatoric: float  #: mean over the test items
    epistemic: float  #: mean over the test items
    #: mean distance between estimated and true aleatoric uncertainty of a test item's cell
    error: float


class CertifiedCell(NamedTuple):
    """What labels prove about the aleatoric uncertainty of a cell, in nats, and what is true."""

    name: str  #: what the model says about its items
    n_items: int  #: calibration items
    interval: tuple[float, float]  #: certified with 95% confidence
    estimate: float  #: hocal's
    truth: float  #: mean entropy of the teacher's answers to the cell's items


class ShownDigit(NamedTuple):
    """A digit on which people agree and the model does not, or the other way round."""

    item: str  #: its name in the report
    title: str  #: who agrees and who does not
    text: str  #: what both say
    advice: str  #: what to do about such items
    darkness: Array  #: of its pixels (8, 8), from 0, paper, to 1, ink
    truth: float  #: entropy of the teacher's answers, nats


class Demonstration(NamedTuple):
    """Results of `demonstrate`."""

    estimates: list[Estimate]  #: for every number of labels, both methods
    truth: Decomposition  #: of all items, from the teacher's label distributions
    cells: list[CertifiedCell]  #: the largest, at the largest number of labels
    digits: list[ShownDigit]  #: at most two, of the report
    report: Report  #: at the largest number of labels


def demonstrate(
    *,
    n_items: int = 6000,
    label_numbers: Sequence[int] = (2, 5, 10),
    random_state: int = 0,
    progress: Callable[[str], Any] = lambda _: None,
) -> Demonstration:
    """Judge a weak reader of ambiguous digits by labels of a teacher, and compare with the truth.

    Parameters
    ----------
    n_items : int, default=6000
        Images; half calibrate and half test.
    label_numbers : sequence of int
        Numbers of labels per item to compare, smallest first.
    random_state : int, default=0
        Seed.
    progress : callable
        Told what is being done.

    Returns
    -------
    Demonstration
        Estimates, truth, what is certified, and the report.

    Examples
    --------
    >>> from hocal.cli.demonstration import demonstrate
    >>> shown = demonstrate(n_items=400, label_numbers=[2])
    >>> [estimate.method for estimate in shown.estimates]
    ["the paper's method", 'hocal']
    """
    seed = check_integer(random_state, "random_state", minimum=0)
    sizes = [check_integer(k, "label_numbers", minimum=1) for k in label_numbers]
    if not sizes:
        rule = "must hold at least one number of labels"
        raise InputError("label_numbers", rule, value="none")
    progress("drawing digits")
    world = make_ambiguous_digits(n_items, random_state=seed)
    estimates = []
    half = len(world) // 2
    for k in sizes:
        counts = world.draw(k, random_state=seed + k)
        for method, words in METHOD_NAMES.items():
            progress(f"{counted(k, 'label')} per item, {words}")
            calibrator = SnapshotCalibrator(method=method).fit(
                world.predictions[:half], counts[:half]
            )
            estimates.append(_estimate(world, calibrator, k, words))
    progress("certifying, and writing the report")
    report = _report(world, calibrator, counts, seed)
    truth = decompose(world.mixtures)
    return Demonstration(
        estimates=estimates,
        truth=truth,
        cells=_certified_cells(world, truth, report),
        digits=_digits(world, report),
        report=report,
    )


def _estimate(world: World, calibrator: SnapshotCalibrator, k: int, method: str) -> Estimate:
    test = slice(len(world) // 2, None)
    parts = calibrator.decompose(world.predictions[test])
    error = aleatoric_error(
        parts, label_distributions=world.label_distributions[test], cells=world.cells[test]
    )
    return Estimate(k, method, float(parts.aleatoric.mean()), float(parts.epistemic.mean()), error)


def _certified_cells(world: World, truth: Decomposition, report: Report) -> list[CertifiedCell]:
    """Return the cells with most calibration items, largest first."""
    cells = cast("Summary", report.summary)["cells"]
    largest = sorted(cells, key=lambda row: -row["calibration_items"])[:N_SHOWN]
    return [
        CertifiedCell(
            name=row["name"],
            n_items=row["calibration_items"],
            interval=(interval[0], interval[1]),
            estimate=row["aleatoric"],
            truth=float(truth.aleatoric[world.cells == row["cell"]][0]),
        )
        for row in largest
        if (interval := row["aleatoric_interval"]) is not None
    ]


def _digits(world: World, report: Report) -> list[ShownDigit]:
    """Return the digits of the report that tell the two kinds of doubt apart."""
    first = len(world) // 2  # of the report, which is about the test half
    digits = []
    for contrast in cast("Summary", report.summary)["contrast"]:
        item = contrast["card"]["item"]
        place = first + item["row"]
        truth = float(special.entr(world.label_distributions[place]).sum())
        darkness = world.features[place].reshape(8, 8)
        digits.append(ShownDigit(item["item"], *tell_contrast(contrast), darkness, truth))
    return digits


def _report(
    world: World, calibrator: SnapshotCalibrator, counts: IntArray, random_state: int
) -> Report:
    test = slice(len(world) // 2, None)
    # ink on paper
    grey = np.rint(255 * (1 - world.features[test]))
    images = grey.astype(np.uint8).reshape(-1, 8, 8)
    summary = summarise(
        calibrator,
        world.predictions[test],
        counts[test],
        classes=[str(digit) for digit in range(10)],
        images=images,
        title="Digits that are hard to read",
        random_state=random_state,
    )
    return Report(summary)
