"""Time `hocal.decompose` of an ensemble against probly, torch-uncertainty and plain PyTorch.

    python benchmarks/decomposition.py         # minutes, 6 GB, writes results/decomposition.json
    python benchmarks/decomposition.py --tiny  # seconds, writes nothing

hocal and probly use one thread on arrays; PyTorch and what is built on it are timed with one and
with two. torch-uncertainty gives the epistemic part only, the others all three.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import best_times, growth, load_alone, peak_bytes, versions
from scipy import special
from threadpoolctl import threadpool_limits

import hocal

probly = load_alone("probly", "probly.quantification.classification")
MutualInformation = load_alone(
    "torch-uncertainty", "torch_uncertainty.metrics.classification.mutual_information"
).MutualInformation

MOST_BYTES = 5e9  # that a call may need
PROBLY_COPIES = 6  # of the ensemble that it holds at once, as measured on the smaller ones
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
CHECKED_ITEMS = 1000  # of which values are compared
RESULTS = Path(__file__).parent / "results" / "decomposition.json"

Call = Callable[[], Any]
Shape = tuple[int, int, int]


def make_ensemble(shape: Shape, dtype: str) -> np.ndarray:
    """Return softmax predictions (n_items, n_members, n_classes), a thousand items repeated."""
    logits = np.random.default_rng(0).normal(
        scale=2.0, size=(min(shape[0], CHECKED_ITEMS), *shape[1:])
    )
    return np.resize(special.softmax(logits, axis=-1).astype(dtype), shape)


def torch_xlogy(p: torch.Tensor) -> torch.Tensor:
    """Return predictive, aleatoric and epistemic uncertainty, exact where a probability is zero."""
    mean = p.mean(dim=1)
    predictive = -torch.special.xlogy(mean, mean).sum(dim=-1)
    aleatoric = -torch.special.xlogy(p, p).sum(dim=-1).mean(dim=1)
    return torch.stack([predictive, aleatoric, predictive - aleatoric])


def torch_log(p: torch.Tensor) -> torch.Tensor:
    """Return the same with a bare logarithm, which is NaN where a probability is zero."""
    mean = p.mean(dim=1)
    predictive = -(mean * mean.log()).sum(dim=-1)
    aleatoric = -(p * p.log()).sum(dim=-1).mean(dim=1)
    return torch.stack([predictive, aleatoric, predictive - aleatoric])


def torch_uncertainty(p: torch.Tensor) -> torch.Tensor:
    """Return the epistemic part."""
    metric = MutualInformation(reduction="none")
    metric.update(p)
    return metric.compute()[None]


def probly_parts(p: np.ndarray) -> np.ndarray:
    """Return probly's three parts in nats; its own default is bits."""
    functions = (probly.total_entropy, probly.conditional_entropy, probly.mutual_information)
    return np.stack([function(p, base=math.e) for function in functions])


def parts(result: Any) -> np.ndarray:
    """Return the parts of hocal's decomposition, of arrays or tensors."""
    return np.stack(
        [np.asarray(part) for part in (result.predictive, result.aleatoric, result.epistemic)]
    )


def on_threads(call: Callable[[torch.Tensor], Any], tensor: torch.Tensor, n_threads: int) -> Any:
    """Run a call on so many of PyTorch's threads."""
    torch.set_num_threads(n_threads)
    return call(tensor)


def make_calls(p: np.ndarray) -> dict[str, Call]:
    """Return all ways to decompose an ensemble; each gives at least the last of the parts."""
    tensor = torch.from_numpy(p)
    mixtures = hocal.Mixtures.from_ensemble(p)
    calls: dict[str, Call] = {
        "hocal": lambda: parts(hocal.decompose(p)),
        "hocal_from_mixtures": lambda: parts(hocal.decompose(mixtures)),
        "probly": lambda: probly_parts(p),
    }
    on_tensors: dict[str, Callable[[torch.Tensor], Any]] = {
        "hocal_tensor": lambda x: parts(hocal.decompose(x)),
        "torch_uncertainty": torch_uncertainty,
        "torch_xlogy": torch_xlogy,
        "torch_log": torch_log,
    }
    for name, call in on_tensors.items():
        calls |= {
            f"{name}_{n}_thread{'s' * (n > 1)}": partial(on_threads, call, tensor, n)
            for n in (1, 2)
        }
    return calls


