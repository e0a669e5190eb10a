"""Numbers with their nouns: one place that knows that one item is not "1 items"."""

from __future__ import annotations

from typing import Any

__all__ = ["counted"]


def counted(number: Any, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun, "1 item", "1,200 items" or, given both nouns, "2 people".

    Examples
    --------
    >>> from hocal._base.plurals import counted
    >>> counted(1, "item"), counted(1200, "item"), counted(0, "person", "people")
    ('1 item', '1,200 items', '0 people')
    """
    value = int(number)
    if value == 1:
        return f"1 {noun}"
    return f"{value:,} {nouns or noun + 's'}"
