"""Spellings: classes that are probably the same one, written in two ways."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["likely_meant", "similar_classes"]


def similar_classes(classes: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """Return groups of classes that differ only in case, spaces or the way a number is written.

    Examples
    --------
    >>> from hocal.annotations.spellings import similar_classes
    >>> similar_classes(["happy", " Happy", "sad", "1", "1.0"])
    (('happy', ' Happy'), ('1', '1.0'))
    """
    groups: dict[Any, list[Any]] = {}
    for name in classes:
        groups.setdefault(_key(name), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def likely_meant(labels: Sequence[Any], classes: Sequence[Any]) -> str:
    """Return a sentence on a label that is probably one of the classes, spelled otherwise, or "".

    Examples
    --------
    >>> from hocal.annotations.spellings import likely_meant
    >>> likely_meant(["2.0"], ["1", "2"])
    "'2.0' is probably the class '2'. "
    """
    known = {_key(name): name for name in classes}
    for label in labels:
        if _key(label) in known:
            return f"{label!r} is probably the class {known[_key(label)]!r}. "
    return ""


def _key(name: Any) -> Any:
    """Return what two spellings of a class have in common: a number, or folded text."""
    text = " ".join(unicodedata.normalize("NFKC", str(name)).casefold().split())
    try:
        return float(text)
    except ValueError:
        return text
