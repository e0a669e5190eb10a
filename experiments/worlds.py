"""Compare predicted uncertainty with the truth in worlds where it is known.

    python experiments/worlds.py [--resamplings 3] [--jobs 1] [--tiny]

A world says how a model's prediction comes about and how label distributions are spread around what
the prediction tells, so that the right mean and the right aleatoric uncertainty of each item are
known exactly. Reported are the bias of mean aleatoric, epistemic and predictive uncertainty on
5,000 new items after a fit to 5,000 with k labels each (asked: at most .05, .12 with two labels);
and how the error of cell averages of the aleatoric uncertainty falls with the number of items
(asked: as n^(-1/3) at least). A quarter of an hour on one core.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from protocol import digits, in_parallel, options, store, summarise
from scipy.special import digamma

import hocal
from hocal.uncertainty.entropy import get_entropy

METHODS = ("cells", "items")
LABELS = (2, 3, 5)
N_ITEMS = 5_000
N_TEST = 5_000
SIZES = (5_000, 10_000, 20_000, 40_000, 80_000)
GROWING_LABELS = (3, 5)
ASKED = {"2": 0.12, "3": 0.05, "5": 0.05}  # largest bias, nats
ASKED_SLOPE = -1 / 3
NOTHING = 1e-9  # a probability that is as good as zero

Array = NDArray[np.float64]
Generator = np.random.Generator


class Scene(NamedTuple):
    """Items of a world: what a model says, and what is true given that."""

    predictions: Array  # (n_items, n_classes)
    label_distributions: Array  # (n_items, n_classes), from which labels are drawn
    mean: Array  # (n_items, n_classes), the best that can be said
    aleatoric: Array  # (n_items,), the expected entropy of the label distribution, nats


def dirichlet(n_items: int, generator: Generator, n_classes: int) -> Scene:
    """Spread label distributions around a prediction that is right on average."""
    logits = 2 * generator.normal(size=(n_items, n_classes))
    mean = _normalise(np.exp(logits))
    return Scene(mean, *_spread(mean, 5.0, generator))


def confusions(n_items: int, generator: Generator, n_classes: int) -> Scene:
    """Make a model that exchanges the names of a third of the classes; people mostly agree."""
    certain = generator.uniform(0.6, 0.99, size=(n_items, 1))
    own = np.eye(n_classes)[generator.integers(n_classes, size=n_items)]
    mean = certain * own + (1 - certain) * (1 - own) / (n_classes - 1)
    names = np.arange(n_classes)
    swapped = names[: 2 * (n_classes // 6)].reshape(-1, 2)
    names[: swapped.size] = swapped[:, ::-1].reshape(-1)
    return Scene(mean[:, names], *_spread(mean, 8.0, generator))


def lapses(n_items: int, generator: Generator, known: bool) -> Scene:
    """Let people name one class nine times in ten and each of ten others once in a hundred.

    The model knows which class, or nothing.
    """
    n_classes = 11
    own = np.eye(n_classes)[generator.integers(n_classes, size=n_items)]
    truth = 0.01 + 0.89 * own
    mean = truth if known else np.full_like(truth, 1 / n_classes)
    noise = np.exp(0.1 * generator.normal(size=truth.shape))
    return Scene(_normalise(mean * noise), truth, mean, _entropy(truth))


def bimodal(n_items: int, generator: Generator, n_classes: int = 5) -> Scene:
    """Make a model that names two classes; half of the items are a coin toss, half certain."""
    items = np.arange(n_items)
    first = generator.integers(n_classes, size=n_items)
    second = (first + generator.integers(1, n_classes, size=n_items)) % n_classes
    toss = generator.random(n_items) < 0.5
    share = np.where(toss, 0.5, generator.integers(2, size=n_items))
    truth = np.full((n_items, n_classes), NOTHING)
    truth[items, first] += share
    truth[items, second] += 1 - share
    mean = np.full((n_items, n_classes), NOTHING)
    mean[items, first] += 0.5
    mean[items, second] += 0.5
    noise = np.exp(0.2 * generator.normal(size=truth.shape))
    aleatoric = np.full(n_items, 0.5 * np.log(2))
    return Scene(_normalise((mean + 0.02) * noise), _normalise(truth), _normalise(mean), aleatoric)


def agreed(n_items: int, generator: Generator, slips: float) -> Scene:
    """Let people agree, but for slips, on a class about which the model knows little."""
    mean = generator.dirichlet(np.ones(10), size=n_items)
    own = (mean.cumsum(axis=1) < generator.random((n_items, 1))).sum(axis=1)
    truth = (1 - slips) * np.eye(10)[np.minimum(own, 9)] + slips / 10
    return Scene(mean, truth, (1 - slips) * mean + slips / 10, _entropy(truth))


def _spread(mean: Array, precision: float, generator: Generator) -> tuple[Array, Array, Array]:
    """Draw from Dirichlet distributions; return the draws, their means and expected entropies."""
    concentrations = precision * mean
    draws = generator.gamma(np.maximum(concentrations, NOTHING)) + 1e-300
    expected = digamma(precision + 1) - (mean * digamma(concentrations + 1)).sum(axis=1)
    return _normalise(draws), mean, expected


def _normalise(values: Array) -> Array:
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def _entropy(distributions: Array) -> Array:
    return get_entropy("shannon").value(distributions)


WORLDS: dict[str, Callable[[int, Generator], Scene]] = {
    "Dirichlet, 20 classes": partial(dirichlet, n_classes=20),
    "Dirichlet, 50 classes": partial(dirichlet, n_classes=50),
    "Dirichlet, 100 classes": partial(dirichlet, n_classes=100),
    "lapses, class known": partial(lapses, known=True),
    "lapses, class unknown": partial(lapses, known=False),
    "bimodal": bimodal,
    "people agree": partial(agreed, slips=0.0),
    "people agree but for 1%": partial(agreed, slips=0.01),
    "fixed confusions, 20 classes": partial(confusions, n_classes=20),
    "fixed confusions, 100 classes": partial(confusions, n_classes=100),
}
GROWING: dict[str, Callable[[int, Generator], Scene]] = {
    "Dirichlet, 5 classes": partial(dirichlet, n_classes=5),
    "bimodal": bimodal,
    "lapses, class known": partial(lapses, known=True),
}


def fitted(
    make: Callable[[int, Generator], Scene], n_items: int, k: int, method: str, seed: int
) -> tuple[hocal.SnapshotCalibrator, Scene]:
    """Return a calibrator that saw k labels of so many items, and new items of the same world."""
    generator = np.random.default_rng(seed)
    test = make(N_TEST, generator)
    scene = make(n_items, generator)
    counts = generator.multinomial(k, scene.label_distributions)
    calibrator = hocal.SnapshotCalibrator(method=method)  # type: ignore[arg-type]
    return calibrator.fit(scene.predictions, counts), test


def biases(world: str, k: int, method: str, seed: int, n_items: int = N_ITEMS) -> dict[str, float]:
    """Return by how much the means of predicted uncertainty are off, in nats."""
    calibrator, test = fitted(WORLDS[world], n_items, k, method, seed)
    parts = calibrator.decompose(test.predictions)
    aleatoric = float((parts.aleatoric - test.aleatoric).mean())
    predictive = float((parts.predictive - _entropy(test.mean)).mean())
    epistemic = predictive - aleatoric
    return {"aleatoric": aleatoric, "epistemic": epistemic, "predictive": predictive}


def cell_error(world: str, k: int, n_items: int, method: str, seed: int) -> float:
    """Return the item-averaged error of the mean aleatoric uncertainty of cells, in nats."""
    calibrator, test = fitted(GROWING[world], n_items, k, method, seed)
    gaps = calibrator.decompose(test.predictions).aleatoric - test.aleatoric
    cells = calibrator.partition_.assign(test.predictions)
    return float(np.abs(np.bincount(cells, gaps)).sum() / len(gaps))


def slope(curve: dict[str, Any]) -> float:
    """Return the slope of the error over the number of items, both logarithmic."""
    sizes = [int(size) for size in curve]
    means = [cell["mean"] for cell in curve.values()]
    return float(np.polyfit(np.log(sizes), np.log(means), 1)[0])


def all_biases(seeds: range, jobs: int, n_items: int, worlds: list[str]) -> dict[str, Any]:
    """Return the biases in some worlds."""
    rows = [(world, k, method) for world in worlds for method in METHODS for k in LABELS]
    tasks = [(*row, seed, n_items) for row in rows for seed in seeds]
    runs = iter(in_parallel(biases, tasks, jobs))
    result: dict[str, Any] = {world: {method: {} for method in METHODS} for world in worlds}
    for world, k, method in rows:
        result[world][method][str(k)] = summarise([next(runs) for _ in seeds])
    for found in result.values():
        found["reached"] = {
            k: max(abs(cell["mean"]) for cell in found["items"][k].values()) <= least
            for k, least in ASKED.items()
        }
    return result


def all_errors(seeds: range, jobs: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Return the errors of cell averages by the number of items, and how fast they fall."""
    worlds = [(world, k) for world in GROWING for k in GROWING_LABELS]
    rows = [(*world, size, method) for world in worlds for method in METHODS for size in sizes]
    runs = iter(in_parallel(cell_error, [(*row, seed) for row in rows for seed in seeds], jobs))
    result: dict[str, Any] = {
        f"{world}, k = {k}": {method: {} for method in METHODS} for world, k in worlds
    }
    for world, k, size, method in rows:
        found = summarise([next(runs) for _ in seeds])
        result[f"{world}, k = {k}"][method][str(size)] = found
    for found in result.values():
        slopes = {method: digits(slope(found[method])) for method in METHODS}
        found |= {"slope": slopes, "reached": slopes["items"] <= ASKED_SLOPE}
    return result


