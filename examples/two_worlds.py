"""Draw why two labels per item change everything: two worlds that one label cannot tell apart.

    python examples/two_worlds.py [FOLDER]

A model says "50%" for every scan. The first row is a world in which every scan is ambiguous, the
second one in which half of the scans are clear one way and half the other. From left to right: what
one label per scan shows, what two show, and the mixture of label distributions that hocal infers from
the two. Without a folder the picture is thrown away.
"""

import sys
import tempfile
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import hocal
from hocal.datasets import World, make_xray
from hocal.plot import MixtureDisplay

WORLDS = {"every scan is ambiguous": "ambiguous", "half clear yes, half clear no": "clear"}


def draw_snapshots(ax: Axes, world: World, k: int) -> None:
    """Draw how often k labels of a scan come out each way."""
    yes = world.draw(k, random_state=k)[:, 1]
    names = ["no", "yes"] if k == 1 else ["both no", "one each", "both yes"]
    ax.bar(
        names,
        [float((yes == number).mean()) for number in range(k + 1)],
        color="tab:gray",
        width=0.6,
    )
    ax.set(ylim=(0, 0.7), ylabel="share of scans")


def main(folder: Path) -> None:
    """Write the picture."""
    figure = Figure(figsize=(10, 5.2), layout="constrained")
    panels = figure.subplots(2, 3)
    for row, (name, scenario) in zip(panels, WORLDS.items(), strict=True):
        world = make_xray(2000, scenario=scenario, random_state=0)
        draw_snapshots(row[0], world, 1)
        draw_snapshots(row[1], world, 2)
        calibrator = hocal.SnapshotCalibrator(hocal.UniformPartition(n_bins=1))
        calibrator.fit(world.predictions, world.draw(2, random_state=2))
        parts = calibrator.decompose(world.predictions[:1], base=2)
        display = MixtureDisplay.from_estimator(
            calibrator, world.predictions, classes=["no", "yes"]
        )
        display.plot(
            row[2],
            title=f"aleatoric {parts.aleatoric[0]:.2f}, epistemic {parts.epistemic[0]:.2f} bits",
        )
        row[0].set_title(name, loc="left", fontsize="medium")
        print(
            f"{name}: aleatoric {parts.aleatoric[0]:.2f}, epistemic {parts.epistemic[0]:.2f} bits"
        )
    path = folder / "two_worlds.png"
    figure.savefig(path, dpi=100, metadata={"Software": None})  # no version of matplotlib inside
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