def measure(shape: Shape, dtype: str, repeats: int, *, memory: bool) -> dict[str, Any]:
    """Return times, errors and, if wanted, the memory of all calls on one ensemble."""
    p = make_ensemble(shape, dtype)
    calls = make_calls(p)
    skipped = {}
    if PROBLY_COPIES * p.nbytes > MOST_BYTES:
        skipped["probly"] = f"needs {PROBLY_COPIES} times the memory of the ensemble, and minutes"
        del calls["probly"]
    read = {"read_sum": lambda: p.sum(), "read_max": lambda: p.max()}
    wanted = [name for name in calls if memory and not name.endswith("_threads")]
    peaks = {name: least_peak(calls[name]) for name in wanted}
    seconds, values = best_times(read | calls, repeats)
    fastest_read = min(seconds.pop(name) for name in read)
    return {
        "shape": shape,
        "dtype": dtype,
        "megabytes": round(p.nbytes / 1e6, 1),
        "best_of": repeats,
        "read_seconds": fastest_read,
        "seconds": seconds,
        "nanoseconds_per_number": {
            name: round(1e9 * each / p.size, 3) for name, each in seconds.items()
        },
        "time_relative_to_read": {
            name: round(each / fastest_read, 2) for name, each in seconds.items()
        },
        "peak_memory_in_inputs": {
            name: None if x is None else round(x / p.nbytes, 3) for name, x in peaks.items()
        },
        "largest_error": {name: error(p, values[name]) for name in calls},
        "skipped": skipped,
    }


def least_peak(call: Call) -> int | None:
    """Return the smaller of two peaks; pages may have been swapped before the first."""
    peaks = [peak_bytes(call) for _ in range(2)]
    return None if None in peaks else min(peaks)


def error(p: np.ndarray, value: Any) -> float:
    """Return the largest difference to the definition, computed in float64."""
    exact = p[:CHECKED_ITEMS].astype(np.float64)
    predictive = special.entr(exact.mean(axis=1)).sum(axis=-1)
    aleatoric = special.entr(exact).sum(axis=-1).mean(axis=1)
    expected = np.stack([predictive, aleatoric, predictive - aleatoric])
    return float(np.abs(np.asarray(value)[:, :CHECKED_ITEMS] - expected[-len(value) :]).max())


def measure_growth(cases: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the power of the size with which the time of each call grows."""
    common = set.intersection(*(set(case["seconds"]) for case in cases))
    sizes = [case["megabytes"] for case in cases]
    return {
        name: round(growth(sizes, [case["seconds"][name] for case in cases]), 3)
        for name in sorted(common)
    }


def run(
    shapes: Sequence[tuple[Shape, str, int]], rising: Sequence[tuple[Shape, str, int]]
) -> dict[str, Any]:
    """Return the measurements for ensembles of several shapes and of growing size."""
    cases = [measure(*each, memory=False) for each in shapes]
    sizes = [measure(*each, memory=True) for each in rising]
    by_dtype = {dtype: [case for case in sizes if case["dtype"] == dtype] for dtype in TOLERANCE}
    return {
        "versions": versions("numpy", "scipy", "torch", "probly", "torch-uncertainty"),
        "threads": "arrays 1; tensors as the names say",
        "cases": cases,
        "sizes": sizes,
        "growth": {dtype: measure_growth(group) for dtype, group in by_dtype.items()},
    }


def plan(*, tiny: bool) -> tuple[list[tuple[Shape, str, int]], list[tuple[Shape, str, int]]]:
    """Return the shapes to measure, each with a dtype and a number of repeats."""
    kinds = [(m, c) for m in (5, 30) for c in (10, 100, 1000)]
    numbers, rising, repeats = (1e5, (1e4, 1e5), 1) if tiny else (5e6, (1e6, 1e7, 1e9 / 8), 4)
    shapes = [
        ((int(numbers / (m * c)), m, c), dtype, repeats) for dtype in TOLERANCE for m, c in kinds
    ]
    grown = [
        ((int(size * scale / 500), 5, 100), dtype, 2 if size > 1e7 else repeats)
        for dtype, scale in (("float32", 2), ("float64", 1))  # as many bytes
        for size in rising
    ]
    return shapes, grown


def main() -> None:
    """Measure, check that the values agree, and print or store the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tiny", action="store_true", help="small ensembles; checks values, writes nothing"
    )
    tiny = parser.parse_args().tiny
    with threadpool_limits(1, user_api="blas"):
        result = run(*plan(tiny=tiny))
    text = json.dumps(result, indent=2)
    print(text)
    for case in result["cases"] + result["sizes"]:
        wrong = {
            name: x
            for name, x in case["largest_error"].items()
            if not x <= TOLERANCE[case["dtype"]]
        }
        if wrong:
            raise SystemExit(f"values are wrong for {case['shape']} in {case['dtype']}: {wrong}")
    if not tiny:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
