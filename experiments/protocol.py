"""What the experiments share: halves of the items, figures over resamplings, result files."""

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

import hocal
from hocal.uncertainty.snapshots import draw_snapshots

RESULTS = Path(__file__).parent / "results"
FIGURES = Path(__file__).parent / "figures"
METHODS = ("empirical", "cells")  # the paper's, and hocal's of the same form: a mixture per cell

warnings.filterwarnings(
    "ignore", message="No item has two labels"
)  # that is among what is compared


def halves(
    n_items: int, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], np.random.Generator]:
    """Return calibration items, test items, and the randomness for what else is drawn."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(n_items)
    return order[: n_items // 2], order[n_items // 2 :], generator


def calibrate(
    probabilities: NDArray[np.float64], counts: NDArray[np.int64], k: int, method: str, seed: int
) -> tuple[hocal.SnapshotCalibrator, NDArray[np.intp]]:
    """Fit on one half with k labels per item; return the calibrator and the other half."""
    fit, test, generator = halves(len(counts), seed)
    snapshots = draw_snapshots(counts[fit], k, replace=True, random_state=generator)
    calibrator = hocal.SnapshotCalibrator(method=method)  # type: ignore[arg-type]
    return calibrator.fit(probabilities[fit], snapshots), test


def draw_at_most(
    counts: NDArray[np.int64], k: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw k of each item's labels without replacement; all of them where there are fewer."""
    left = counts.copy()
    drawn = np.zeros_like(counts)
    for _ in range(k):
        totals = left.sum(axis=1)
        place = generator.integers(np.maximum(totals, 1))  # of the next label among those left
        label = (left.cumsum(axis=1) <= place[:, None]).sum(axis=1)
        items = np.flatnonzero(totals)
        left[items, label[items]] -= 1
        drawn[items, label[items]] += 1
    return drawn


def in_parallel(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], jobs: int) -> Any:
    """Return what a function gives for each task, in order, on so many cores; one thread each."""
    if jobs == 1:
        with threadpool_limits(1):
            return [function(*task) for task in tasks]
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        return Parallel(batch_size=1)(delayed(function)(*task) for task in tasks)


def options(description: str | None, *, resamplings: int) -> argparse.ArgumentParser:
    """Return a parser of the options that most scripts have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resamplings", type=int, default=resamplings)
    parser.add_argument("--jobs", type=int, default=1, help="processes, one core each")
    return parser


def accuracy(probabilities: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    """Return the agreement with the majority of the labels."""
    return digits((probabilities.argmax(1) == counts.argmax(1)).mean())


def summarise(runs: Sequence[Any]) -> Any:
    """Summarise what the resamplings gave, figure by figure."""
    if isinstance(runs[0], dict):
        return {name: summarise([run[name] for run in runs]) for name in runs[0]}
    return interval(runs)


def interval(values: ArrayLike) -> dict[str, float]:
    """Return mean, limits of the middle 95%, and the first resampling, which tests repeat."""
    lower, upper = np.quantile(values, [0.025, 0.975])
    first = np.asarray(values)[0]
    return {
        "mean": digits(np.mean(values)),
        "lower": digits(lower),
        "upper": digits(upper),
        "first": digits(first),
    }


def digits(value: float) -> float:
    """Round for storage."""
    return round(float(value), 4) + 0.0  # no minus zero


def row(cells: Any, form: str = "9.4f") -> str:
    """Return the means of a row of summaries as text."""
    return "".join(f"{cell['mean']:{form}}" for cell in cells)


def store(name: str, result: dict[str, Any]) -> None:
    """Write a result file."""
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def draw(name: str, figure: Any) -> None:
    """Write a figure, without the version of the library that drew it."""
    figure.savefig(FIGURES / f"{name}.png", dpi=80, metadata={"Software": None})
