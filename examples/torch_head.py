"""Learn from five labels per item which doubt is disagreement and which is ignorance, and measure it.

A table of features and label counts from a world whose truth is known. SnapshotClassifier predicts
a mixture of label distributions for each item; an ensemble of ordinary classifiers is read on the
same scale. Post-hoc calibration then goes on top of either, because the mean of a mixture is an
ordinary prediction.
"""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import hocal
from hocal.datasets import World, make_mixture_world
from hocal.torch import DeepEnsemble, SnapshotClassifier, predict_mixture, train

K = 5
N_CLASSES = 3


def trained_ensemble(world: World, counts: np.ndarray) -> DeepEnsemble:
    """Train eight small classifiers on the same labels."""
    torch.manual_seed(0)
    model = DeepEnsemble(
        nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, N_CLASSES)) for _ in range(8)
    )
    data = TensorDataset(torch.from_numpy(world.features).float(), torch.from_numpy(counts))
    train(model, DataLoader(data, 64, shuffle=True), loss=model.loss, epochs=10, random_state=0)
    return model


def main() -> None:
    """Print the aleatoric error of each method, in nats."""
    torch.set_num_threads(1)
    # The same cells each time, different items.
    training, calibration, test = (
        make_mixture_world(n, N_CLASSES, random_state=0) for n in (3000, 1000, 2000)
    )
    counts = training.draw(K, random_state=1)
    classifier = SnapshotClassifier(n_components=6, epochs=40, random_state=0).fit(
        training.features, counts
    )
    model = trained_ensemble(training, counts)
    before, ensemble = (
        predict_mixture(model, torch.from_numpy(w.features).float()) for w in (calibration, test)
    )
    calibrator = hocal.SnapshotCalibrator().fit(before.mean(), calibration.draw(K, random_state=2))
    methods = {
        "learned from five labels": classifier.predict_mixture(test.features),
        "ensemble of eight": ensemble,
        "ensemble, calibrated post hoc": calibrator.predict_mixture(ensemble.mean()),
        "truth": test.mixtures,
    }
    print(f"{'method':32}{'aleatoric':>12}{'epistemic':>12}{'error':>10}")
    for name, mixtures in methods.items():
        parts = hocal.decompose(mixtures)
        error = hocal.aleatoric_error(
            parts, label_distributions=test.label_distributions, cells=test.cells
        )
        print(f"{name:32}{parts.aleatoric.mean():12.3f}{parts.epistemic.mean():12.3f}{error:10.3f}")


if __name__ == "__main__":
    main()
