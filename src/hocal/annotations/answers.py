"""Answers in words, sampled from one model: half of them predict, the other half are labels."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError, Setting
from hocal._base.typing import Array, Index, IntArray, Mask
from hocal._base.validation import (
    check_choice,
    check_integer,
    check_kind,
    check_random_state,
    refuse_large,
)
from hocal.annotations.judgements import check_classes
from hocal.annotations.tables import (
    collect,
    distinct,
    number_values,
    open_table,
    pick,
    quote,
    sort_values,
)

__all__ = ["SplitAnswers", "split_answers"]

ENDS = " \t\n.,;:!?\"'`()[]*"  # what stands around an answer and is no part of it


class SplitAnswers(NamedTuple):
    """Answers to the same questions, in two halves that were drawn by chance."""

    items: NDArray[Any]  #: (n_items,) sorted
    classes: tuple[Any, ...]  #: what each column stands for
    probabilities: Array  #: (n_items, n_classes) frequencies of the first half: the predictions
    counts: IntArray  #: (n_items, n_classes) the second half: the labels
    n_left_out: int  #: answers without a class, missing, or of items with too few of them


def split_answers(
    table: Any,
    *,
    item: str,
    answer: str,
    to_class: Callable[[Any], Any] | str = "exact",
    classes: Sequence[Any] | None = None,
    n_ranks: int | None = None,
    missing: str = "error",
    unknown: str = "error",
    too_few: str = "error",
    random_state: int | np.random.Generator | None = None,
) -> SplitAnswers:
    """Split repeated answers of a model into predictions and labels.

    The same answers must not be both: frequencies explain their own answers perfectly. Half of each
    item's answers, drawn by chance, become its prediction, and the others, one more where their
    number is odd, its labels. A calibrator that is fitted to both says how undecided the model is
    (aleatoric), and what so few samples leave unknown of its distribution (epistemic).

    Parameters
    ----------
    table : dataframe
        One row per answer, as `hocal.count_labels` takes it.
    item : str
        Column that tells the items, or questions, apart.
    answer : str
        Column with the answers.
    to_class : {"exact", "normalised"} or callable, default="exact"
        What makes answers the same: their text as it is; their text without case, doubled spaces,
        and punctuation at the ends; or a function of the answer that returns its class, None for
        none. It is called once for each distinct answer. Clusters that depend on the item are best
        added to the table as a column of their own.
    classes : sequence, optional
        The classes in the order of the columns. By default all that are found, sorted.
    n_ranks : int, optional
        For open questions, whose answers have nothing in common from one item to the next: classes
        are then "answer 1", the commonest of the item's first half, and so on, ties in an order
        drawn by chance, and "another answer". The labels have no part in the ranking.
    missing : {"error", "drop"}, default="error"
        What to do with rows without an item or an answer.
    unknown : {"error", "drop"}, default="error"
        What to do with answers that have no class, or none of `classes`.
    too_few : {"error", "drop"}, default="error"
        What to do with items that have fewer than two answers left.
    random_state : int, Generator or None
        Draws the halves; with a seed they are the same for any order of the rows.

    Returns
    -------
    SplitAnswers
        `probabilities` and `counts`, as `SnapshotCalibrator.fit` takes them.

    Examples
    --------
    >>> from hocal.annotations import split_answers
    >>> log = {"question": [1, 1, 1, 1, 2, 2, 2, 2], "said": ["Yes.", "yes", "YES", "yes"] * 2}
    >>> log["said"][7] = "no"
    >>> halves = split_answers(
    ...     log, item="question", answer="said", to_class="normalised", random_state=0
    ... )
    >>> halves.classes, halves.probabilities[0].tolist(), halves.counts[0].tolist()
    (('no', 'yes'), [0.0, 1.0], [0, 2])
    """
    for name, choice in (("missing", missing), ("unknown", unknown), ("too_few", too_few)):
        check_choice(choice, name, ("error", "drop"))
    if n_ranks is not None and classes is not None:
        raise InputError("classes and n_ranks", "must not be given together")
    ranks = None if n_ranks is None else check_integer(n_ranks, "n_ranks", minimum=1)
    generator = check_random_state(random_state)
    frame, n_missing = _complete(table, item, answer, missing)
    items, rows = number_values(frame["item"])
    answers, places = number_values(frame["answer"])
    names, numbers = _to_classes(answers.tolist(), to_class, classes)
    codes = numbers[places]
    known = _check_known(codes >= 0, answers, places, unknown)
    kept = known & _enough(items, rows, known, too_few)
    chosen, rows = np.unique(rows[kept], return_inverse=True)
    votes = _halved(rows, codes[kept], generator)
    if ranks is not None:
        _check_size("n_ranks", len(chosen), ranks + 1)
        votes, names = _ranked(votes, len(names), ranks, generator)
    if len(names) < 2:
        rule = "must have answers of two classes at least, or `classes` that name them"
        raise InputError("table", rule, value=quote(names))
    n_left_out = n_missing + int((~kept).sum())
    return _count(votes, items[chosen], tuple(names), n_left_out)


class _Halves(NamedTuple):
    """Answers as numbers, sorted by item."""

    item: IntArray
    code: IntArray
    predicts: Mask  #: whether the answer is in the half that predicts


def normalise(answer: Any) -> str:
    """Return a text without case, doubled spaces, and punctuation at its ends.

    Examples
    --------
    >>> from hocal.annotations.answers import normalise
    >>> normalise("  The  Hague. ")
    'the hague'
    """
    text = unicodedata.normalize("NFKC", str(answer)).casefold()
    return " ".join(text.strip(ENDS).split())


def _complete(table: Any, item: str, answer: str, missing: str) -> tuple[nw.DataFrame[Any], int]:
    """Return the rows with an item and an answer, and the number of others."""
    check_kind(item, "item", str)
    check_kind(answer, "answer", str)
    frame = collect(pick(open_table(table), {"item": item, "answer": answer}))
    full = frame.drop_nulls(["item", "answer"])
    n_missing = len(frame) - len(full)
    if n_missing and missing == "error":
        raise InputError(
            "table",
            "must have an item and an answer in each row",
            value=f"gaps in {n_missing} of {len(frame)} rows",
            remedy="Fill them, or leave such rows out with {0}.",
            settings=[Setting("missing", "drop")],
        )
    if not len(full):
        raise InputError("table", "must have at least one answer", value="none")
    return full, n_missing


def _to_classes(
    answers: list[Any], to_class: Callable[[Any], Any] | str, classes: Sequence[Any] | None
) -> tuple[Sequence[Any], IntArray]:
    """Return the classes, and the number of each distinct answer's, -1 for none."""
    if isinstance(to_class, str):
        check_choice(to_class, "to_class", ("exact", "normalised"))
        found = answers if to_class == "exact" else [normalise(text) for text in answers]
    elif callable(to_class):
        found = [_call(to_class, text) for text in answers]
    else:
        rule = 'must be "exact", "normalised" or a function of an answer'
        raise InputError("to_class", rule, value=to_class)
    try:
        occurring = [name for name in dict.fromkeys(found) if name is not None]
    except TypeError as error:
        rule = "must return text, numbers or None"
        raise InputError("to_class", rule, value=quote(found)) from error
    names = check_classes(classes) if classes is not None else sort_values(occurring)
    numbers = {name: number for number, name in enumerate(names)}
    return names, np.array([numbers.get(name, -1) for name in found], dtype=np.int64)


