"""Hypothesis strategies that tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from hocal import Mixtures
from hocal._base.typing import Array, IntArray

class_numbers = st.integers(2, 4)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def label_distributions(
    draw: st.DrawFn,
    n_classes: int | None = None,
    *,
    interior: bool = False,
    shape: tuple[int, ...] = (),
) -> Array:
    """Draw label distributions (*shape, n_classes), often at the boundary unless `interior`."""
    width = draw(class_numbers) if n_classes is None else n_classes
    return np.array(
        [_distribution(draw, width, interior) for _ in range(int(np.prod(shape)))]
    ).reshape(*shape, width)


def _distribution(draw: st.DrawFn, n_classes: int, interior: bool) -> Array:
    """Return small integers divided by their sum; probabilities are 0 or at least 1 / 401."""
    parts = draw(st.lists(st.integers(int(interior), 100), min_size=n_classes, max_size=n_classes))
    if sum(parts) == 0:
        parts[draw(st.integers(0, n_classes - 1))] = 1
    return np.array(parts) / sum(parts)


@st.composite
def pairs_of_distributions(draw: st.DrawFn, *, interior: bool = False) -> tuple[Array, Array]:
    """Draw two label distributions over the same classes."""
    n_classes = draw(class_numbers)
    first = draw(label_distributions(n_classes, interior=interior))
    return first, draw(label_distributions(n_classes, interior=interior))


@st.composite
def count_matrices(
    draw: st.DrawFn,
    n_classes: int | None = None,
    *,
    n_items: int | None = None,
    minimum_total: int = 1,
    largest: int = 3,
) -> IntArray:
    """Draw ragged label counts: up to six items, each with at least `minimum_total` labels."""
    width = draw(class_numbers) if n_classes is None else n_classes
    length = draw(st.integers(1, 6)) if n_items is None else n_items
    rows = draw(
        st.lists(
            st.lists(st.integers(0, largest), min_size=width, max_size=width),
            min_size=length,
            max_size=length,
        )
    )
    counts = np.array(rows, dtype=np.int64)
    # Missing labels go to one class, so that no example is thrown away.
    counts[:, draw(st.integers(0, width - 1))] += np.maximum(minimum_total - counts.sum(axis=1), 0)
    return counts


@st.composite
def mixtures(
    draw: st.DrawFn,
    n_classes: int | None = None,
    *,
    n_items: int | None = None,
    interior: bool = False,
) -> Mixtures:
    """Draw up to three mixtures of up to four atoms, some without weight, shared by a few items."""
    width = draw(class_numbers) if n_classes is None else n_classes
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    points = draw(label_distributions(width, interior=interior, shape=(sum(sizes),)))
    weights = np.concatenate([_distribution(draw, size, interior=False) for size in sizes])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    length = st.integers(1, 5) if n_items is None else st.just(n_items)
    index: list[Any] = [draw(st.integers(0, len(sizes) - 1)) for _ in range(draw(length))]
    return Mixtures(points, weights, offsets, index)
