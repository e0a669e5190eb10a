"""Reproduce the paper's binary regression: distance of calibrated 10-snapshots from fresh ones.

    python experiments/binary_regression.py

The world is a reconstruction (`hocal.datasets.make_binary_regression`): the paper's function is not
public. A small network learns from single labels, 5,000 items with ten labels calibrate it in 100
equal bins, and a third set tests it, 50 times over. Epsilon, the largest distance over the bins, is
mostly sampling noise: beside each figure stands its floor, the same figure for labels drawn from
the calibrated prediction itself. The fair coin and the uniform distribution over snapshots are the
paper's naive baselines. The weights of the network are stored for the tests: training is repeatable
on one machine, but not between machines. Half a minute on one core.
"""

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from protocol import METHODS, RESULTS, draw, row, store, summarise
from safetensors.torch import load_file, save_file
from torch import nn

import hocal
from hocal.datasets import make_binary_regression
from hocal.plot import EntropyDistributionDisplay, LabelCurveDisplay
from hocal.torch import SoftmaxHead, predict_mixture, train
from hocal.uncertainty.mixtures import Mixtures

N_BATCHES = 10_000
BATCH = 256
N_CALIBRATION = 5_000
K = 10
N_BINS = 100
N_RESAMPLES = 50
TEST_SIZES = (1_000, 5_000)  # the paper does not say; the smaller one gives its figures
LABELS = (1, 2, 3, 5, 10, 20, 50)  # an item, for the curve of the aleatoric error
WEIGHTS = RESULTS / "binary_regression.safetensors"
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


def network() -> nn.Sequential:
    """Return two hidden layers, which learn the slow part of the function and miss the fast one."""
    return nn.Sequential(
        nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), SoftmaxHead(2, 64)
    )


def trained_network() -> nn.Module:
    """Train on single labels and store the weights."""
    torch.manual_seed(0)
    model = network()
    train(
        model,
        Stream(0),
        loss=model[-1].loss,
        epochs=1,
        learning_rate=3e-3,
        warmup_epochs=0.05,
        device="cpu",
    )
    save_file(model.state_dict(), WEIGHTS)
    return model


def stored_network() -> nn.Module:
    """Return the network that gave the stored results."""
    model = network()
    model.load_state_dict(load_file(WEIGHTS))
    return model


