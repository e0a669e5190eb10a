"""Turn mixtures over the ranks of classes into mixtures over classes, item by item."""

from __future__ import annotations

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Index
from hocal.uncertainty.distinct_counts import distinct_rows
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["MAX_NUMBERS", "in_class_order"]

MAX_NUMBERS = 250_000_000  # in the atoms of predicted mixtures: 2 GB


def in_class_order(mixtures: Mixtures, ranking: Index) -> Mixtures:
    """Map mixtures over ranks to mixtures over classes, once per pair of mixture and ranking."""
    packed = distinct_rows(np.column_stack([mixtures.index, ranking]))
    pairs = np.asarray(packed.unique)
    row, atom, offsets = mixtures.pairs(pairs[:, 0])
    if len(row) * mixtures.n_classes > MAX_NUMBERS:
        raise InputError(
            "probabilities",
            "must have fewer distinct rankings in one call",
            value=f"{len(pairs)} with {len(row)} atoms",
            remedy="Predict mixtures in batches; decompose and predict_proba need none.",
        )
    points = np.empty((len(row), mixtures.n_classes))
    for block in mixtures.blocks(pairs[:, 0]):
        own = slice(*offsets[[block.start, min(block.stop, len(pairs))]])
        ranks = pairs[row[own], 1:]
        np.put_along_axis(points[own], ranks, mixtures.points_at(atom[own]), axis=1)
    return Mixtures.trusted(points, mixtures.weights[atom], offsets, packed.inverse)
