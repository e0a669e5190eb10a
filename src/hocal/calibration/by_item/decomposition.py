"""Split the uncertainty of items from their mixtures in closed form, or from atoms of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hocal.calibration.by_item.mixtures import ItemMixtures
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.entropy import Brier, Entropy, Shannon

__all__ = ["decompose_items"]

BLOCK_NUMBERS = 20_000_000  # in the atoms of items that are listed at once, 160 MB
ATOMS_PER_CLASS = 40  # roughly what `ItemMixtures.to_mixtures` lists for an item


def decompose_items(
    mixtures: ItemMixtures, entropy: Entropy, *, kind: Any, panel_size: int | None
) -> Decomposition:
    """Return predictive, aleatoric and epistemic uncertainty of each item."""
    closed_form = isinstance(entropy, Shannon | Brier) and kind == "mutual-information"
    if not closed_form or panel_size is not None:
        return _from_atoms(mixtures, entropy, kind, panel_size)
    predictive = entropy.value(mixtures.mean(), check_input=False)
    aleatoric = np.minimum(mixtures.aleatoric(entropy), predictive)  # but for rounding it is
    return Decomposition(predictive, aleatoric, predictive - aleatoric, entropy, kind)


def _from_atoms(
    mixtures: ItemMixtures, entropy: Entropy, kind: Any, panel_size: int | None
) -> Decomposition:
    """Decompose what has no closed form, block by block."""
    parts = [
        decompose(mixtures[rows].to_mixtures(), entropy, kind=kind, panel_size=panel_size)
        for rows in _blocks(mixtures)
    ]
    columns = {
        name: np.concatenate([part.as_dict()[name] for part in parts])
        for name in parts[0].as_dict()
    }
    return Decomposition(**columns, entropy=entropy, kind=parts[0].kind)


def _blocks(mixtures: ItemMixtures) -> Iterator[slice]:
    per_item = ATOMS_PER_CLASS * mixtures.n_classes**2
    height = max(BLOCK_NUMBERS // per_item, 1)
    return (slice(start, start + height) for start in range(0, len(mixtures), height))
