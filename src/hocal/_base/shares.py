"""Shares in words: a percentage that says "100%" of all and "0%" of none, and of nothing else."""

from __future__ import annotations

import math

__all__ = ["percent"]

FINEST = 1  # digits after the point: a reader compares no finer shares
SMALL = 0.0995  # shares below have a digit more: 4.6% is not 5%
LARGE = 0.99  # and those above: 99.6% is not 100%


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share as a percentage, with a digit more where it is small or nearly all.

    Parameters
    ----------
    share : float or None
        0 is none and 1 is all. None and NaN become a dash.
    digits : int, default=0
        Digits after the point where the share is neither small nor nearly all.

    Returns
    -------
    str
        Only 0 itself is "0%" and only 1 itself "100%".

    Examples
    --------
    >>> [percent(share) for share in (0, 1e-6, 0.046, 0.25, 1498 / 1500, 1 - 1e-6, 1)]
    ['0%', 'under 0.1%', '4.6%', '25%', '99.9%', 'over 99.9%', '100%']
    """
    if share is None or math.isnan(share):
        return "-"
    if share < 0:
        return f"-{percent(-share, digits)}"
    exact = share in (0, 1)  # and so is -0.0
    fine = not exact and (share < SMALL or LARGE < share < 1)
    text = f"{100 * abs(share):.{max(digits, FINEST) if fine else digits}f}"
    if share > 0 and float(text) == 0:
        return f"under {10**-FINEST:g}%"
    if share < 1 and float(text) == 100:
        return f"over {100 - 10**-FINEST:g}%"
    return f"{text}%"
