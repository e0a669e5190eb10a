"""Time several ways to compute one thing in one process, and measure the memory they need."""

from __future__ import annotations

import ctypes
import gc
import math
import platform
import sys
import time
import types
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import distribution as distribution_of
from importlib.metadata import version
from pathlib import Path
from typing import Any

# of one call; a method that would need more stops at the size before
MOST_SECONDS = 60.0
MOST_BYTES = 8e9


def best_times(
    calls: Mapping[str, Callable[[], Any]], repeats: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the best time and the value of each call, in turns so that a disturbance hits all."""
    values = {
        name: call() for name, call in calls.items()
    }  # also loads what is imported on first use
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds, values


def peak_bytes(call: Callable[[], Any]) -> int | None:
    """Return the most memory a call adds, its result included; None on systems other than Linux."""
    status = Path("/proc/self/status")
    refs = Path("/proc/self/clear_refs")
    if not refs.exists():
        return None
    gc.collect()
    ctypes.CDLL(None).malloc_trim(
        0
    )  # else memory that was freed but not returned hides what the call takes
    refs.write_text("5", encoding="ascii")  # forget the peak so far
    before = _kilobytes(status, "VmRSS")
    result = call()
    peak = _kilobytes(status, "VmHWM")
    del result
    return max(peak - before, 0) * 1024


def _kilobytes(status: Path, field: str) -> int:
    line = next(
        line for line in status.read_text(encoding="ascii").splitlines() if line.startswith(field)
    )
    return int(line.split()[1])


def measure_once(call: Callable[[], Any]) -> tuple[float, int | None, Any]:
    """Return seconds, peak memory and value of one call."""
    found: list[Any] = []

    def timed() -> None:
        start = time.perf_counter()
        value = call()
        found.extend([time.perf_counter() - start, value])

    peak = peak_bytes(timed)
    return found[0], peak, found[1]


def too_large(
    seconds: Mapping[str, float], peaks: Mapping[str, int | None], times_larger: float
) -> dict[str, str]:
    """Tell which methods would take too long or too much memory on larger data, and why."""
    slow = [name for name, value in seconds.items() if value * times_larger > MOST_SECONDS]
    large = [name for name, value in peaks.items() if (value or 0) * times_larger > MOST_BYTES]
    return dict.fromkeys(large, f"over {MOST_BYTES / 1e9:.0f} GB") | dict.fromkeys(
        slow, f"over {MOST_SECONDS:.0f} s"
    )


def growth(sizes: Iterable[float], seconds: Iterable[float]) -> float:
    """Return the power of the size with which time grows: the slope on logarithmic axes."""
    x, y = ([math.log(value) for value in values] for values in (sizes, seconds))
    middle_x = sum(x) / len(x)
    middle_y = sum(y) / len(y)
    spread = sum((a - middle_x) ** 2 for a in x)
    return sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / spread


def load_alone(distribution: str, module: str) -> Any:
    """Import one module of a peer without running the `__init__` of its packages.

    For peers whose packages import torchvision or lightning at once, though the function timed
    needs neither.
    """
    site = Path(str(distribution_of(distribution).locate_file("")))
    parts = module.split(".")
    for depth in range(1, len(parts)):
        name = ".".join(parts[:depth])
        package = types.ModuleType(name)
        package.__path__ = [str(site.joinpath(*parts[:depth]))]
        sys.modules.setdefault(name, package)
    return import_module(module)


def versions(*packages: str) -> dict[str, str]:
    """Return the versions that a measurement depends on."""
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
