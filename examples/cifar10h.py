"""Split a real network's uncertainty into disagreement and ignorance, with five labels per image.

Half of the images calibrate, with five of their about fifty labels; the other half, with all
labels, tests. The labels are fetched on first use (`hocal data fetch cifar10h`); the network's
probabilities are read from the folder named by HOCAL_DATA, and `hocal data list` says where they
come from.
"""

import numpy as np

import hocal
from hocal.datasets import load_cifar10_softmax, load_cifar10h
from hocal.uncertainty.snapshots import draw_labels

K = 5


def main() -> None:
    """Compare both methods, and print the cells about which most is proved."""
    people = load_cifar10h()
    network = load_cifar10_softmax("resnet18")
    order = np.random.default_rng(0).permutation(len(people.counts))
    calibration = order[:5000]
    test = order[5000:]
    share = people.counts / people.counts.sum(axis=1, keepdims=True)
    five = draw_labels(share[calibration], K, random_state=1)
    probabilities = network.probabilities
    for method in ("empirical", "cells"):
        calibrator = hocal.SnapshotCalibrator(method=method).fit(probabilities[calibration], five)
        parts = calibrator.decompose(probabilities[test])
        cells = calibrator.partition_.assign(probabilities[test])
        error = hocal.aleatoric_error(parts, people.counts[test], cells=cells)
        means = (
            f"aleatoric {parts.aleatoric.mean():.3f}, epistemic {parts.epistemic.mean():.3f} nats"
        )
        print(f"{method:12} {means}; error of the aleatoric part {error:.3f}")

    certificate = calibrator.certify(confidence=0.95)
    lower, upper = certificate.interval("aleatoric")
    print(f"\nWhat {K} labels per image prove about the largest cells, in nats:")
    for cell in np.argsort(-certificate.n_items, kind="stable")[:5]:
        name = f"{network.classes[cell // 10]}, {cell % 10 * 10} to {cell % 10 * 10 + 10}% sure"
        print(
            f"{name:32}{certificate.n_items[cell]:5} images   "
            f"aleatoric [{lower[cell]:.2f}, {upper[cell]:.2f}]"
        )


if __name__ == "__main__":
    main()
