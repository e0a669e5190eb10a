"""Planning: how closely a cell will be certified, before anything is paid for.

`items_needed` and `interval_width` forecast one cell of a certificate and are each other's inverse,
as `hocal.guarantees.bounds.sample_size` and `epsilon_bound` are for epsilon.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Array, IntArray
from hocal._base.validation import (
    check_choice,
    check_fraction,
    check_integer,
    check_n_classes,
    check_number,
    check_random_state,
    check_snapshot_size,
)
from hocal.guarantees.betting import Draws
from hocal.guarantees.bounds import sample_size
from hocal.guarantees.cell_uncertainty import (
    ENTROPIES,
    PLAIN,
    SIZES,
    Sample,
    advise,
    estimator_sizes,
)
from hocal.guarantees.entropy_ranges import shannon_range
from hocal.guarantees.fixed_number import binomial_limits, expected_error
from hocal.guarantees.item_statistics import Statistic, item_draws, most_disagreement
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.distinct_counts import compress
from hocal.uncertainty.entropy import get_entropy
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import enumerate_snapshots, n_snapshots

__all__ = ["interval_width", "items_needed"]


# Numbers of items tried; a billion stands for any number.
_POWERS = tuple(4**i for i in range(1, 16))
_A_HAIR_MORE = 1 + 1e-9  # so that rounding loses no item
_N_MEANS = 1001  # means in [0, 1] at which the widest interval is looked for
_ADVISERS = 1000  # items of other cells: more would not change what they advise
_MAX_WORK = 50_000_000  # snapshots times atoms worth enumerating: a second
_N_DRAWS = 100_000  # items drawn where there are more; a width is then right to three digits


def items_needed(
    *,
    k: int,
    epsilon: float | None = None,
    width: float | None = None,
    n_classes: int | None = None,
    mixture: Mixtures | None = None,
    confidence: float = 0.95,
    entropy: str = "shannon",
) -> int:
    """Return how many items, with k labels each, certify a cell as closely as wanted.

    Epsilon falls as 1 / sqrt(N). The interval of aleatoric uncertainty narrows until only what k
    labels leave open remains; a smaller width needs more labels per item.

    Parameters
    ----------
    k : int
        Labels per item.
    epsilon : float, optional
        Wanted kth-order calibration error of the cell's empirical snapshots, W1 in l1 units.
    width : float, optional
        Wanted width of the cell's aleatoric interval; give this or `epsilon`.
    n_classes, mixture, confidence, entropy
        As in `interval_width`.

    Returns
    -------
    int
        Number of items N; for a width, ``interval_width(N) <= width < interval_width(N - 1)``.

    Examples
    --------
    >>> import hocal
    >>> from hocal.decisions.planning import items_needed
    >>> items_needed(k=10, epsilon=0.1, n_classes=2)
    738
    >>> assumed = hocal.Mixtures.from_dirichlet([[0.2, 0.2]])
    >>> labels = {k: k * items_needed(k=k, width=0.2, mixture=assumed) for k in (2, 5)}
    >>> min(labels, key=labels.get)  # labels per item of the cheapest study
    5
    """
    if (epsilon is None) == (width is None):
        raise InputError(
            "epsilon and width",
            "must be given one without the other",
            value=f"{epsilon!r} and {width!r}",
        )
    k = check_snapshot_size(k)
    classes = _check_classes(n_classes, mixture)
    delta = 1 - check_fraction(confidence, "confidence")
    if epsilon is not None:
        return sample_size(epsilon, delta, k, classes)
    wanted = check_number(width, "width", minimum=0, strict=True)
    width_of = _forecast(k, classes, mixture, delta, entropy)
    enough = next((n for n in _POWERS if width_of(n) <= wanted), None)
    if enough is not None:
        return bisect_left(range(enough), True, enough // 4, key=lambda n: width_of(n) <= wanted)
    narrowest = width_of(_POWERS[-1])

    def will_do(more: int) -> bool:
        return _forecast(more, classes, mixture, delta, entropy)(_POWERS[-1]) <= wanted

    rest = range(k + 1, SIZES[-1] + 1)
    place = bisect_left(rest, True, key=will_do)
    remedy = f"No k up to {SIZES[-1]} will do."
    if place < len(rest):
        remedy = f"Give k={rest[place]} labels per item."
    left_open = f"what is left open by k={k} labels on each of any number of items"
    raise InputError(
        "width", f"must exceed {narrowest:.3g}, {left_open}", value=f"{wanted:g}", remedy=remedy
    )


def interval_width(
    n_items: int,
    *,
    k: int,
    n_classes: int | None = None,
    mixture: Mixtures | None = None,
    confidence: float = 0.95,
    entropy: str = "shannon",
) -> float:
    """Return how wide the certified interval of a cell's aleatoric uncertainty will be.

    With a mixture, this is a forecast for a cell that many others of its kind advise, from 100
    items on. Without, it bounds the mean width for every mixture, in a cell that no other advises,
    but for samples whose limits fail in a way that shows: at the most even mixture their interval
    is the whole range, and with many items these few may raise the mean above the bound. With two
    labels per item both come from the binomial distribution of how often labels agree.

    Parameters
    ----------
    n_items : int
        Items in the cell.
    k : int
        Labels per item.
    n_classes : int, optional
        Number of label classes, unless a mixture tells.
    mixture : Mixtures, optional
        The mixture that the cell is expected to have, fitted or assumed: Mixtures of one item.
    confidence : float, default=0.95
        Probability with which the certificate is to hold, for the cell on its own.
    entropy : {"shannon", "brier"}
        Measure of uncertainty.

    Returns
    -------
    float
        Width, in nats for Shannon.

    Examples
    --------
    >>> import hocal
    >>> from hocal.decisions.planning import interval_width
    >>> assumed = hocal.Mixtures.from_dirichlet([[0.2, 0.2]])
    >>> round(interval_width(500, k=5, mixture=assumed), 1)
    0.1
    >>> round(interval_width(500, k=5, n_classes=2), 1)  # whatever the mixture
    0.2
    """
    n_items = check_integer(n_items, "n_items", minimum=1)
    k = check_snapshot_size(k)
    delta = 1 - check_fraction(confidence, "confidence")
    classes = _check_classes(n_classes, mixture)
    return _forecast(k, classes, mixture, delta, entropy)(n_items)


def _check_classes(n_classes: int | None, mixture: Mixtures | None) -> int:
    if mixture is None:
        if n_classes is None:
            raise InputError("n_classes", "must be given, or a `mixture` instead of it")
        return check_n_classes(n_classes)
    if not isinstance(mixture, Mixtures) or len(mixture) != 1:
        rule = "must be Mixtures of one item"
        raise InputError("mixture", rule, value=repr(mixture), remedy="Index them to choose one.")
    if n_classes not in (None, mixture.n_classes):
        rule = f"must be that of the mixture, {mixture.n_classes}"
        raise InputError("n_classes", rule, value=repr(n_classes))
    return mixture.n_classes


def _forecast(
    k: int, n_classes: int, mixture: Mixtures | None, delta: float, entropy: str
) -> Callable[[int], float]:
    """Return the width as a function of the number of items."""
    check_choice(entropy, "entropy", ENTROPIES)
    if k == 2:
        return _agreement_forecast(mixture, n_classes, delta, entropy)
    sizes = estimator_sizes(np.array([k]))
    if mixture is None:
        return lambda n_items: _worst_width(n_items, k, sizes, n_classes, delta, entropy)
    counts, chances = _likely_snapshots(mixture, k)
    others = Sample(counts, _ADVISERS * _A_HAIR_MORE * chances)
    largest = float(get_entropy(entropy).maximum(n_classes))

    def width(n_items: int) -> float:
        advice = advise(others, sizes, n_classes=n_classes, n_items=n_items, same_order=k == 1)
        draws = item_draws(others, advice)
        if k == 1:
            loss = Statistic.LOSS if entropy == "shannon" else Statistic.BRIER_LOSS
            return min(_likely_end(draws[loss], n_items, delta, 1), largest)
        below = Statistic.LOWER_ALEATORIC if entropy == "shannon" else Statistic.DISAGREEMENT
        above = Statistic.UPPER_ALEATORIC if entropy == "shannon" else Statistic.DISAGREEMENT
        lower = max(_likely_end(draws[below], n_items, delta, -1), 0.0)
        return min(_likely_end(draws[above], n_items, delta, 1), largest) - lower

    return width


def _likely_end(draws: Draws, n_items: int, delta: float, sign: int) -> float:
    """Return where a limit of the mean of a statistic will lie, from its distribution."""
    values = draws.values[:, 0]
    chances = draws.repeats[:, 0] / draws.repeats.sum()
    mean = float(chances @ values)
    deviation = math.sqrt(float(chances @ (values - mean) ** 2))
    error = expected_error(deviation, draws.high - draws.low, n_items, delta / 2)
    return float(np.clip(mean + sign * error, draws.low, draws.high))


def _agreement_forecast(
    mixture: Mixtures | None, n_classes: int, delta: float, entropy: str
) -> Callable[[int], float]:
    """Return the width with two labels per item, of which only their agreement is known.

    Without a mixture it is the largest over all shares of items whose labels disagree.
    """
    largest = float(get_entropy("brier").maximum(n_classes))
    shares = np.linspace(0, largest, _N_MEANS)
    if mixture is not None:
        shares = decompose(mixture, "brier").aleatoric

    def width(n_items: int) -> float:
        pairs = [binomial_limits(n_items * share, n_items, delta / 2) for share in shares.tolist()]
        inside = [(min(low, largest), min(high, largest)) for low, high in pairs]
        if entropy == "brier":
            return max(high - low for low, high in inside)
        ranges = [shannon_range(*ends, n_classes) for ends in inside]
        return max(high - low for low, high in ranges)

    return width


def _likely_snapshots(mixture: Mixtures, k: int) -> tuple[IntArray, Array]:
    """Return k-snapshots and their probabilities, those merged that differ in the order of classes.

    The statistics of aleatoric uncertainty are sums over classes, so this changes nothing and
    leaves few rows.
    """
    atoms = mixture.pairs(mixture.index)[1]
    single = Mixtures(mixture.points_at(atoms), mixture.weights[atoms], [0, len(atoms)], [0])
    if n_snapshots(k, single.n_classes) * len(atoms) <= _MAX_WORK:
        counts = enumerate_snapshots(k, single.n_classes)
        chances = single.snapshot_distribution(k)[0]
    else:
        counts = _draw_sorted(single[np.zeros(_N_DRAWS, dtype=np.intp)], k)
        chances = np.full(_N_DRAWS, 1 / _N_DRAWS)
    # Two classes have few rows anyway; with one label only the mean speaks.
    if k > 1 and single.n_classes > 2:
        counts = -np.sort(-counts, axis=1)
    packed = compress(counts)
    unique = np.asarray(packed.unique)
    unique = np.pad(unique, ((0, 0), (0, single.n_classes - unique.shape[1])))
    return unique, np.bincount(packed.inverse, chances).astype(np.float64)


def _draw_sorted(items: Mixtures, k: int) -> IntArray:
    """Draw k labels of each item; of many classes the k most frequent, beyond which there are none.

    Which class they are does not matter for k labels, unless there are two classes.
    """
    each = np.full(len(items), k)
    if k == 1 or items.n_classes <= max(k, 2):
        return items.draw(each, random_state=0)
    drawn = items.draw_in_blocks(each, check_random_state(0))
    return np.concatenate([-np.sort(-block, axis=1)[:, :k] for _, block in drawn])


def _worst_width(
    n_items: int, k: int, sizes: tuple[int, ...], n_classes: int, delta: float, entropy: str
) -> float:
    """Bound the mean width of a cell that no other advises, whatever its mixture.

    By Hoeffding's inequality, than which limits are never wider, and the largest bias of each
    statistic.
    """
    largest = get_entropy(entropy).maximum(n_classes)
    if k == 1:
        return largest
    overshoot = math.sqrt(math.log(2 / delta) / (2 * n_items))
    if entropy == "brier":  # unbiased, from 0 to the disagreement of evenly spread labels
        return min(2 * overshoot * most_disagreement(k, n_classes), largest)
    advice = advise(None, sizes, n_classes=n_classes, n_items=n_items)
    sides = advice.estimators.values()
    width = sum(side.bias + overshoot * (side.maximum - side.minimum) for side in sides)
    return min(width, _range_width(n_items, k, n_classes, PLAIN * delta), largest)


def _range_width(n_items: int, k: int, n_classes: int, delta: float) -> float:
    """Bound the width of what limits of disagreement say about Shannon uncertainty."""
    largest = float(get_entropy("brier").maximum(n_classes))
    error = most_disagreement(k, n_classes) * math.sqrt(math.log(2 / delta) / (2 * n_items))
    widths = []
    for share in np.linspace(0, largest, _N_MEANS).tolist():
        ends = (max(share - error, 0.0), min(share + error, largest))
        lower, upper = shannon_range(*ends, n_classes)
        widths.append(upper - lower)
    return max(widths)
