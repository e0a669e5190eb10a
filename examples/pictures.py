"""Draw the two pictures of the README from handwritten digits whose label distributions are known.

    python examples/pictures.py [FOLDER]

The first holds predicted against observed aleatoric uncertainty, cell by cell, for the paper's
method and for hocal with three labels per item. The second shows what the uncertainty of each item
is made of, and what labels buy. Without a folder the pictures are drawn, measured and thrown away.
"""

import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

import hocal
from hocal.datasets import World, make_ambiguous_digits
from hocal.plot import LabelCurveDisplay, ReliabilityDisplay, UncertaintyMapDisplay

K = 3
N_ITEMS = 6000
N_FIT = 2500
LABEL_NUMBERS = (2, 3, 5, 10)
N_SPLITS = 3
MIN_ITEMS = 30  # of a cell that is drawn: labels of fewer say little
CALIBRATORS = {
    "the paper's method": hocal.SnapshotCalibrator(method="empirical"),
    "hocal": hocal.SnapshotCalibrator(),
}


def draw_reliability(world: World) -> Figure:
    """Fit both methods on three labels per item, and compare with twenty labels of other items."""
    fit = slice(0, N_FIT)
    test = slice(N_FIT, None)
    counts = world.draw(K, random_state=1)[fit]
    held_out = world.draw(20, random_state=2)[test]
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    panels = figure.subplots(1, 2)
    for ax, (name, calibrator) in zip(panels, CALIBRATORS.items(), strict=True):
        calibrator.fit(world.predictions[fit], counts)
        display = ReliabilityDisplay.from_estimator(
            calibrator, world.predictions[test], held_out, random_state=0
        )
        display.plot(ax, min_items=MIN_ITEMS, title=f"{name}, {K} labels per item")
        ax.set(xlim=(-0.05, 1.45), ylim=(-0.05, 1.45))
        inside = 1 - display.n_items @ display.outside / display.n_items.sum()
        print(f"{name}: cells with {inside:.0%} of the items lie inside their noise band")
    return figure


def draw_uncertainty(world: World) -> Figure:
    """Draw the items between disagreement and ignorance, and the error against the labels."""
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    calibrator = hocal.SnapshotCalibrator().fit(world.predictions, world.draw(K, random_state=1))
    UncertaintyMapDisplay.from_estimator(calibrator, world.predictions).plot(
        left, title="what the doubt is made of"
    )
    many = world.draw(50, random_state=3)
    curve = LabelCurveDisplay.from_estimator(
        CALIBRATORS,
        world.predictions,
        many,
        k=LABEL_NUMBERS,
        n_splits=N_SPLITS,
        random_state=0,
    )
    curve.plot(right, title="what labels buy")
    for name, (k, errors) in curve.curves.items():
        means = dict(zip(k.tolist(), errors.mean(axis=1).round(3).tolist(), strict=True))
        print(f"{name}: error of aleatoric uncertainty in nats by labels per item {means}")
    return figure


def main(folder: Path) -> None:
    """Write both pictures."""
    world = make_ambiguous_digits(N_ITEMS, random_state=0)
    for name, draw in {"reliability": draw_reliability, "uncertainty": draw_uncertainty}.items():
        path = folder / f"{name}.png"
        draw(world).savefig(
            path, dpi=100, metadata={"Software": None}
        )  # no version of matplotlib inside
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
