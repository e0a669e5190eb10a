"""Time the deconvolution against plain expectation maximisation and a convex solver.

HOCAL_DATA=... python benchmarks/deconvolution.py   # minutes, writes results/deconvolution.json
python benchmarks/deconvolution.py --tiny           # seconds, synthetic labels, writes nothing
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import cvxpy
import numpy as np
from measure import best_times, growth, peak_bytes, versions
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import hocal
from hocal.calibration.by_cell import deconvolution
from hocal.calibration.by_cell.pool import fit_pool
from hocal.cells.statistics import align_counts
from hocal.datasets import (
    load_chaosnli,
    load_cifar10_softmax,
    load_cifar10h,
    load_ferplus,
    make_mixture_world,
)
from hocal.uncertainty.snapshots import draw_snapshots

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

# nats per item from the optimum at which expectation maximisation is stopped
SHORT_BY = (1e-6, 1e-8)
TOLERANCE = 1e-6  # nats per item by which the convex solver's optimum may differ
# steps of expectation maximisation between two looks at the likelihood, which are not timed
BATCH = 10
RAGGED = 0  # stands for one to ten labels per item
RESULTS = Path(__file__).parent / "results" / "deconvolution.json"


class Problem(NamedTuple):
    """What `fit_pool` is asked to maximise: sum_s n_s log (L w)_s + prior * mean_a log w_a."""

    likelihood: Array  #: (n_snapshots, n_atoms)
    frequency: Array  #: (n_snapshots,)
    prior: float

    def objective(self, weights: Array) -> float:
        """Return the penalised log-likelihood in nats per item."""
        value = (
            self.frequency @ np.log(self.likelihood @ weights) + self.prior * np.log(weights).mean()
        )
        return float(value / (self.frequency.sum() + self.prior))


def pool_problem(p: Array, counts: Counts) -> Problem:
    """Return the problem that `deconvolve` solves first, for all items together."""
    n_items = len(counts)
    with mock.patch.object(deconvolution, "fit_pool", wraps=fit_pool) as called:
        where = np.zeros(n_items, dtype=int)
        times = np.ones(n_items)
        deconvolution.deconvolve(align_counts(p, counts), where, times, group=[0], level=[0])
    return Problem(*called.call_args.args, called.call_args.kwargs["prior"])


def real_problems() -> Iterator[tuple[dict[str, Any], Problem]]:
    """Yield the problems of k labels per item drawn from people's labels."""
    people = load_cifar10h().counts
    nli = load_chaosnli()
    faces = load_ferplus("train").counts
    constant = np.broadcast_to(
        faces.sum(axis=0) / faces.sum(), faces.shape
    )  # no model's predictions are at hand
    data = {
        "CIFAR-10H": (load_cifar10_softmax().probabilities, people),
        "ChaosNLI": (nli.probabilities, nli.counts),
        "FER+": (constant, faces),
    }
    for name, (p, counts) in data.items():
        for k in (2, 5, 10, 50):
            drawn = draw_snapshots(counts, k, replace=True, random_state=0)
            yield {"data": name, "n_classes": counts.shape[1], "k": k}, pool_problem(p, drawn)


def synthetic_problems(
    n_items: int, all_k: tuple[int, ...]
) -> Iterator[tuple[dict[str, Any], Problem]]:
    """Yield the problems of a world of fifty cells with four label distributions each."""
    for n_classes in (2, 3, 10, 100):
        world = make_mixture_world(n_items, n_classes, n_cells=50, random_state=0)
        for k in all_k:
            totals = np.random.default_rng(0).integers(1, 11, n_items) if k == RAGGED else k
            case = {"data": "mixture world", "n_classes": n_classes, "k": k or "1 to 10"}
            yield case, pool_problem(world.predictions, world.draw(totals, random_state=0))


def expectation_maximisation(problem: Problem, best: float, limit: float) -> dict[str, Any]:
    """Return the steps and seconds that bring plain EM near the best objective, or its limit."""
    likelihood, frequency, prior = problem
    n_atoms = likelihood.shape[1]
    total = frequency.sum() + prior
    weights = np.full(n_atoms, 1 / n_atoms)
    steps = 0
    seconds = 0.0
    found = {}
    for short in SHORT_BY:
        while best - problem.objective(weights) > short and seconds < limit:
            start = time.perf_counter()
            for _ in range(BATCH):
                responsibility = weights * ((frequency / (likelihood @ weights)) @ likelihood)
                weights = (responsibility + prior / n_atoms) / total
            seconds += time.perf_counter() - start
            steps += BATCH
        left = best - problem.objective(weights)
        found[f"{short:g}"] = {
            "steps": steps,
            "seconds": seconds,
            "short": left,
            "reached": left <= short,
        }
    return found


def against_expectation_maximisation(
    case: dict[str, Any], problem: Problem, repeats: int, limit: float
) -> Any:
    """Time `fit_pool` to its own tolerance, and EM to the two of SHORT_BY."""
    seconds, values = best_times(
        {"hocal": lambda: fit_pool(*problem[:2], prior=problem.prior)}, repeats
    )
    fit = values["hocal"]
    slow = expectation_maximisation(problem, problem.objective(fit.weights), limit)
    if min(run["short"] for run in slow.values()) < -1e-9:
        raise SystemExit(f"expectation maximisation found a better optimum: {case} {slow}")
    ratios = {short: round(run["seconds"] / seconds["hocal"], 2) for short, run in slow.items()}
    shape = dict(zip(("n_snapshots", "n_atoms"), problem.likelihood.shape, strict=True))
    own = {"seconds": seconds["hocal"], "gap": fit.gap, "newton_steps": fit.n_iterations}
    return {**case, **shape, "hocal": own, "em": slow, "times_faster": ratios}


