"""Two processes that measure the same items together, for tests/networks/test_metrics."""

import json
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed

from hocal.torch.metrics import AleatoricError, CalibrationError, Resolution, SnapshotScore

N_ITEMS, N_CELLS = 60, 3


def made_up_items() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return members, clear and torn in turn, counts of four to nine labels, and cells."""
    rng = np.random.default_rng(0)
    concentration = np.where(np.arange(N_ITEMS) % 2 == 0, 0.3, 5.0)
    masses = rng.gamma(concentration[:, None, None], size=(N_ITEMS, 5, 4))
    members = masses / masses.sum(axis=2, keepdims=True)
    counts = rng.multinomial(rng.integers(4, 10, N_ITEMS), members[:, 0])
    cells = members.mean(axis=1).argmax(axis=1) % N_CELLS
    return torch.from_numpy(members), torch.from_numpy(counts), torch.from_numpy(cells)


def make_metrics() -> dict[str, Any]:
    return {
        "score": SnapshotScore(),
        "resolution": Resolution(),
        "aleatoric": AleatoricError(N_CELLS),
        "calibration": CalibrationError(n_resamples=10),
    }


def feed(metrics: dict[str, Any], places: list[slice]) -> None:
    """Update all metrics batch by batch."""
    members, counts, cells = made_up_items()
    for place in places:
        for name, metric in metrics.items():
            own = (cells[place],) if name in ("aleatoric", "calibration") else ()
            metric.update(members[place], counts[place], *own)


def numbers_of(metrics: dict[str, Any]) -> dict[str, Any]:
    error = metrics["calibration"].result()
    return {
        **{name: metric.compute().item() for name, metric in metrics.items()},
        "intervals": [metrics["score"].result(), metrics["resolution"].result()],
        "per cell": metrics["aleatoric"].result().tolist(),
        "noise floor": error.noise_floor,
        "p-value": error.p_value,
    }


def main(folder: Path, rank: int) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder / 'meeting'}"
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    shared, alone = make_metrics(), make_metrics()
    feed(shared, [slice(0, 7), slice(7, 20)] if rank == 0 else [slice(20, 60)])
    feed(alone, [slice(0, 30), slice(30, 60)] if rank == 1 else [])
    found = {"shared": numbers_of(shared)}
    found["alone"] = numbers_of(alone)
    feed(shared, [slice(0, 1)])  # each process goes on with its own items
    found["items afterwards"] = int(shared["aleatoric"].n_items.sum())
    (folder / f"{rank}.json").write_text(json.dumps(found), encoding="utf-8")
    distributed.destroy_process_group()


def start_both(folder: Path) -> None:
    """Fork, so that both have what was imported, and fail if one of them does."""
    forks = get_context("fork")
    started = [forks.Process(target=main, args=(folder, rank)) for rank in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    sys.exit(max(abs(process.exitcode or 0) for process in started))


if __name__ == "__main__":
    start_both(Path(sys.argv[1]))
