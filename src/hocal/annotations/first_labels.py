"""The first labels of each item, whose number was fixed beforehand."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Mask
from hocal._base.validation import check_integer
from hocal.annotations.tables import (
    collect,
    collect_rows,
    is_in_memory,
    number_values,
    open_table,
    pick,
    quote,
)

__all__ = ["first_labels"]


def first_labels(table: Any, *, item: str, time: str, k: int) -> Any:
    """Keep the first k labels of each item, in the order of time.

    A certificate holds for items whose number of labels was fixed beforehand. Where more labels
    were bought for items about which people disagree, as `hocal.next_labels` advises, all labels
    together are no such sample, and a certificate that counts them fails more often than it says.
    The first k of each item still are one. Use all labels for everything else.

    Parameters
    ----------
    table : dataframe
        One row per judgement, as `hocal.count_labels` takes it.
    item : str
        Column that tells the items apart.
    time : str
        Column that orders the judgements of an item: numbers, dates, or text that sorts in the
        order of time.
    k : int
        Labels to keep of each item; an item with fewer keeps them all.

    Returns
    -------
    dataframe
        The same columns and, inside the engine that holds them, fewer rows; lazy where the engine
        is.

    Examples
    --------
    >>> import pandas as pd
    >>> from hocal.annotations import first_labels
    >>> table = pd.DataFrame({"image": [7, 7, 7, 2], "choice": list("aabb"), "when": [3, 1, 2, 9]})
    >>> first_labels(table, item="image", time="when", k=2)["when"].tolist()
    [1, 2, 9]
    """
    size = check_integer(k, "k", minimum=1)
    frame = open_table(table)
    picked = pick(frame, {"item": item, "time": time})
    gaps = picked.filter(nw.col("item").is_null() | nw.col("time").is_null())
    if collect_rows(gaps.head(1)):
        raise InputError(
            "table",
            "must have an item and a time in each row",
            value="none in some rows",
            remedy="Fill or drop such rows first.",
        )
    if is_in_memory(table):
        rows = _among_first(collect(picked), size).tolist()
        kept: Any = collect(frame).filter(rows)
    else:
        kept = frame.filter(nw.col(time).rank("min").over(item) <= size)
    _check_ties(kept.lazy(), item, size)
    return kept.to_native()


def _among_first(picked: nw.DataFrame[Any], k: int) -> Mask:
    """Return which rows in memory have fewer than k earlier ones of the same item."""
    items = number_values(picked["item"])[1]
    times = number_values(picked["time"])[1]
    order = np.lexsort([times, items])
    pair = items[order] * (times.max() + 1) + times[order]
    # The place of each row among those of its item; rows of equal time share the first of theirs.
    starts = np.searchsorted(items[order], items[order])
    place = np.searchsorted(pair, pair) - starts
    among = np.empty(len(order), dtype=bool)
    among[order] = place < k
    return among


def _check_ties(kept: nw.LazyFrame[Any], item: str, k: int) -> None:
    """Refuse labels of equal time of which only some are among the first k."""
    sizes = kept.group_by(item).agg(nw.len().alias("n_kept"))
    tied = collect_rows(sizes.filter(nw.col("n_kept") > k).sort(item).head(3))
    if tied:
        raise InputError(
            "time",
            f"must tell which {k} labels of an item came first",
            value=f"equal times for item {quote([row[item] for row in tied])}",
            remedy="Name a column that orders them, such as the number of the round.",
        )