def solve_by_cvxpy(problem: Problem) -> Array:
    """Return the weights that Clarabel finds with one exponential cone for each logarithm."""
    likelihood, frequency, prior = problem
    weights = cvxpy.Variable(likelihood.shape[1])
    density = frequency @ cvxpy.log(likelihood @ weights)
    penalty = prior / likelihood.shape[1] * cvxpy.sum(cvxpy.log(weights))
    scale = frequency.sum() + prior
    cvxpy.Problem(cvxpy.Maximize((density + penalty) / scale), [cvxpy.sum(weights) == 1]).solve(
        solver="CLARABEL"
    )
    return np.asarray(weights.value / weights.value.sum())


def against_convex_solver(case: dict[str, Any], problem: Problem, repeats: int) -> dict[str, Any]:
    """Time both, and compare the objectives."""
    calls = {
        "hocal": lambda: fit_pool(*problem[:2], prior=problem.prior).weights,
        "cvxpy": lambda: solve_by_cvxpy(problem),
    }
    seconds, weights = best_times(calls, repeats)
    ahead = problem.objective(weights["hocal"]) - problem.objective(weights["cvxpy"])
    if abs(ahead) > TOLERANCE:
        raise SystemExit(f"the optima differ by {ahead} nats per item: {case}")
    shape = dict(zip(("n_snapshots", "n_atoms"), problem.likelihood.shape, strict=True))
    ratio = round(seconds["cvxpy"] / seconds["hocal"], 1)
    return {
        **case,
        **shape,
        "seconds": seconds,
        "times_faster": ratio,
        "hocal_ahead_in_nats_an_item": ahead,
    }


def statistics(n_items: int, n_classes: int, k: int) -> hocal.CellStatistics:
    """Return statistics of labels that follow Dirichlet predictions, in parts of 100,000 items."""
    partition = hocal.TopLabelPartition().fit(np.full((1, n_classes), 1 / n_classes))
    generator = np.random.default_rng(0)
    parts = []
    for first in range(0, n_items, 100_000):
        size = min(100_000, n_items - first)
        p = generator.dirichlet(np.full(n_classes, 3 / n_classes), size=size)
        counts = generator.multinomial(generator.integers(1, 11, size) if k == RAGGED else k, p)
        parts.append(
            hocal.CellStatistics.from_items(p, counts, partition.assign(p), partition.layout_)
        )
    return sum(parts[1:], start=parts[0])


def whole_fit(n_items: int, n_classes: int, k: int) -> dict[str, Any]:
    """Time the fit of a calibrator from counted labels, pool and cells together."""
    stats = statistics(n_items, n_classes, k)
    partition = hocal.TopLabelPartition().fit(np.full((1, n_classes), 1 / n_classes))

    def fit() -> Any:
        return hocal.SnapshotCalibrator(partition).fit_statistics(stats)

    peak = peak_bytes(fit)
    seconds, _ = best_times({"fit": fit}, 1)
    case = {"n_items": n_items, "n_classes": n_classes, "k": k or "1 to 10"}
    sizes = {
        "n_filled_cells": int((stats.n_items > 0).sum()),
        "n_distinct": len(stats.aligned.multiplicity),
    }
    return {**case, **sizes, "seconds": seconds["fit"], "peak_bytes": peak}


def exponents(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the powers of items and of distinct snapshots with which time grows."""
    kinds = sorted({(row["n_classes"], str(row["k"])) for row in rows})
    same = [[row for row in rows if (row["n_classes"], str(row["k"])) == kind] for kind in kinds]
    in_items = [
        {"n_classes": n_classes, "k": k, "power": power_of("n_items", some)}
        for (n_classes, k), some in zip(kinds, same, strict=True)
    ]
    return {"items": in_items, "distinct_snapshots": power_of("n_distinct", rows)}


def power_of(name: str, rows: list[dict[str, Any]]) -> float:
    """Return the power of one column with which time grows."""
    return round(growth([row[name] for row in rows], [row["seconds"] for row in rows]), 2)


def show(row: dict[str, Any]) -> dict[str, Any]:
    """Print a row and return it."""
    print(json.dumps(row), flush=True)
    return row


def main(tiny: bool) -> None:
    """Run the three comparisons, print their rows and store them."""
    repeats, limit = (1, 1.0) if tiny else (5, 4.0)
    problems = list(
        synthetic_problems(300, (2, RAGGED))
        if tiny
        else synthetic_problems(10_000, (2, 5, 10, 50, RAGGED))
    )
    if not tiny:
        problems = [*real_problems(), *problems]
    small = [
        (case, problem)
        for case, problem in problems
        if len(problem.frequency) <= (10 if tiny else 70)
    ]
    sizes = [300, 1000] if tiny else [1_000, 10_000, 100_000, 1_000_000]
    worlds = [(2, 5), (10, 5), (10, RAGGED)] if tiny else [(2, 5), (10, 5), (100, 5), (10, RAGGED)]
    result = {
        "versions": versions("numpy", "scipy", "cvxpy", "clarabel"),
        "best_of": repeats,
        "em": [
            show(against_expectation_maximisation(*problem, repeats, limit)) for problem in problems
        ],
        "cvxpy": [show(against_convex_solver(*problem, min(repeats, 2))) for problem in small],
        "fit": [show(whole_fit(n, *world)) for world in worlds for n in sizes],
    }
    result["growth"] = show(exponents(result["fit"]))
    if not tiny:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    with threadpool_limits(
        1, user_api="blas"
    ):  # as the calibrator fits: threads do not pay for these sizes
        main(parser.parse_args().tiny)
