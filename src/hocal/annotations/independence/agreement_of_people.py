"""`agreement`: how much people agree, from a table of judgements or from counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hocal._base.errors import InputError, Setting
from hocal._base.validation import check_choice, check_counts, check_flag, check_fraction
from hocal.annotations.counting import count_labels
from hocal.annotations.independence.agreement_result import Agreement, measure_agreement
from hocal.annotations.independence.annotator_table import (
    DISSENTS,
    AnnotatorEffects,
    tabulate_annotators,
)
from hocal.annotations.independence.left_out_annotators import count_votes, leave_out
from hocal.annotations.independence.vote_layout import lay_out
from hocal.annotations.independence.votes import (
    Votes,
    leave_repeats_out,
    read_votes,
    set_repeats_aside,
)
from hocal.annotations.tables import is_matrix

__all__ = ["add_annotators", "agreement", "check_order", "with_effects"]


def agreement(
    table: Any,
    *,
    item: str | None = None,
    label: str | Sequence[str] | None = None,
    annotator: str | None = None,
    count_columns: Sequence[str] | Mapping[Any, str] | None = None,
    gold: str | None = None,
    classes: Sequence[Any] | None = None,
    ordinal: bool = False,
    missing: str = "error",
    duplicates: str = "error",
    confidence: float = 0.95,
) -> Agreement:
    """Measure how much people agree, with limits that hold, and who stands out.

    Kappa and alpha are 1 - r, with r the ratio of the disagreement of two labels of one item to
    that of labels of two items. Limits of r come from bets on blocks of items in which
    within - r * between has mean zero. They hold for any number of items, taken as independent
    draws, and any numbers of labels; bootstrap and normal intervals are too narrow where items are
    few or disagreement is rare. They are about these annotators, or people handed out like them.

    Items come into blocks by their place: of a table by the order of their names, of counts by that
    of the rows. In another order the promise is the same, and ends are off by a fiftieth of the
    width of an interval, typically.

    Parameters
    ----------
    table : dataframe or array-like of shape (n_items, n_classes)
        Any table that `count_labels` takes, or counts, dense or sparse, one row per item; a row of
        zeros is an item without labels.
    item, label, annotator, count_columns, classes
        Columns and classes as in `count_labels`; to be left out for counts. With `annotator`, or
        with a column of labels for each of them, annotators are compared.
    gold : str, optional
        Column with the right label of gold questions, empty for all others; needs `annotator`.
    ordinal : bool, default=False
        Whether the classes are in order, as `classes` or the columns give them: alpha then takes
        distances in rank into account.
    missing : {"error", "drop"}, default="error"
        What to do with rows in which one of the columns has no value.
    duplicates : {"error", "keep", "drop"}, default="error"
        What to do when an annotator judged an item more than once, as in `count_labels`.
    confidence : float, default=0.95
        Of each interval on its own.

    Returns
    -------
    Agreement
        `pairs`, `kappa` and `alpha`, each an Interval, and `annotators`.

    Examples
    --------
    >>> import pandas as pd
    >>> from hocal import agreement
    >>> table = pd.DataFrame({"photo": [1, 1, 2, 2, 3, 3], "person": list("abacbc")})
    >>> table["choice"] = ["cat", "cat", "dog", "cat", "dog", "dog"]
    >>> result = agreement(table, item="photo", label="choice", annotator="person")
    >>> round(result.pairs.estimate, 3), round(result.alpha.estimate, 3)
    (0.667, 0.444)
    """
    scale: dict[str, Any] = {
        "ordinal": check_flag(ordinal, "ordinal"),
        "confidence": check_fraction(confidence, "confidence"),
    }
    check_choice(duplicates, "duplicates", ("error", "keep", "drop"))
    columns = {
        "item": item,
        "label": label,
        "annotator": annotator,
        "count_columns": count_columns,
        "gold": gold,
        "classes": classes,
    }
    if is_matrix(table):
        if any(column is not None for column in columns.values()):
            raise InputError("item", "must be left out for counts, which have no named columns")
        counts = check_counts(table, "table", minimum_total=0)
        return measure_agreement(counts, **scale)
    if item is None:
        raise InputError("item", "must name the column that tells the items apart")
    if annotator is None and (label is None or isinstance(label, str)):
        return _of_labels(table, {**columns, "missing": missing}, scale)
    return _of_votes(table, {**columns, "missing": missing}, scale, duplicates)


def _of_labels(table: Any, options: dict[str, Any], scale: dict[str, Any]) -> Agreement:
    """Measure labels of which nobody knows who gave them."""
    known = {name: value for name, value in options.items() if name not in ("gold", "annotator")}
    if options["gold"] is not None:
        rule = "must be left out without `annotator`"
        raise InputError("gold", rule, value=repr(options["gold"]))
    labels = count_labels(table, **known, empty="keep")
    ordered = options["classes"] is not None or options["label"] is None
    check_order(labels.classes, scale["ordinal"], given=ordered)
    return measure_agreement(labels.counts, **scale)


def _of_votes(
    table: Any, options: dict[str, Any], scale: dict[str, Any], duplicates: str
) -> Agreement:
    """Measure judgements of known annotators, and compare these."""
    count_columns = options.pop("count_columns")
    if count_columns is not None or options["label"] is None:
        rule = "must be left out with `annotator`"
        raise InputError("count_columns", rule, value=repr(count_columns))
    votes = leave_repeats_out(read_votes(table, **options), duplicates)
    check_order(votes.classes, scale["ordinal"], given=options["classes"] is not None)
    measured = measure_agreement(count_votes(votes), **scale)
    single, _ = set_repeats_aside(votes, np.random.default_rng(0))
    return add_annotators(measured, single)


def add_annotators(measured: Agreement, votes: Votes) -> Agreement:
    """Return an agreement with its annotators; `votes` has one judgement of each and item."""
    layout = lay_out(
        votes.item,
        votes.annotator,
        votes.label,
        n_annotators=len(votes.annotators),
        n_classes=len(votes.classes),
    )
    effects = tabulate_annotators(votes, layout, alpha=1 - measured.confidence)
    return with_effects(measured, votes, effects)


def with_effects(measured: Agreement, votes: Votes, effects: AnnotatorEffects) -> Agreement:
    """Return an agreement with known effects of annotators, and what is left without some."""
    remainder = leave_out(votes, effects.with_finding(DISSENTS), measured.confidence)
    return replace(measured, annotators=effects, without_dissenters=remainder)


def check_order(classes: tuple[Any, ...], ordinal: bool, *, given: bool) -> None:
    """Refuse an order of texts that nobody declared: it would be the alphabet's."""
    if ordinal and not given and any(isinstance(name, str) for name in classes):
        raise InputError(
            "classes",
            "must be given in their order for an ordinal scale of texts",
            remedy="Name them from one end to the other with {0}.",
            settings=[Setting("classes")],
        )
