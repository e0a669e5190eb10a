"""Time `hocal.decompose` of CUDA tensors against torch-uncertainty and one pass over memory.

Run from the repository root on a machine with an NVIDIA GPU:

    python benchmarks/decomposition_gpu.py          # writes results/decomposition_gpu.json
    python benchmarks/decomposition_gpu.py --tiny   # checks values on the CPU, writes nothing
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measure import versions
from torch import Tensor

from hocal.torch import decompose_members

TARGET = 1.5  # hocal may take at most this many times as long as one pass over the tensor
SHAPES = [  # items, members, classes; from 48 MB to 4.8 GB, then about 2 GB each
    (40_000, 30, 10, torch.float32),
    (400_000, 30, 10, torch.float32),
    (4_000_000, 30, 10, torch.float32),
    (10_000_000, 5, 10, torch.float32),
    (160_000, 30, 100, torch.float32),
    (16_000, 30, 1_000, torch.float32),
    (80_000_000, 3, 2, torch.float32),
    (48_000, 1_000, 10, torch.float32),
    (3_200_000, 30, 10, torch.float16),
    (3_200_000, 30, 10, torch.bfloat16),
    (800_000, 30, 10, torch.float64),
]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 3e-2}
RESULTS = Path(__file__).parent / "results" / "decomposition_gpu.json"


def peer(p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the parts by the expression inside torch-uncertainty's MutualInformation."""
    predictive = torch.special.entr(p.mean(dim=1)).sum(dim=-1)
    aleatoric = torch.special.entr(p).sum(dim=-1).mean(dim=1)
    return predictive, aleatoric, (predictive - aleatoric).clamp(min=0)


def milliseconds(call: Callable[[], Any], *, queued: bool, repeats: int = 20) -> float:
    """Return the median time of a call after a warm-up, with nothing of its input in the cache.

    Queued behind a millisecond of other work, as in a program that keeps its GPU busy, Python's
    part in starting the call is hidden; else the GPU is idle when the call begins.
    """
    other = torch.empty(4 << 30, dtype=torch.int8, device="cuda")
    times = []
    for repeat in range(repeats + 3):
        other.zero_()
        if not queued:
            torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if repeat >= 3:
            times.append(start.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the most memory of the GPU that a call takes, its result included."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    return int(torch.cuda.max_memory_allocated() - before)


def make_members(shape: tuple[int, int, int], dtype: torch.dtype, device: str) -> Tensor:
    """Return random members of an ensemble."""
    generator = torch.Generator(device).manual_seed(0)
    logits = torch.randn(shape, generator=generator, device=device)
    return (
        (2 * logits).softmax(-1).to(dtype)
        if dtype != torch.float64
        else (2 * logits.double()).softmax(-1)
    )


def difference(p: Tensor) -> float:
    """Return the largest difference of hocal from the expression in double precision."""
    p = p[:100_000]
    ours = decompose_members(p)[:3]
    theirs = peer(p.double())
    return max(float((a.double() - b).abs().max()) for a, b in zip(ours, theirs, strict=True))


def compare(n_items: int, n_members: int, n_classes: int, dtype: torch.dtype) -> dict[str, Any]:
    """Return one row of measurements."""
    p = make_members((n_items, n_members, n_classes), dtype, "cuda")
    flat = p.view(-1)
    calls: dict[str, Callable[[], Any]] = {
        "peer": lambda: peer(p),
        "hocal": lambda: decompose_members(p),
    }
    times = {name: milliseconds(call, queued=True) for name, call in calls.items()}
    times["read"] = min(milliseconds(flat.sum, queued=True), milliseconds(flat.amax, queued=True))
    return {
        "shape": [n_items, n_members, n_classes],
        "dtype": str(dtype).removeprefix("torch."),
        "bytes": p.numel() * p.element_size(),
        "milliseconds": times,
        "milliseconds_from_idle": {
            name: milliseconds(call, queued=False) for name, call in calls.items()
        },
        "relative_to_the_read": times["hocal"] / times["read"],
        "times_faster_than_peer": times["peer"] / times["hocal"],
        "target_at_most": TARGET,
        "peak_bytes": {name: peak_bytes(call) for name, call in calls.items()},
        "difference": difference(p),
    }


def run() -> dict[str, Any]:
    """Return all measurements."""
    return {
        "versions": versions("torch", "triton"),
        "device": torch.cuda.get_device_name(),
        "rows": [compare(*row) for row in SHAPES],
    }


def main() -> None:
    """Measure, check that the values agree, and print or store the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tiny",
        action="store_true",
        help="small tensors on the CPU; checks values, writes nothing",
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="where to write the result")
    arguments = parser.parse_args()
    if arguments.tiny:
        differences = {
            dtype: difference(make_members((50, 5, 10), dtype, "cpu")) for dtype in TOLERANCE
        }
    else:
        result = run()
        print(json.dumps(result, indent=2))
        differences = {
            row[-1]: found["difference"] for row, found in zip(SHAPES, result["rows"], strict=True)
        }
    wrong = {
        str(dtype): value for dtype, value in differences.items() if not value <= TOLERANCE[dtype]
    }
    if wrong:
        raise SystemExit(f"values differ from the peer's by more than rounding: {wrong}")
    if not arguments.tiny:
        arguments.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
