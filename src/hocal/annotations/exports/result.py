"""Annotations: the judgements of an export, and what was left out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hocal._base import notebook
from hocal._base.frames import to_frame
from hocal.annotations.exports.registry import find_tool
from hocal.annotations.tables import sort_values

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
        n_items = _number(_distinct(self.table["item"]), "item")
        n_people = _number(_distinct(self.table["annotator"]), "person", "people")
        judged = _number(len(self.table["item"]), "judgement")
        source = f"({_title(self.tool)}, question {self.question!r})"
        lines = [f"{judged} of {n_items} by {n_people} {source}."]
        if self.gold["item"]:
            lines.append(f"Apart: {_number(len(self.gold['item']), 'judgement')} of gold items.")
        if self.left_out:
            lines.append(f"Left out: {say_left_out(self.left_out)}.")
        return lines


def say_left_out(left_out: Mapping[str, int]) -> str:
    """Say in words how many answers do not count, and why."""
    return ", ".join(f"{n:,} {reason}" for reason, n in left_out.items()) or "nothing"


def _title(tool: str) -> str:
    return find_tool(tool).title


def _distinct(values: list[Any]) -> int:
    return len(set(values))


def _number(n: int, noun: str, nouns: str = "") -> str:
    return f"{n:,} {noun if n == 1 else nouns or noun + 's'}"
