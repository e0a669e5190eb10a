"""The items of a report: the most uncertain, and what the model and people said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hocal._base.typing import Array, Index, IntArray
from hocal.report.contrast import pick_contrast
from hocal.report.item_values import CloserLook, look_closer
from hocal.report.schema import (
    Agreeing,
    Card,
    Contrast,
    Gallery,
    Image,
    ItemParts,
    ItemRow,
    Listing,
    Standing,
    Text,
)
from hocal.report.study import Study, number
from hocal.uncertainty.decomposition import Decomposition

__all__ = [
    "ChosenItems",
    "describe_contrast",
    "describe_galleries",
    "describe_items",
    "least_listed",
]

SHOWN_CLASSES = 3  # of an item's labels; more do not fit in a row
STANDINGS: tuple[Standing, ...] = ("epistemic", "aleatoric")
LISTINGS: tuple[Listing, ...] = ("epistemic", "aleatoric", "gain")
# Share of the largest possible uncertainty below which an item has next to nothing: of ten classes
# .12 nats, which one person in forty who says otherwise makes.
NEXT_TO_NOTHING = 0.05
# Candidates for each that is listed: pairs of equal labels drop out as agreement, and exact gains
# order items a little otherwise than the approximation that found them.
SPARE: dict[Listing, int] = {"epistemic": 1, "aleatoric": 3, "gain": 3}
# Candidates times classes: with a thousand classes a look at one takes nearly a tenth of a second.
CANDIDATE_NUMBERS = 250_000
FEWEST_CANDIDATES = 100  # of a short list as well, looked at in a tenth of a second


@dataclass(frozen=True, eq=False)
class ChosenItems:
    """The items of a report that have the most of something, and a closer look at them."""

    study: Study
    lists: Mapping[Listing, Index]  #: rows, those with the most first
    n_listed: Mapping[Listing, int]  #: items that could be listed
    contrast: Mapping[Agreeing, int]  #: rows of items that tell the two kinds of doubt apart
    rows: Index  #: all that were looked at, rising
    look: CloserLook  #: at these

    @classmethod
    def of(cls, study: Study, n_wanted: int) -> ChosenItems:
        """Choose items by what the model does not know, people's disagreement, a label's gain."""
        found = {listing: _candidates(study, listing, n_wanted) for listing in LISTINGS}
        contrast = pick_contrast(study)
        apart = np.array(list(contrast.values()), dtype=np.intp)
        rows = np.unique(np.concatenate([*found.values(), apart]))
        confidence = study.certificate.confidence
        look = look_closer(study.calibrator, study.given.of, study.counts, rows, confidence)
        least = least_listed(len(study.classes))
        n_listed = {name: int(study.values.eligible(name, least).sum()) for name in LISTINGS}
        chosen = cls(study, found, n_listed, contrast, rows, look)
        lists = {
            "epistemic": found["epistemic"],
            "aleatoric": found["aleatoric"][~chosen.agreed(found["aleatoric"])],
            "gain": chosen._by_gain(found["gain"]),
        }
        kept = {name: lists[name][:n_wanted] for name in LISTINGS}
        return cls(study, kept, n_listed, contrast, rows, look)

    def agreed(self, rows: Index) -> NDArray[np.bool_]:
        """Tell which items people agree on: three equal labels, or two that may well mean it.

        They do where the posterior leaves it open that there is next to no disagreement.
        """
        values = self.study.values
        may_agree = self.look.lower[self._place(rows)] < least_listed(len(self.study.classes))
        return np.asarray(values.agreed[rows] | (values.paired[rows] & may_agree))

    def looked(self, rows: Index) -> CloserLook:
        """Return what was seen of some of the items."""
        place = self._place(rows)
        return CloserLook(*(column[place] for column in self.look))

    def _place(self, rows: Index) -> Index:
        return np.searchsorted(self.rows, rows)

    def _by_gain(self, rows: Index) -> Index:
        gain = self.look.gain[self._place(rows)]
        order = np.argsort(-gain, kind="stable")
        return np.asarray(rows[order][gain[order] > 0])


def least_listed(n_classes: int) -> float:
    """Return the uncertainty in nats below which an item is not listed for it."""
    return float(NEXT_TO_NOTHING * np.log(n_classes))


def describe_items(chosen: ChosenItems, names: Any, n_listed: int) -> list[ItemRow]:
    """Return at most `n_listed` items of each list, each of them once."""
    lists = [chosen.lists[listing][:n_listed] for listing in LISTINGS]
    rows = list(dict.fromkeys(np.concatenate(lists).tolist()))
    return _rows(chosen, np.array(rows, dtype=np.intp), names, n_listed)


def describe_galleries(
    chosen: ChosenItems,
    names: Any,
    n_gallery: int,
    image: Callable[[int], Image | None],
    text: Callable[[int], Text | None],
) -> list[Gallery]:
    """Return one gallery of the most epistemic items and one of the most aleatoric ones."""
    galleries: list[Gallery] = []
    for standing in STANDINGS:
        rows = _rows(chosen, chosen.lists[standing][:n_gallery], names, n_gallery)
        cards: list[Card] = [
            {"item": row, "image": image(row["row"]), "text": text(row["row"])} for row in rows
        ]
        galleries.append(
            {
                "standing": standing,
                "least": number(least_listed(len(chosen.study.classes))),
                "n_items": chosen.n_listed[standing],
                "cards": cards,
            }
        )
    return galleries


def describe_contrast(
    chosen: ChosenItems,
    names: Any,
    image: Callable[[int], Image | None],
    text: Callable[[int], Text | None],
) -> list[Contrast]:
    """Return an item on which people agree and the model does not, and one the other way round."""
    rows = _rows(chosen, np.array(list(chosen.contrast.values()), dtype=np.intp), names, 0)
    cards: list[Card] = [
        {"item": row, "image": image(row["row"]), "text": text(row["row"])} for row in rows
    ]
    return [{"agree": who, "card": card} for who, card in zip(chosen.contrast, cards, strict=True)]


def _candidates(study: Study, listing: Listing, n_wanted: int) -> Index:
    """Return the items with the most; of equals the least certain predictions come first."""
    least = least_listed(len(study.classes))
    rows = np.flatnonzero(study.values.eligible(listing, least))
    every = study.values.score(listing)
    n_candidates = SPARE[listing] * n_wanted
    if listing != "epistemic" and n_wanted:
        n_candidates = max(n_candidates, FEWEST_CANDIDATES)
        n_affordable = CANDIDATE_NUMBERS // len(study.classes)
        n_candidates = min(n_candidates, max(n_wanted, n_affordable))
    n_kept = min(n_candidates, len(rows))
    if not n_kept:
        return np.empty(0, dtype=np.intp)
    lowest = np.partition(every[rows], len(rows) - n_kept)[len(rows) - n_kept]
    rows = rows[every[rows] >= lowest]  # with all equals of the last
    entropy = special.entr(study.probabilities[rows]).sum(axis=1)
    order = np.lexsort([-entropy, -every[rows]])
    return np.asarray(rows[order[:n_kept]])


def _rows(chosen: ChosenItems, rows: Index, names: Any, n_listed: int) -> list[ItemRow]:
    if not len(rows):
        return []
    study = chosen.study
    calibrated = study.calibrator.predict_proba(**study.given.of(rows))
    labels = study.labels(rows)
    looks = zip(*chosen.looked(rows), strict=True)
    agreed = chosen.agreed(rows)
    listed = {name: set(chosen.lists[name][:n_listed].tolist()) for name in LISTINGS}
    return [
        _row(study, int(row), names, mean, counts)
        | _closely(*look)
        | {
            "agreed": bool(same),
            "listed_as": [name for name in LISTINGS if int(row) in listed[name]],
        }
        for row, mean, counts, look, same in zip(
            rows, calibrated, labels, looks, agreed, strict=True
        )
    ]


def _row(study: Study, row: int, names: Any, calibrated: Array, counts: IntArray) -> Any:
    p = study.probabilities[row]
    cell = int(study.cells[row])
    top = int(p.argmax())
    n_labels = int(counts.sum())
    labels = [(name, int(n)) for name, n in _largest(study, counts)]
    values = study.values
    return {
        "item": str(row if names is None else names[row]),
        "row": row,
        "cell": cell,
        "cell_name": study.facts.names[cell],
        "prediction": study.classes[top],
        "probability": number(p[top]),
        "calibrated": [(name, number(share)) for name, share in _largest(study, calibrated)],
        "labels": labels if n_labels else None,
        "n_labels": n_labels,
        **_parts(values.with_labels, row),
        "alone": _parts(values.alone, row),
    }


def _closely(lower: float, upper: float, gain: float) -> dict[str, Any]:
    return {"aleatoric_interval": [number(lower), number(upper)], "gain": number(gain)}


def _parts(parts: Decomposition, row: int) -> ItemParts:
    return {
        "predictive": number(parts.predictive[row]),
        "aleatoric": number(parts.aleatoric[row]),
        "epistemic": number(parts.epistemic[row]),
    }


def _largest(study: Study, values: NDArray[Any]) -> list[tuple[str, float]]:
    """Return up to three classes with their positive values, the largest first."""
    order = np.argsort(-values, kind="stable")[:SHOWN_CLASSES]
    return [(study.classes[j], float(values[j])) for j in order if values[j] > 0]
