"""How far an empirical mixture is from the true one, scale by scale: for many labels per item.

The simplex is cut into cells again and again, at scale 2^-j by the whole parts of 2^j p. Mass that
is in the wrong cell of a scale, but in the right one of the scale before, travels no farther than
that one is wide. So with D_j the width of cells and S_j the sum over cells of |empirical - true|,

    W1 <= (D_0 / 2) S_1 + D_1 S_2 + ... + D_(J-1) S_J + D_J min(1, S),

S the same sum over all snapshots; and E S_j <= sqrt((N_j - 1) / n) with N_j cells and n items.
Unlike a bound through S alone, it stays finite when snapshots become many.
"""

from __future__ import annotations

import math
from functools import lru_cache

from hocal.uncertainty.snapshots import n_snapshots

__all__ = ["dyadic_expectation"]

MOST_SCALES = 40  # a cell is then narrower than 1e-11


def dyadic_expectation(n_items: int, k: int, n_classes: int) -> float:
    """Bound E W1(true snapshots, empirical snapshots) of n items, in l1 units.

    Parameters
    ----------
    n_items : int
        Number of items.
    k : int
        Number of labels per item.
    n_classes : int
        Number of label classes.

    Returns
    -------
    float
        The best choice of the finest scale.

    Examples
    --------
    Three classes: from a thousand labels to a hundred thousand the bound does not grow, while the
    number of snapshots does so from half a million to five billions.

    >>> from hocal.guarantees.dyadic import dyadic_expectation
    >>> [round(dyadic_expectation(1000, k, 3), 2) for k in (10, 1000, 100_000)]
    [0.25, 0.55, 0.55]
    """
    m = n_snapshots(k, n_classes)
    finest = min(1.0, math.sqrt((m - 1) / n_items))
    best = width(0, n_classes) / 2 * math.sqrt((m - 1) / n_items)  # no scale between
    spent = 0.0
    for scale in range(1, MOST_SCALES):
        share = 0.5 if scale == 1 else 1.0
        spread = math.sqrt(max(n_cells(scale, n_classes) - 1, 0) / n_items)
        spent += share * width(scale - 1, n_classes) * spread
        if spent >= best:
            break
        best = min(best, spent + width(scale, n_classes) * finest)
    return best


def width(scale: int, n_classes: int) -> float:
    """Return the largest l1 distance within a cell: whole parts agree, so no class moves by 2^-j.

    Differences sum to 0, so at most half of the classes, rounded down, rise by that much.
    """
    return min(2.0, 2 * (n_classes // 2) / 2.0**scale)


@lru_cache(maxsize=1024)
def n_cells(scale: int, n_classes: int) -> int:
    """Return the number of cells: whole parts that sum to 2^j - r, for r from 1 to n_classes - 1.

    Points with r = 0 are corners of cells and belong to one of them.
    """
    whole = 2**scale
    return sum(math.comb(whole - r + n_classes - 1, n_classes - 1) for r in range(1, n_classes))
