"""The components of items as weights see them: where weights start, what they depend on."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from hocal._base.typing import Array
from hocal.calibration.by_item.columns import Floats
from hocal.calibration.by_item.components import AROUND_PREDICTION, BEYOND_TOP, Components
from hocal.calibration.by_item.top_shares import (
    FIXED_SHARES,
    N_SHARES,
    NEAR_PARTS,
    SHARE_PRECISION,
    top_shares,
)
from hocal.calibration.by_item.weights import Pool, Shapes

__all__ = ["ALL_POOL", "SPLIT_POOL", "all_shapes", "component_shannon", "split_shapes"]

CENTRE = np.log(5.0)  # middle of the levels: two labels are separate draws five times in six
# Spread of the levels.  Two labels tell only the mean of 1 / (s + 1); a wide prior would fill the
# rest with extremes and overstate Shannon uncertainty with many classes.
SPREAD = 1.0
STAR_ODDS = 3.0  # of a star against the Dirichlet of its level: lapses are what people do
LEAST_SHARE = 0.02  # outside the top class: below, the split is as good as certain anyway
DIFFERING = 0.3  # weight of all components whose top class has another share


def _separate(components: Components) -> Array:
    """Return how likely two labels of a component are separate draws of the mean.

    It is s / (s + 1) for a Dirichlet and 1 - (1 - e)^2 for a star.  A component's Brier uncertainty
    is this times the mean's, so two labels per item cannot tell components that share it apart.
    """
    s = components.precisions
    return np.concatenate([s / (s + 1), 1 - (1 - components.lapses) ** 2])


def _pool(components: Components, n_more: int) -> Pool:
    """Return components around a mean, normal in their level, and more of equal weight."""
    separate = _separate(components)
    levels = np.log(separate / (1 - separate)) - CENTRE
    star = np.arange(len(components)) >= components.n_dirichlets
    base = -0.5 * (levels / SPREAD) ** 2
    base -= logsumexp(base[~star])
    base[star] += np.log(STAR_ODDS)
    kinds = np.stack([star.astype(float), levels / 2], axis=1)
    if not n_more:
        return Pool(base, kinds)
    more = np.full(n_more, np.log(DIFFERING / n_more))
    kinds = np.concatenate([kinds, np.zeros((n_more, 2))])
    differs = np.arange(len(kinds)) >= len(base)
    return Pool(np.append(base, more), np.column_stack([kinds, differs]))


SPLIT_POOL = _pool(BEYOND_TOP, 0)
ALL_POOL = _pool(AROUND_PREDICTION, N_SHARES)
_SPLIT_RATES = _separate(BEYOND_TOP)
_WHOLE_RATES = _separate(AROUND_PREDICTION)


def split_shapes(prediction: Floats, inputs: Floats) -> Shapes:
    """Return the components of the split beyond the top class, and the share outside it."""
    outside, spread = _beyond_top(prediction)
    brier = np.outer(_SPLIT_RATES.astype(spread.dtype), spread)
    root = np.outer(np.sqrt(_SPLIT_RATES).astype(spread.dtype), np.sqrt(spread))
    # Beyond the top class Dirichlet(s f) is Dirichlet(s r q), where r is the share outside: the
    # normal of the levels is centred at CENTRE + ln r.
    lean = 2 / SPREAD**2 * np.log(np.maximum(outside, LEAST_SHARE))
    return Shapes(brier, root, inputs, outside, lean.astype(outside.dtype))


def all_shapes(prediction: Floats, split: Shapes, split_weights: Floats) -> Shapes:
    """Return all components, given the weights (n_components, n_items) of the split."""
    dtype = prediction.dtype
    n_whole = len(_WHOLE_RATES)
    shape = (n_whole + N_SHARES, len(prediction))
    brier: Floats = np.empty(shape, dtype)
    outside: Floats = np.empty(shape, dtype)
    spread = np.maximum(1 - np.einsum("ij,ij->i", prediction, prediction), 0)
    brier[:n_whole] = np.outer(_WHOLE_RATES.astype(dtype), spread)
    outside[:n_whole] = split.share
    outside[n_whole:] = _shares(split.share)
    beyond = np.einsum("ci,ci->i", split_weights, split.brier)
    brier[n_whole:] = _share_brier(outside[n_whole:], beyond)
    lean = np.zeros_like(split.share)
    return Shapes(brier, np.sqrt(brier), split.inputs, split.share, lean, outside)


def component_shannon(prediction: Array, split_weights: Floats) -> Array:
    """Return the Shannon uncertainty of all components, (n_components, n_items)."""
    top = top_shares(prediction)
    beyond = np.einsum("ci,ic->i", split_weights, BEYOND_TOP.shannon(top.split))
    shares = _shares(top.outside)
    differing = _share_entropy(shares) + shares * beyond
    return np.concatenate([AROUND_PREDICTION.shannon(prediction).T, differing])


def _beyond_top(prediction: Floats) -> tuple[Floats, Floats]:
    """Return the share outside the top class, and the Brier entropy of its split."""
    left = prediction.copy()
    left[np.arange(len(left)), left.argmax(axis=1)] = 0
    outside = np.einsum("ij->i", left)
    squares = np.einsum("ij,ij->i", left, left)
    return outside, np.maximum(1 - squares / outside**2, 0)


def _shares(outside: Floats) -> Floats:
    """Return the mean shares outside of the components that differ, (N_SHARES, n_items)."""
    dtype = outside.dtype
    fixed = np.broadcast_to(FIXED_SHARES.astype(dtype)[:, None], (len(FIXED_SHARES), len(outside)))
    near = np.array(NEAR_PARTS, dtype)[:, None]
    return np.concatenate([fixed, near * outside, 1 - near * (1 - outside)])


def _share_entropy(shares: Array) -> Array:
    """Return the expected entropy of shares outside, to second order of their spread."""
    entropy = -shares * np.log(shares) - (1 - shares) * np.log1p(-shares)
    return np.maximum(entropy - 0.5 / (SHARE_PRECISION + 1), 0)


def _share_brier(shares: Floats, beyond: Floats) -> Floats:
    """Return 2 (m - m2) + m2 B for a share outside with moments m and m2, split with B."""
    precision = shares.dtype.type(SHARE_PRECISION)
    second = shares * ((precision * shares + 1) / (precision + 1))
    return np.asarray(2 * (shares - second) + second * beyond)