def predict(model: nn.Module, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the network's probabilities."""
    return predict_mixture(model, torch.from_numpy(features).float(), batch_size=10_000).mean()


def calibrated(
    model: nn.Module, k: int, method: Any, random: np.random.Generator
) -> hocal.SnapshotCalibrator:
    """Return a calibrator that saw k labels of each of 5,000 fresh items."""
    world = make_binary_regression(N_CALIBRATION, random_state=random)
    calibrator = hocal.SnapshotCalibrator(hocal.UniformPartition(N_BINS), method=method)
    return calibrator.fit(predict(model, world.features), world.draw(k, random_state=random))


def epsilons(
    predicted: Mixtures, counts: NDArray[np.int64], cells: NDArray[np.intp]
) -> dict[str, float]:
    """Return max and 95th percentile over the cells of W1(predicted, observed snapshots)."""
    observed = Mixtures.from_snapshots(counts, cells, n_cells=N_BINS)
    distances = hocal.wasserstein(predicted, observed.stored())
    return {
        "max": float(np.nanmax(distances)),
        "quantile_95": float(np.nanquantile(distances, 0.95)),
    }


def drawn_from(
    predicted: Mixtures, cells: NDArray[np.intp], random: np.random.Generator
) -> NDArray[np.int64]:
    """Return a snapshot per item from the predicted snapshots of its cell: no error but chance."""
    counts = np.empty((len(cells), 2), dtype=np.int64)
    for cell in np.unique(cells):
        _, atoms, _ = predicted.pairs(predicted.index[[cell]])
        where = np.flatnonzero(cells == cell)
        counts[where] = np.rint(
            K * predicted.points[random.choice(atoms, len(where), p=predicted.weights[atoms])]
        )
    return counts


def snapshot_errors(model: nn.Module, n_test: int, seed: int) -> dict[str, dict[str, float]]:
    """Resample both sets once; return epsilons of the method, its floor and the baselines."""
    random = np.random.default_rng([seed, n_test])
    calibrator = calibrated(model, K, "empirical", random)
    test = make_binary_regression(n_test, random_state=random)
    cells = calibrator.partition_.assign(predict(model, test.features))
    counts = test.draw(K, random_state=random)
    learned = calibrator.cell_mixtures_
    grid = np.arange(K + 1) / K
    uniform = Mixtures.from_ensemble(np.column_stack([1 - grid, grid])[None])
    fair = Mixtures.from_points([[0.5, 0.5]]).project(K)
    return {
        "calibrated": epsilons(learned, counts, cells),
        "noise_floor": epsilons(learned, drawn_from(learned, cells, random), cells),
        "uniform_snapshots": epsilons(uniform, counts, cells),
        "fair_coin": epsilons(fair, counts, cells),
    }


def aleatoric_errors(model: nn.Module, k: int, seed: int) -> dict[str, float]:
    """Return the item-averaged aleatoric error, in bits, of both methods for k labels per item."""
    errors = {}
    for method in METHODS:
        random = np.random.default_rng([seed, k])
        calibrator = calibrated(model, k, method, random)
        test = make_binary_regression(N_CALIBRATION, random_state=random)
        p = predict(model, test.features)
        parts = calibrator.decompose(p, base=2)
        cells = calibrator.partition_.assign(p)
        errors[method] = hocal.aleatoric_error(
            parts, label_distributions=test.label_distributions, cells=cells
        )
    return errors


def draw_task(model: nn.Module) -> None:
    """Draw the inputs, and the function with what the network learned of it."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    inputs, function = figure.subplots(1, 2)
    world = make_binary_regression(20_000, random_state=0)
    x = world.features[:, 0]
    order = np.argsort(world.features[:, 0])
    inputs.hist(x, bins=60, density=True, color="0.6")
    inputs.set(xlabel="x", ylabel="density of the inputs")
    function.plot(
        x[order], world.label_distributions[order, 1], lw=0.8, color="0.6", label="p(y = 1 | x)"
    )
    function.plot(
        x[order],
        predict(model, world.features[order])[:, 1],
        label="the network, trained on single labels",
    )
    function.set(xlabel="x", ylabel="probability of heads", xlim=(0, 3))
    function.legend(loc="lower right")
    draw("binary_regression_task", figure)


def draw_errors(model: nn.Module, runs: dict[int, list[dict[str, float]]]) -> None:
    """Draw the aleatoric error against k, and the entropies in the cells of highest entropy."""
    figure = Figure(figsize=(11, 8), layout="constrained")
    top, bottom = figure.subfigures(2, 1)
    errors = {method: {k: [run[method] for run in runs[k]] for k in LABELS} for method in METHODS}
    LabelCurveDisplay.from_errors(errors, unit="bits").plot(ax=top.subplots())
    random = np.random.default_rng(0)
    calibrator = calibrated(model, LABELS[-1], "empirical", random)
    test = make_binary_regression(N_CALIBRATION, random_state=random)
    EntropyDistributionDisplay.from_estimator(
        calibrator,
        predict(model, test.features),
        label_distributions=test.label_distributions,
        base=2,
        random_state=0,
    ).plot(ax=bottom.subplots(1, 3))
    draw("binary_regression_errors", figure)


def show(result: dict[str, Any]) -> None:
    """Print the figures as two tables."""
    for n_test, rows in result["epsilon"].items():
        print(f"{n_test} test items         epsilon (max over cells)   95th percentile")
        for name, cells in rows.items():
            ends = (
                f"{c['mean']:.3f} ({c['lower']:.3f} to {c['upper']:.3f})" for c in cells.values()
            )
            print(f"{name:24}" + "".join(f"{end:>26}" for end in ends))
    print("labels per item      aleatoric error (bits), " + ", ".join(METHODS))
    for k, cells in result["aleatoric_error_bits"].items():
        print(f"{k:>14}      " + row(cells.values()))


def main() -> None:
    """Train, resample, store, draw and print."""
    torch.set_num_threads(1)
    model = trained_network()
    runs = {
        k: [aleatoric_errors(model, k, seed) for seed in range(N_RESAMPLES // 5)] for k in LABELS
    }
    result = {
        "resamplings": {"epsilon": N_RESAMPLES, "aleatoric_error_bits": N_RESAMPLES // 5},
        "paper": PAPER,
        "epsilon": {
            str(n_test): summarise(
                [snapshot_errors(model, n_test, seed) for seed in range(N_RESAMPLES)]
            )
            for n_test in TEST_SIZES
        },
        "aleatoric_error_bits": {str(k): summarise(runs[k]) for k in LABELS},
    }
    store("binary_regression", result)
    draw_task(model)
    draw_errors(model, runs)
    show(result)


if __name__ == "__main__":
    main()
