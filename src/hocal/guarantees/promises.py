"""What must be true of the data for certificates and other limits to hold, in words."""

from __future__ import annotations

__all__ = [
    "BLIND_NUMBERS",
    "FIXED_NUMBER",
    "INDEPENDENT_LABELS",
    "KNOWN_NUMBERS",
    "OUTSIDE",
    "certificate_assumptions",
]

# What to do about an estimate outside its own limits, which its cell's labels make improbable.
OUTSIDE = (
    "It leans on other cells: trust the limits there, and label more items of the cell or make "
    "fewer, larger cells."
)

INDEPENDENT_LABELS = (
    "Labels of an item are independent given the item; no annotator judges an item twice."
)
BLIND_NUMBERS = "The number of labels of an item was not decided by looking at them."
FIXED_NUMBER = "How many items there are was fixed in advance, not by looking at these limits."
# Statistics of a stream, and their ranges, are chosen by them.
KNOWN_NUMBERS = "Which numbers of labels items can have was known before the first item came."

_ITEMS = "Items of a cell are independent draws from the population the certificate speaks about."
_PARTITION = "The partition was fixed without the labels counted here."
_SINGLES = (
    "Items with one label are like the others of their cell: "
    "they are left out where two labels are needed."
)


def certificate_assumptions(
    *, singles: bool = False, anytime: bool = False, design_effect: float = 1.0
) -> tuple[str, ...]:
    """Return what must be true of the data for a certificate to hold.

    The order in which bets look at items is no assumption: it follows from a fingerprint of the
    labels, whatever the order of the rows (docs/guarantees.md).

    Parameters
    ----------
    singles : bool, default=False
        Whether some items have one label and others more.
    anytime : bool, default=False
        Whether it holds at all numbers of items at once.
    design_effect : float, default=1.0
        How many items were taken to be worth one independent item.

    Returns
    -------
    tuple of str
        Sentences.

    Examples
    --------
    >>> from hocal.guarantees.promises import certificate_assumptions
    >>> certificate_assumptions(design_effect=2)[0]
    '2 items of a cell are worth one independent draw from the population spoken about.'
    """
    items = _ITEMS
    if design_effect > 1:
        items = (
            f"{design_effect:.3g} items of a cell are worth one independent draw "
            "from the population spoken about."
        )
    others = (INDEPENDENT_LABELS, _PARTITION, BLIND_NUMBERS)
    number = KNOWN_NUMBERS if anytime else FIXED_NUMBER
    return (items, *others, number, *(_SINGLES,) * singles)
