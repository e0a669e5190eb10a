"""Random orders of the draws of a histogram, which the histogram itself determines.

Bets that change with what was drawn need an order of the draws. A histogram has none, and the rows
of a table may be sorted by what they show. Independent draws in a random order are independent
draws, so one is drawn here, with a seed that is a fingerprint of the histogram: the same order for
the same draws, on every machine, and as good as a new one for any other draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from hocal._base.fingerprints import fingerprint
from hocal._base.typing import Array, IntArray

__all__ = ["LIKELY", "ORDERS", "Order", "batches"]

# A histogram that is likely by itself, as one of rare events, has one order in all samples that it
# occurs in, so its failures come all together. The chance of failure then differs from what is
# promised, delta, by a standard deviation of sqrt(delta * chance of the histogram) at most: a
# sixteenth of .025 with this one, less than bets with a deadline fall short of delta.
LIKELY = 1e-4
# Orders of a likelier one; only what all of them refute is refuted. For coins of 20 to 5,000 draws
# of any mean, one order failed up to 3.5 times as often as promised, three up to 1.1 times, five
# never more often.
ORDERS = 5


class Order(NamedTuple):
    """In which orders draws are looked at."""

    seed: int
    n_orders: int

    @classmethod
    def of(cls, rows: IntArray, repeats: Array) -> Order:
        """Return the orders of a histogram.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_columns)
            What was drawn: distinct rows of numbers, in any order.
        repeats : ndarray of shape (n_rows,)
            How often each was drawn.

        Returns
        -------
        Order
            One order where the histogram is unlikely even under its own frequencies.

        Examples
        --------
        >>> import numpy as np
        >>> from hocal.guarantees.orders import Order
        >>> coin = np.array([[0], [1]])
        >>> Order.of(coin, np.array([90, 10])).n_orders
        5
        >>> Order.of(np.arange(100)[:, None], np.ones(100)).n_orders
        1
        """
        prints = np.sort(fingerprint(rows, repeats[:, None])).astype("<u8")
        seed = hashlib.blake2b(prints.tobytes(), digest_size=8).digest()
        n_draws = repeats.sum()
        orderings = special.gammaln(n_draws + 1) - special.gammaln(repeats + 1).sum()
        log_chance = orderings + special.xlogy(repeats, repeats / n_draws).sum()
        return cls(int.from_bytes(seed, "little"), ORDERS if log_chance > np.log(LIKELY) else 1)


def batches(
    orders: Sequence[Order], n_draws: Sequence[int], n_numbers: Sequence[int], at_once: int
) -> Iterator[list[int]]:
    """Yield places of samples that are looked at together: of similar sizes, in as many orders.

    Parameters
    ----------
    orders : sequence of Order
        Orders of each sample.
    n_draws : sequence of int
        Draws of each.
    n_numbers : sequence of int
        Numbers that are computed with in one order of each.
    at_once : int
        Most numbers of a batch, unless one sample has more.

    Examples
    --------
    >>> from hocal.guarantees.orders import Order, batches
    >>> list(batches([Order(0, 1)] * 4, [100, 30, 101, 102], [5, 5, 5, 5], 10))
    [[0, 2], [3], [1]]
    """
    kinds: dict[tuple[int, int], list[int]] = {}
    for place, (order, size) in enumerate(zip(orders, n_draws, strict=True)):
        kinds.setdefault((order.n_orders, size.bit_length()), []).append(place)
    for (n_orders, _), places in kinds.items():
        widest = max(n_numbers[place] for place in places)
        step = max(at_once // (n_orders * widest), 1)
        for start in range(0, len(places), step):
            yield places[start : start + step]
