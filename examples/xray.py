"""Tell two worlds apart that look the same to a classifier, from two labels per scan.

A model says "50% pneumonia" for every scan. In the first world every scan is ambiguous: doctors
would split evenly on each. In the second, half of the scans clearly show it and half clearly do
not, and the model cannot tell which. With one label per scan the worlds look the same; with two they
do not, because two doctors agree half of the time in the first and always in the second.
"""

import numpy as np

import hocal
from hocal.uncertainty.snapshots import draw_labels

N_SCANS = 2000
PREDICTIONS = np.full((N_SCANS, 2), 0.5)
WORLDS = {
    "every scan is ambiguous": np.full((N_SCANS, 2), 0.5),
    "half clear yes, half clear no": np.repeat(np.eye(2), N_SCANS // 2, axis=0),
}


def main() -> None:
    """Print estimated, certified and true uncertainty of both worlds, in nats."""
    print(
        f"{'world':31}{'labels':>7}{'predictive':>12}{'aleatoric':>11}{'epistemic':>11}   95% for aleatoric"
    )
    for name, world in WORLDS.items():
        counts = draw_labels(world, 2, random_state=0)
        calibrator = hocal.SnapshotCalibrator(hocal.UniformPartition(n_bins=1)).fit(
            PREDICTIONS, counts
        )
        lower, upper = calibrator.certify(confidence=0.95).interval("aleatoric")
        known = hocal.decompose(hocal.Mixtures.from_ensemble(world[None]))
        show(
            name, "2", calibrator.decompose(PREDICTIONS[:1]), f"   [{lower[0]:.2f}, {upper[0]:.2f}]"
        )
        show(name, "truth", known, "")
    print(
        "\nThe prediction is 50% in both worlds. In the first no model can do better: people disagree."
    )
    print("In the second a better model can remove all of the uncertainty.")


def show(name: str, labels: str, parts: hocal.Decomposition, interval: str) -> None:
    """Print one line of the table."""
    numbers = f"{parts.predictive[0]:12.3f}{parts.aleatoric[0]:11.3f}{parts.epistemic[0]:11.3f}"
    print(f"{name:31}{labels:>7}{numbers}{interval}")


if __name__ == "__main__":
    main()
