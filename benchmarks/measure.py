"""Time several ways to compute one thing, side by side in one process."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any


def best_times(calls: Mapping[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the best time in seconds and the value of each call, taking turns so that a disturbance hits all."""
    values = {name: call() for name, call in calls.items()}  # also loads what is imported on first use
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds, values


def versions(*packages: str) -> dict[str, str]:
    """Return the versions that a measurement depends on."""
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
