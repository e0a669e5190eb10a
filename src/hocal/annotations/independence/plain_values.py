"""Values in the types of JSON, and p-values in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["p_text", "plain", "short_p"]

_SMALLEST = 1e-6  # p-value below which only its order of magnitude is told


def plain(value: Any) -> Any:
    """Return a value in the types of JSON; None stands for NaN."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if hasattr(value, "_asdict"):
        return {name: plain(entry) for name, entry in value._asdict().items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def short_p(p_value: float) -> str:
    """Return a p-value, or a power of ten that it is below: never zero."""
    if not p_value < _SMALLEST:
        return f"{p_value:.2g}"
    exponent = math.floor(-math.log10(max(p_value, 1e-300)))  # what no float can tell is below
    return f"<1e-{min(exponent, 99)}"


def p_text(p_value: float) -> str:
    """Return a p-value as in "p = 0.03" or "p < 1e-9"."""
    short = short_p(p_value)
    return f"p < {short[1:]}" if short.startswith("<") else f"p = {short}"
