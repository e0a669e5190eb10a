"""Annotations: the judgements of an export, and what was left out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocal._base import notebook
from hocal._base.errors import InputError, Setting
from hocal._base.frames import to_frame
from hocal._base.plurals import counted
from hocal._base.typing import Index
from hocal.annotations.counting import LabelCounts
from hocal.annotations.exports.registry import find_tool
from hocal.annotations.judgements import check_classes, found_classes
from hocal.annotations.tables import distinct, quote, sort_values

__all__ = ["Annotations", "say_left_out"]


@dataclass(frozen=True, repr=False)
class Annotations:
    """Judgements from an annotation tool, as `read_annotations` returns them.

    Attributes
    ----------
    tool : str
        Name of the tool, such as "label-studio".
    question : str
        The question that was read.
    questions : tuple of str
        All questions of the project that ask for a choice.
    table : dict of str to list
        One row per judgement: columns `item`, `label` and `annotator`. Items and annotators are
        text; labels are text, or whole numbers where the tool writes numbers. `count_labels` and
        `check_annotations` take it as it is, and so do pandas, polars and pyarrow.
    gold : dict of str to list
        Judgements of items whose answer was known beforehand, apart from the others, with that
        answer as a fourth column, `gold`.
    left_out : dict of str to int
        How many answers do not count, by reason: "cancelled", "rejected", "unanswered", ...

    Examples
    --------
    >>> import hocal
    >>> from hocal.annotations import Annotations
    >>> rows = {"item": ["7", "7"], "label": ["cat", "dog"], "annotator": ["Ann", "Bob"]}
    >>> gold = {"item": [], "label": [], "annotator": [], "gold": []}
    >>> found = Annotations("toloka", "animal", ("animal",), rows, gold, {"rejected": 1})
    >>> print(found)
    2 judgements of 1 item by 2 people (Toloka, question 'animal').
    Left out: 1 rejected.
    >>> found.count().counts.tolist()
    [[1, 1]]
    >>> hocal.count_labels(found.table, item="item", label="label").counts.tolist()
    [[1, 1]]
    """

    tool: str
    question: str
    questions: tuple[str, ...]
    table: dict[str, list[Any]]
    gold: dict[str, list[Any]]
    left_out: dict[str, int]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels that occur, sorted."""
        return tuple(sort_values(list(dict.fromkeys(self.table["label"]))))

    def count(self, *, classes: Sequence[Any] | None = None) -> LabelCounts:
        """Count the labels of each item, as `count_labels` does, without a dataframe library.

        Parameters
        ----------
        classes : sequence, optional
            The classes in the order of the result's columns. By default all labels found, sorted;
            two at least.

        Returns
        -------
        LabelCounts
            Items in sorted order, classes, and counts. A person who judged an item twice is an
            error, and so is a label that is no class; `count_labels` has rules for both.
        """
        _check_repeats(self.table)
        names = tuple(found_classes(self.classes)) if classes is None else check_classes(classes)
        codes = _class_numbers(self.table["label"], names)
        items, rows = distinct(np.array(self.table["item"], dtype=object))
        counts = np.zeros((len(items), len(names)), dtype=np.int64)
        np.add.at(counts, (rows, codes), 1)
        return LabelCounts(items, names, counts)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the judgements as a dataframe.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Library of the dataframe.

        Returns
        -------
        dataframe
            Columns `item`, `label` and `annotator`.
        """
        return to_frame(self.table, backend)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<Annotations: {self._lines()[0].rstrip('.')}>"

    def _repr_html_(self) -> str:
        rows = [("judgements", len(self.table["item"]))]
        rows += [("items", _distinct(self.table["item"]))]
        rows += [("people", _distinct(self.table["annotator"]))]
        rows += [("judgements of gold items", len(self.gold["item"]))]
        rows += [(f"left out: {reason}", n) for reason, n in self.left_out.items()]
        return notebook.table(f"{_title(self.tool)}, question {self.question!r}", ["number"], rows)

    def _lines(self) -> list[str]:
        n_items = counted(_distinct(self.table["item"]), "item")
        n_people = counted(_distinct(self.table["annotator"]), "person", "people")
        judged = counted(len(self.table["item"]), "judgement")
        source = f"({_title(self.tool)}, question {self.question!r})"
        lines = [f"{judged} of {n_items} by {n_people} {source}."]
        if self.gold["item"]:
            lines.append(f"Apart: {counted(len(self.gold['item']), 'judgement')} of gold items.")
        if self.left_out:
            lines.append(f"Left out: {say_left_out(self.left_out)}.")
        return lines


def say_left_out(left_out: Mapping[str, int]) -> str:
    """Say in words how many answers do not count, and why."""
    return ", ".join(f"{n:,} {reason}" for reason, n in left_out.items()) or "nothing"


def _check_repeats(table: Mapping[str, list[Any]]) -> None:
    """Refuse several answers of a person about an item."""
    pairs = Counter(zip(table["item"], table["annotator"], strict=True))
    repeated = [pair for pair, n in pairs.items() if n > 1]
    if repeated:
        item, person = repeated[0]
        raise InputError(
            "table",
            "must have one label for each item and annotator",
            value=f"several for {len(repeated):,} pairs, such as item {item!r} by {person!r}",
            remedy="Use `count_labels`, which has {0}.",
            settings=[Setting("duplicates")],
        )


def _class_numbers(labels: Sequence[Any], classes: Sequence[Any]) -> Index:
    """Return the class number of each label."""
    numbers = {name: number for number, name in enumerate(classes)}
    strangers = sort_values([label for label in dict.fromkeys(labels) if label not in numbers])
    if strangers:
        raise InputError(
            "classes",
            "must hold all labels",
            value=f"none that is {quote(strangers)}",
            remedy="Add them, or use `count_labels`, which has {0}.",
            settings=[Setting("unknown")],
        )
    return np.array([numbers[label] for label in labels], dtype=np.intp)


def _title(tool: str) -> str:
    return find_tool(tool).title


def _distinct(values: list[Any]) -> int:
    return len(set(values))
