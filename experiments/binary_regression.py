"""Reproduce the paper's binary regression: distance of calibrated 10-snapshots from fresh ones.

    python experiments/binary_regression.py [OUTPUT.json]

The world is a reconstruction (`hocal.datasets.make_binary_regression`): the paper's function is not public.
A small network learns from single labels, 5,000 items with ten labels calibrate it in 100 equal bins, and a
third set tests it, 50 times over. Epsilon, the largest distance over the bins, is mostly sampling noise: beside
each figure stands its floor, the same figure for labels drawn from the calibrated prediction itself.
The fair coin and the uniform distribution over snapshots are the paper's naive baselines. Half a minute on one
core.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import hocal
from hocal.datasets import World, make_binary_regression
from hocal.mixtures import Mixtures
from hocal.torch import SoftmaxHead, predict_mixture, train

N_BATCHES, BATCH, N_CALIBRATION, K, N_BINS, N_RESAMPLES = 10_000, 256, 5_000, 10, 100, 50
TEST_SIZES = (1_000, 5_000)  # the paper does not say; the smaller one gives its figures
LABELS = (1, 2, 3, 5, 10, 20, 50)  # an item, for the curve of the aleatoric error
PAPER = {"max": 0.400, "quantile_95": 0.212, "uniform_snapshots": 0.959, "fair_coin": 0.959}


class Stream:
    """Batches of fresh items with one label each; as many as the schedule asks for."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def __len__(self) -> int:
        return N_BATCHES

    def __iter__(self):
        for _ in range(N_BATCHES):
            world = make_binary_regression(BATCH, random_state=self.random)
            counts = world.draw(1, random_state=self.random)
            yield torch.from_numpy(world.features).float(), torch.from_numpy(counts)


def trained_network() -> nn.Module:
    """Two hidden layers, which learn the slow part of the function and miss the fast one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), SoftmaxHead(2, 64))
    train(model, Stream(0), loss=model[-1].loss, epochs=1, learning_rate=3e-3, warmup_epochs=0.05, device="cpu")
    return model


def predict(model: nn.Module, world: World) -> np.ndarray:
    """Return the network's probabilities."""
    return predict_mixture(model, torch.from_numpy(world.features).float(), batch_size=10_000).mean()


def epsilons(predicted: Mixtures, counts: np.ndarray, cells: np.ndarray) -> dict[str, float]:
    """Return max and 95th percentile over the cells of W1(predicted snapshots, observed snapshots)."""
    observed = Mixtures.from_snapshots(counts, cells, n_cells=N_BINS)
    distances = hocal.wasserstein(predicted, observed.stored())
    return {"max": float(np.nanmax(distances)), "quantile_95": float(np.nanquantile(distances, 0.95))}


def drawn_from(predicted: Mixtures, cells: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return a snapshot for each item from the predicted snapshots of its cell: no error but chance."""
    counts = np.empty((len(cells), 2), dtype=np.int64)
    for cell in np.unique(cells):
        _, atoms, _ = predicted.pairs(predicted.index[[cell]])
        where = np.flatnonzero(cells == cell)
        counts[where] = np.rint(K * predicted.points[random.choice(atoms, len(where), p=predicted.weights[atoms])])
    return counts


def snapshot_errors(model: nn.Module, n_test: int, random: np.random.Generator) -> dict[str, dict[str, float]]:
    """Resample calibration and test set once; return epsilons of the method, its floor and the baselines."""
    calibration = make_binary_regression(N_CALIBRATION, random_state=random)
    calibrator = hocal.SnapshotCalibrator(hocal.UniformPartition(N_BINS), method="empirical", k=K)
    calibrator.fit(predict(model, calibration), calibration.draw(K, random_state=random))
    test = make_binary_regression(n_test, random_state=random)
    cells = calibrator.partition_.assign(predict(model, test))
    counts, learned = test.draw(K, random_state=random), calibrator.cell_mixtures_
    grid = np.arange(K + 1) / K
    uniform = Mixtures.from_ensemble(np.column_stack([1 - grid, grid])[None])
    fair = Mixtures.from_points([[0.5, 0.5]]).project(K)
    return {
        "calibrated": epsilons(learned, counts, cells),
        "noise_floor": epsilons(learned, drawn_from(learned, cells, random), cells),
        "uniform_snapshots": epsilons(uniform, counts, cells),
        "fair_coin": epsilons(fair, counts, cells),
    }


def aleatoric_errors(model: nn.Module, k: int, random: np.random.Generator) -> dict[str, float]:
    """Return the item-averaged aleatoric error, in bits, of both methods for k labels an item."""
    calibration, test = (make_binary_regression(N_CALIBRATION, random_state=random) for _ in range(2))
    counts, errors = calibration.draw(k, random_state=random), {}
    for method in ("empirical", "deconvolved"):
        calibrator = hocal.SnapshotCalibrator(hocal.UniformPartition(N_BINS), method=method)
        calibrator.fit(predict(model, calibration), counts)
        p = predict(model, test)
        parts, cells = calibrator.decompose(p, base=2), calibrator.partition_.assign(p)
        errors[method] = hocal.aleatoric_error(parts, label_distributions=test.label_distributions, cells=cells)
    return errors


def summarise(runs: list[dict]) -> dict:
    """Return mean and 95% range (1.96 deviations, as the paper gives it) of nested figures."""
    if isinstance(runs[0], dict):
        return {name: summarise([run[name] for run in runs]) for name in runs[0]}
    return {"mean": round(float(np.mean(runs)), 4), "range_95": round(1.96 * float(np.std(runs)), 4)}


def main(output: Path) -> None:
    """Train, resample, print and store."""
    torch.set_num_threads(1)
    start, model = time.perf_counter(), trained_network()
    random = np.random.default_rng(1)
    result = {
        "what": __doc__.strip().splitlines()[0],
        "paper": PAPER,
        "training_seconds": round(time.perf_counter() - start, 1),
    }
    result["epsilon"] = {
        str(n_test): summarise([snapshot_errors(model, n_test, random) for _ in range(N_RESAMPLES)])
        for n_test in TEST_SIZES
    }
    result["aleatoric_error_bits"] = {
        str(k): summarise([aleatoric_errors(model, k, random) for _ in range(N_RESAMPLES // 10)]) for k in LABELS
    }
    result["seconds"] = round(time.perf_counter() - start, 1)
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    show(result)


def show(result: dict) -> None:
    """Print the figures as two tables."""
    for n_test, rows in result["epsilon"].items():
        print(f"\n{n_test} test items         epsilon (max over cells)   95th percentile")
        for name, row in rows.items():
            cells = (f"{row[key]['mean']:.3f} +- {row[key]['range_95']:.3f}" for key in ("max", "quantile_95"))
            print(f"{name:24}" + "".join(f"{cell:>20}" for cell in cells))
    print("\nlabels an item      aleatoric error (bits)")
    for k, row in result["aleatoric_error_bits"].items():
        print(f"{k:>10}   " + "   ".join(f"{name} {figure['mean']:.3f}" for name, figure in row.items()))
    print(f"\npaper: {result['paper']}; {result['seconds']} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "results" / "binary_regression.json")
