"""The components of items as weights see them: where weights start, what they depend on."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from hocal._base.typing import Array, Index
from hocal.calibration.by_item.columns import Floats
from hocal.calibration.by_item.components import AROUND_PREDICTION, BEYOND_TOP, Components
from hocal.calibration.by_item.likeness import N_ALIKE, Alike
from hocal.calibration.by_item.top_shares import (
    FIXED_SHARES,
    N_COMPONENTS,
    N_SHARES,
    N_WHOLE,
    NEAR_PARTS,
    SHARE_PRECISION,
    top_shares,
)
from hocal.calibration.by_item.weights import Pool, Shapes

__all__ = [
    "DIFFERS",
    "SPLIT_POOL",
    "Beyond",
    "all_pool",
    "all_shapes",
    "second_moment",
    "split_shapes",
    "with_split",
]

CENTRE = np.log(5.0)  # middle of the levels: two labels are separate draws five times in six
SPREAD = 1.0  # of the levels
# Two labels tell only the mean of 1 / (s + 1), while Shannon uncertainty rises with ln(s), to that
# of all classes: a prior that is wide above the middle would fill the rest with extremes, and
# overstate it the more, the more classes there are.
SPREAD_ABOVE = np.log(10.0)  # divided by ln(n_classes), but SPREAD at most
STAR_CENTRE = -1.0  # of the levels of stars: people lapse rarely, about one time in seven
STAR_ODDS = 0.3  # of the likeliest star against the likeliest Dirichlet
LEAST_SHARE = 0.02  # outside the top class: below, the split is as good as certain anyway
DIFFERING = 0.3  # weight of all components whose top class has another share
BY_LIKENESS = 0.3  # weight of all components in which people choose by likeness


class Beyond(NamedTuple):
    """Uncertainty of the split beyond the top class."""

    brier: Floats  #: (n_split_components, n_items)
    shannon: Floats  #: (n_split_components, n_items)
    mean_brier: Floats  #: (n_items,) under the weights that were learnt
    mean_shannon: Floats  #: (n_items,) likewise

    def take(self, rows: Index) -> Beyond:
        """Return some of the items."""
        return Beyond(*(part[..., rows] for part in self))


def _separate(components: Components) -> Array:
    """Return how likely two labels of a component are separate draws of the mean.

    It is s / (s + 1) for a Dirichlet and 1 - (1 - e)^2 for a star.  A component's Brier uncertainty
    is this times the mean's, so two labels per item cannot tell components that share it apart.
    """
    s = components.precisions
    return np.concatenate([s / (s + 1), 1 - (1 - components.lapses) ** 2])


def _pool(components: Components, spread_above: float) -> Pool:
    """Return components around a mean, normal in their level."""
    separate = _separate(components)
    levels = np.log(separate / (1 - separate))
    star = np.arange(len(components)) >= components.n_dirichlets
    away = levels - np.where(star, STAR_CENTRE, CENTRE)
    base = -0.5 * (away / np.where(away > 0, spread_above, SPREAD)) ** 2
    base -= logsumexp(base[~star])
    base[star] += np.log(STAR_ODDS)
    return Pool(base, np.stack([star.astype(float), (levels - CENTRE) / 2], axis=1))


def _with_more(pool: Pool, n_more: int, weight: float) -> Pool:
    """Add components of equal weight, and of a kind of their own."""
    n_before, n_kinds = pool.kinds.shape
    kinds = np.zeros((n_before + n_more, n_kinds + 1))
    kinds[:n_before, :n_kinds] = pool.kinds
    kinds[n_before:, n_kinds] = 1
    return Pool(np.append(pool.base, np.full(n_more, np.log(weight / n_more))), kinds)


@lru_cache
def all_pool(n_classes: int, by_likeness: bool) -> Pool:
    """Return all components, as many and of the same kinds for any number of classes."""
    spread_above = min(SPREAD, SPREAD_ABOVE / np.log(n_classes))
    pool = _with_more(_pool(AROUND_PREDICTION, spread_above), N_SHARES, DIFFERING)
    return _with_more(pool, N_ALIKE, BY_LIKENESS) if by_likeness else pool


SPLIT_POOL = _pool(BEYOND_TOP, SPREAD)
_SPLIT_RATES = _separate(BEYOND_TOP)
_WHOLE_RATES = _separate(AROUND_PREDICTION)
DIFFERS = slice(N_WHOLE, N_COMPONENTS)  # components whose top class has another share


def split_shapes(prediction: Floats, inputs: Floats) -> Shapes:
    """Return the components of the split beyond the top class, and the share outside it."""
    outside, spread = _beyond_top(prediction)
    brier = np.outer(_SPLIT_RATES.astype(spread.dtype), spread)
    root = np.outer(np.sqrt(_SPLIT_RATES).astype(spread.dtype), np.sqrt(spread))
    # Beyond the top class Dirichlet(s f) is Dirichlet(s r q), where r is the share outside: the
    # normal of the levels is centred at CENTRE + ln r.
    lean = 2 / SPREAD**2 * np.log(np.maximum(outside, LEAST_SHARE))
    return Shapes(brier, root, inputs, outside, lean.astype(outside.dtype))


def all_shapes(
    prediction: Floats,
    exact: Array,
    split: Shapes,
    split_weights: Floats,
    alike: Alike | None = None,
) -> tuple[Shapes, Beyond]:
    """Return all components, given the weights (n_components, n_items) of the split.

    Shannon uncertainty is that of the prediction in double precision, `exact`.
    """
    dtype = prediction.dtype
    beyond = _uncertainty_beyond(exact, split, split_weights)
    shape = (N_COMPONENTS + (0 if alike is None else N_ALIKE), len(prediction))
    brier: Floats = np.empty(shape, dtype)
    shannon: Floats = np.empty(shape, dtype)
    outside: Floats = np.empty(shape, dtype)
    spread = np.maximum(1 - np.einsum("ij,ij->i", prediction, prediction), 0)
    shares = _shares(split.share)
    brier[:N_WHOLE] = np.outer(_WHOLE_RATES.astype(dtype), spread)
    brier[DIFFERS] = _share_brier(shares, beyond.mean_brier)
    shannon[:N_WHOLE] = AROUND_PREDICTION.shannon(exact).T
    shannon[DIFFERS] = _share_entropy(shares) + shares * beyond.mean_shannon
    outside[:] = split.share
    outside[DIFFERS] = shares
    if alike is not None:
        brier[N_COMPONENTS:] = np.maximum(alike.brier().T, 0)
        shannon[N_COMPONENTS:] = alike.shannon().T
    lean = np.zeros_like(split.share)
    parts = split.inputs, split.share, lean, outside, shannon
    return Shapes(brier, np.sqrt(brier), *parts), beyond


def with_split(shapes: Shapes, beyond: Beyond, split_weights: Floats) -> Shapes:
    """Return all components with other weights of the split beyond the top class."""
    shares = shapes.outside[DIFFERS]
    brier, shannon = shapes.brier.copy(), shapes.shannon.copy()
    more = np.einsum("ci,ci->i", split_weights, beyond.brier) - beyond.mean_brier
    brier[DIFFERS] += second_moment(shares) * more
    more = np.einsum("ci,ci->i", split_weights, beyond.shannon) - beyond.mean_shannon
    shannon[DIFFERS] += shares * more
    return shapes._replace(brier=brier, shannon=shannon)


def _uncertainty_beyond(prediction: Array, split: Shapes, split_weights: Floats) -> Beyond:
    """Return the uncertainty of the split, by component and under its weights."""
    shannon = BEYOND_TOP.shannon(top_shares(prediction).split).T.astype(split.brier.dtype)
    means = (np.einsum("ci,ci->i", split_weights, part) for part in (split.brier, shannon))
    return Beyond(split.brier, shannon, *means)


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
    second = second_moment(shares)
    return np.asarray(2 * (shares - second) + second * beyond)


def second_moment(shares: Floats) -> Floats:
    """Return the expected squares of shares outside the top class."""
    precision = shares.dtype.type(SHARE_PRECISION)
    return np.asarray(shares * ((precision * shares + 1) / (precision + 1)))