def _call(to_class: Callable[[Any], Any], answer: Any) -> Any:
    """Return what a user's function makes of an answer; say of which one if it fails."""
    try:
        return to_class(answer)
    except Exception as error:
        rule = "must return a class for each answer, or None"
        raise InputError("to_class", rule, value=f"{error!r}", where=f"for {answer!r}") from error


def _check_known(known: Mask, answers: NDArray[Any], places: Index, unknown: str) -> Mask:
    """Return which rows have a class; others are refused unless that was asked for."""
    if known.all() or unknown == "drop":
        return known
    strangers = distinct(places[~known])[0]
    raise InputError(
        "answer",
        "must have a class in each row",
        value=f"none for {quote(answers[strangers].tolist())}",
        remedy="Let {0} map them, or leave such answers out with {1}.",
        settings=[Setting("to_class"), Setting("unknown", "drop")],
    )


def _enough(items: NDArray[Any], rows: Index, known: Mask, too_few: str) -> Mask:
    """Return which rows are of items with two answers; others are refused unless asked for."""
    totals = np.bincount(rows[known], minlength=len(items))
    enough = totals > 1
    if not enough.any() or (too_few == "error" and not enough.all()):
        few = items[~enough].tolist()
        raise InputError(
            "table",
            "must have two answers to each item at least, one for each half",
            value=f"fewer for {len(few)} of {len(items)}: {quote(few)}",
            remedy="Ask again, or leave such items out with {0}.",
            settings=[Setting("too_few", "drop")],
        )
    return np.asarray(enough[rows])


def _halved(rows: Index, codes: IntArray, generator: np.random.Generator) -> _Halves:
    """Draw the half of each item's answers that predicts, whatever the order of the rows."""
    order = np.lexsort((codes, rows))
    item = rows[order].astype(np.int64)
    code = codes[order]
    shuffled = np.lexsort((generator.random(len(item)), item))
    totals = np.bincount(item)
    starts = np.cumsum(totals) - totals
    place = np.arange(len(item)) - starts[item]
    return _Halves(item, code[shuffled], place < totals[item] // 2)


def _ranked(
    votes: _Halves, n_codes: int, n_ranks: int, generator: np.random.Generator
) -> tuple[_Halves, list[str]]:
    """Replace classes by their place among those of the item's first half."""
    keys = votes.item * n_codes + votes.code
    pairs, times = np.unique(keys[votes.predicts], return_counts=True)
    item = pairs // n_codes
    order = np.lexsort((generator.random(len(pairs)), -times, item))
    n_pairs = np.bincount(item)
    starts = np.cumsum(n_pairs) - n_pairs
    rank = np.empty(len(pairs), dtype=np.int64)
    rank[order] = np.arange(len(pairs)) - starts[item[order]]
    where = np.searchsorted(pairs, keys).clip(max=len(pairs) - 1)
    code = np.where(pairs[where] == keys, rank[where], n_ranks).clip(max=n_ranks)
    names = [f"answer {number}" for number in range(1, n_ranks + 1)]
    return votes._replace(code=code), [*names, "another answer"]


def _count(
    votes: _Halves, items: NDArray[Any], names: tuple[Any, ...], n_left_out: int
) -> SplitAnswers:
    shape = (len(items), len(names))
    _check_size("classes", *shape)
    keys = votes.item * len(names) + votes.code
    half, labels = (
        np.bincount(keys[chosen], minlength=shape[0] * shape[1]).reshape(shape)
        for chosen in (votes.predicts, ~votes.predicts)
    )
    frequencies = half / half.sum(axis=1, keepdims=True)
    return SplitAnswers(items, names, frequencies, labels.astype(np.int64), n_left_out)


def _check_size(name: str, n_items: int, n_classes: int) -> None:
    """Refuse more classes than fit in memory."""
    what = f"{n_items} items with {n_classes} classes"
    refuse_large(name, n_items * n_classes, what, "Map answers to fewer classes, or rank fewer.")
