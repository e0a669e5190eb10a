"""Time `hocal.decompose` against the plain PyTorch expression, side by side in one process.

python benchmarks/decomposition.py           # writes benchmarks/results/decomposition.json
python benchmarks/decomposition.py --tiny    # seconds, writes nothing
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import best_times, versions

from hocal.decomposition import decompose
from hocal.mixtures import Mixtures

N_THREADS = 2
TARGET = 1.5  # hocal may take at most this many times as long as PyTorch
TOLERANCE = 1e-12
RESULTS = Path(__file__).parent / "results" / "decomposition.json"


def torch_xlogy(p: torch.Tensor) -> torch.Tensor:
    """Return predictive, aleatoric and epistemic uncertainty, exact where a probability is zero."""
    mean = p.mean(dim=1)
    predictive = -torch.special.xlogy(mean, mean).sum(dim=-1)
    aleatoric = -torch.special.xlogy(p, p).sum(dim=-1).mean(dim=1)
    return torch.stack([predictive, aleatoric, predictive - aleatoric])


def torch_log(p: torch.Tensor) -> torch.Tensor:
    """Return the same with a bare logarithm, which is faster but NaN where a probability is zero."""
    mean = p.mean(dim=1)
    predictive = -(mean * mean.log()).sum(dim=-1)
    aleatoric = -(p * p.log()).sum(dim=-1).mean(dim=1)
    return torch.stack([predictive, aleatoric, predictive - aleatoric])


def run(shape: tuple[int, int, int], repeats: int) -> dict[str, Any]:
    """Return the measurement for an ensemble of shape (n_items, n_members, n_classes)."""
    torch.set_num_threads(N_THREADS)
    logits = np.random.default_rng(0).normal(scale=2.0, size=shape)
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    tensor, mixtures = torch.from_numpy(p), Mixtures.from_ensemble(p)
    calls = {
        "torch_xlogy": lambda: torch_xlogy(tensor),
        "torch_log": lambda: torch_log(tensor),
        "hocal": lambda: decompose(Mixtures.from_ensemble(p)),
        "hocal_from_mixtures": lambda: decompose(mixtures),
    }
    seconds, values = best_times(calls, repeats)
    parts = np.stack(list(values["hocal"].as_dict().values()))
    fastest = min(seconds["torch_xlogy"], seconds["torch_log"])
    return {
        "versions": versions("numpy", "torch"),
        "best_of": repeats,
        "shape": shape,
        "dtype": "float64",
        "torch_threads": N_THREADS,
        "seconds": seconds,
        "time_relative_to_faster_torch": seconds["hocal"] / fastest,
        "time_relative_to_faster_torch_from_mixtures": seconds["hocal_from_mixtures"] / fastest,
        "target_at_most": TARGET,
        "difference": float(np.abs(parts - values["torch_xlogy"].numpy()).max()),
    }


def main() -> None:
    """Measure, check that the values agree, and print or store the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small ensemble; checks values, writes nothing")
    tiny = parser.parse_args().tiny
    result = run((200, 5, 10), 2) if tiny else run((20_000, 30, 10), 15)
    text = json.dumps(result, indent=2)
    print(text)
    if not result["difference"] <= TOLERANCE:
        raise SystemExit(f"values differ from PyTorch's by {result['difference']}, more than {TOLERANCE}")
    if not tiny:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