def main() -> None:
    """Compute, store and print."""
    parser = options(__doc__, resamplings=3)
    parser.add_argument("--tiny", action="store_true", help="few items and classes")
    chosen = parser.parse_args()
    seeds = range(chosen.resamplings)
    n_items = 500 if chosen.tiny else N_ITEMS
    sizes = (500, 1_000) if chosen.tiny else SIZES
    worlds = [name for name in WORLDS if not (chosen.tiny and "0 classes" in name)]
    bias = all_biases(seeds, chosen.jobs, n_items, worlds)
    errors = all_errors(seeds, chosen.jobs, sizes)
    asked = {"bias": ASKED, "slope": digits(ASKED_SLOPE)}
    result = {"resamplings": chosen.resamplings, "items": n_items, "unit": "nats", "asked": asked}
    store("worlds", result | {"bias": bias, "error of cell averages": errors})
    for world, found in bias.items():
        for method in METHODS:
            for k, cells in found[method].items():
                means = ", ".join(f"{name} {cell['mean']:+.3f}" for name, cell in cells.items())
                mark = "" if method == "cells" or found["reached"][k] else " *"
                print(f"{world:30}{method:6} k = {k}: {means}{mark}")
    for world, found in errors.items():
        for method in METHODS:
            means = ", ".join(f"{cell['mean']:.4f}" for cell in found[method].values())
            print(f"{world:30}{method:6} {means}; slope {found['slope'][method]:.2f}")


if __name__ == "__main__":
    main()
