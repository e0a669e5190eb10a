"""Learning with disagreements: labels of named people on language tasks, one row each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array
from hocal._base.validation import check_choice
from hocal.datasets.fetching import Folder, obtain
from hocal.datasets.judged import JudgedItems, match, read_table, tally
from hocal.datasets.sources import SOURCES

__all__ = ["LEWIDI_CLASSES", "load_lewidi"]

# Classes in their order; CSC has one that nobody used because its predictions have it.
LEWIDI_CLASSES = {
    "MP": ("0", "1"),
    "CSC": ("0", "1", "2", "3", "4", "5", "6"),
    "HS-Brexit": ("0", "1"),
    "ConvAbuse": ("-3", "-2", "-1", "0", "1"),
    "ArMIS": ("0", "1"),
}
EDITION = {"MP": 2025, "CSC": 2025, "HS-Brexit": 2023, "ConvAbuse": 2023, "ArMIS": 2023}
SPLITS = {2025: ("dev", "test"), 2023: ("train", "dev", "test")}
COLUMNS = ("dataset", "split", "item", "annotator", "label")


def load_lewidi(
    name: str = "MP", split: str = "test", *, data_home: Folder | None = None
) -> JudgedItems:
    """Load a task of Learning With Disagreements 2025 or 2023, with every annotator's label.

    Parameters
    ----------
    name : {"MP", "CSC", "HS-Brexit", "ConvAbuse", "ArMIS"}
        Irony in short conversations (2 to 19 labels, 506 people); sarcasm, rated 1 to 6 (4 to 6
        labels), both of 2025; hate speech about Brexit, abuse of conversational agents (-3 to 1)
        and misogyny in Arabic, of 2023.
    split : {"test", "dev", "train"}
        Part of the task; those of 2025 have no labels for "train" here.
    data_home : path, optional
        The only folder to read from; see `fetch` for the default.

    Returns
    -------
    JudgedItems
        For the test items of MP and CSC `probabilities` holds the soft predictions of one RoBERTa
        network, in the order of the source; it is None for all others. The files cannot be
        downloaded; without them the error says how to make them.

    Notes
    -----
    Predictions of CSC have a class 0, which nobody uses.

    Examples
    --------
    >>> from hocal.datasets import load_lewidi
    >>> load_lewidi("CSC")  # doctest: +SKIP
    JudgedItems(704 items, 7 classes, 3224 labels, 860 people, 1 model)
    """
    check_choice(name, "name", tuple(LEWIDI_CLASSES))
    edition, classes = EDITION[name], LEWIDI_CLASSES[name]
    check_choice(split, "split", SPLITS[edition])
    path = _obtain(f"lewidi{edition}-labels", data_home)
    table = read_table(path, COLUMNS)
    own = (table["dataset"] == name) & (table["split"] == split)
    named, said = table["item"][own], table["label"][own]
    items, soft = _predictions(name, split, data_home)
    if items is None:
        items = named[np.sort(np.unique(named, return_index=True)[1])]
    item = match(named, items.tolist(), "item", path)
    label = match(said, classes, "label", path)
    return JudgedItems(
        counts=tally(item, label, len(items), len(classes)),
        classes=classes,
        source=SOURCES["lewidi"],
        items=items,
        annotator=table["annotator"][own],
        item=item,
        label=label,
        probabilities=None if soft is None else soft[:, None],
        models=() if soft is None else ("roberta",),
    )


def _predictions(
    name: str, split: str, data_home: Folder | None
) -> tuple[NDArray[np.str_] | None, Array | None]:
    """Return names of items and soft predictions for them, where there are any."""
    if (EDITION[name], split) != (2025, "test"):
        return None, None
    classes = LEWIDI_CLASSES[name]
    table = read_table(_obtain(f"lewidi2025-{name}-test-roberta", data_home), ("item", *classes))
    return table["item"], np.column_stack([table[each].astype(np.float64) for each in classes])


def _obtain(stem: str, data_home: Folder | None) -> Path:
    """Return where a file of the source is."""
    files = {file.path: file for file in SOURCES["lewidi"].files}
    return obtain(files[f"lewidi/{stem}.csv.gz"], data_home=data_home)
