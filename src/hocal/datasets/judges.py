"""Items judged by people and by language models, from the alternative annotator test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array
from hocal._base.validation import check_choice
from hocal.datasets.fetching import Folder, obtain
from hocal.datasets.judged import JudgedItems, match, read_table, tally
from hocal.datasets.sources import SOURCES

__all__ = ["JUDGED_TASKS", "load_judges"]

JUDGED_TASKS = ("summeval", "framing", "cebab_aspects", "lesion", "mtbench")
COLUMNS = ("dataset", "kind", "annotator", "item", "label")


def load_judges(name: str = "summeval", *, data_home: Folder | None = None) -> JudgedItems:
    """Load items that people and four to six language models judged in the same classes.

    Parameters
    ----------
    name : {"summeval", "framing", "cebab_aspects", "lesion", "mtbench"}
        Quality of summaries, 1 to 5, by three experts; whether news frame a problem in a given way,
        by three of four people; opinions on aspects of restaurants by four of ten people; a sign on
        photographs of skin, 0 to 6, by three to six students; which of two answers is better, or a
        tie, by two or three people.
    data_home : path, optional
        The only folder to read from; see `fetch` for the default.

    Returns
    -------
    JudgedItems
        People's labels as counts and as a table; each model's one answer per item as a vote, so
        that the mean of `probabilities` over the models is the share of their votes. Items and
        classes in alphabetical order. The file cannot be downloaded; without it the error says how
        to make it.

    Notes
    -----
    Where the same few people judged everything (summeval, lesion) their labels are those of a fixed
    panel, not of people drawn anew for every item.

    Examples
    --------
    >>> from hocal.datasets import load_judges
    >>> load_judges("summeval")  # doctest: +SKIP
    JudgedItems(6400 items, 5 classes, 19200 labels, 3 people, 6 models)
    """
    check_choice(name, "name", JUDGED_TASKS)
    source = SOURCES["judges"]
    path = obtain(source.files[0], data_home=data_home)
    table = read_table(path, COLUMNS)
    own = table["dataset"] == name
    rows = {column: table[column][own] for column in COLUMNS}
    items, item = np.unique(rows["item"], return_inverse=True)
    classes, label = np.unique(rows["label"], return_inverse=True)
    people = rows["kind"] == "human"
    models = tuple(map(str, np.unique(rows["annotator"][~people])))
    votes = match(rows["annotator"][~people], models, "annotator", path)
    shape = (len(items), len(models), len(classes))
    said = _votes(item[~people], votes, label[~people], shape)
    return JudgedItems(
        counts=tally(item[people], label[people], len(items), len(classes)),
        classes=tuple(map(str, classes)),
        source=source,
        items=items,
        annotator=rows["annotator"][people],
        item=item[people],
        label=label[people],
        probabilities=said,
        models=models,
    )


def _votes(
    item: NDArray[np.int64],
    model: NDArray[np.int64],
    label: NDArray[np.int64],
    shape: tuple[int, int, int],
) -> Array:
    """Return 1 for the class that a model chose for an item, else 0."""
    votes = np.zeros(shape)
    votes[item, model, label] = 1
    return votes
