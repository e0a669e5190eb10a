"""Compute the summary that every format of a report on labels renders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

import hocal
from hocal._base.interval import Interval
from hocal._base.validation import check_flag, check_integer
from hocal.annotations.independence.annotator_table import AnnotatorEffects
from hocal.calibration.labels_alone import label_prior
from hocal.decisions.label_gains import exact_labels, expected_gains
from hocal.decisions.purchases import buy_labels, check_purchase
from hocal.report.confusions import list_confusions, pair_rates
from hocal.report.label_schema import (
    AgreementPart,
    AnnotatorRow,
    ClassRow,
    Forecast,
    ForecastRow,
    LabelData,
    LabelItem,
    LabelSummary,
    Limits,
    People,
)
from hocal.report.label_study import VERDICTS, LabelStudy
from hocal.report.parts import spread, steps
from hocal.report.study import number
from hocal.uncertainty.likelihood import pair_with_counts

__all__ = ["LABELS_FORMAT", "summarise_labels", "summarise_study"]

LABELS_FORMAT = "hocal-labels/1"
N_CONFUSIONS = 10  # pairs of classes: more do not stand out
N_CLASSES = 100  # classes with a row of their own, the most frequent ones
N_ANNOTATORS = 500  # annotators in the summary, the worst dissent first; a file holds all
SHOWN_CLASSES = 3  # of an item: more do not fit in a row
PANEL_SHARE = 0.9  # of the items that each of a panel judged, at least
PER_ITEM = (0.1, 0.25, 0.5, 1.0, 2.0)  # labels per item of the forecast
FORECAST_ITEMS = 2_000  # that the forecast looks at: seconds


def summarise_labels(
    table: Any,
    *,
    item: str | None = None,
    label: str | Sequence[str] | None = None,
    annotator: str | None = None,
    count_columns: Sequence[str] | Mapping[Any, str] | None = None,
    gold: str | None = None,
    classes: Sequence[Any] | None = None,
    items: Any = None,
    ordinal: bool = False,
    missing: str = "error",
    duplicates: str = "error",
    title: str = "Labels",
    confidence: float = 0.95,
    n_listed: int = 1_000,
    forecast: bool = True,
) -> LabelSummary:
    """Say how much people agree, about what, who stands out and which items are ambiguous.

    No model is needed. Each item is described by its posterior given its own labels, with what the
    labels of all items have in common as prior (`hocal.calibration.label_posterior`).

    Parameters
    ----------
    table : dataframe or array-like of shape (n_items, n_classes)
        Any table that `hocal.count_labels` takes, or counts, dense or sparse, one row per item.
    item, label, annotator, count_columns
        Columns of the table as in `hocal.count_labels`; to be left out for counts.
    gold : str, optional
        Column with the right label of gold questions, empty for all others; needs `annotator`.
    classes : sequence, optional
        The classes in order; of counts, the names of the columns.
    items : sequence of n_items names, optional
        Goes with counts; by default the row numbers.
    ordinal : bool, default=False
        Whether the order of classes is a scale. Krippendorff's alpha and the uncertainty of items
        then take distances into account.
    missing, duplicates
        As in `hocal.agreement`.
    title : str
        Title of the report.
    confidence : float, default=0.95
        Of each interval on its own.
    n_listed : int, default=1000
        Items that are listed, disputed ones first; `label_posterior` has all.
    forecast : bool, default=True
        Whether to forecast what more labels would bring, which takes seconds.

    Returns
    -------
    LabelSummary
        A dict, which `Report` renders; its keys are documented in `hocal.report.LabelSummary`.

    Examples
    --------
    >>> from hocal.report import Report, summarise_labels
    >>> counts = [[3, 0], [2, 1], [0, 3], [0, 3]] * 25
    >>> summary = summarise_labels(counts, classes=["cat", "dog"], forecast=False)
    >>> round(summary["agreement"]["pairs"]["estimate"], 2), summary["items"][0]["verdict"]
    (0.83, 'disputed')
    >>> Report(summary).markdown().splitlines()[0]
    '# Labels'
    """
    check_flag(forecast, "forecast")
    study = LabelStudy.of(
        table,
        item=item,
        label=label,
        annotator=annotator,
        count_columns=count_columns,
        gold=gold,
        classes=classes,
        items=items,
        ordinal=ordinal,
        missing=missing,
        duplicates=duplicates,
        confidence=confidence,
        progress=lambda *_: None,
    )
    return summarise_study(study, title=title, n_listed=n_listed, forecast=forecast)


def summarise_study(
    study: LabelStudy, *, title: str, n_listed: int, forecast: bool
) -> LabelSummary:
    """Return the summary of a study of labels."""
    listed = study.order()[: check_integer(n_listed, "n_listed", minimum=0)]
    verdicts = study.verdicts()
    aleatoric = study.posterior.aleatoric
    rates = pair_rates(study.counts, np.ones(len(study.totals), dtype=np.int64))
    return {
        "format": LABELS_FORMAT,
        "hocal": hocal.__version__,
        "title": str(title),
        "unit": "steps of the scale" if study.agreement.ordinal else "nats",
        "data": _data(study, np.bincount(verdicts, minlength=len(VERDICTS)).tolist()),
        "agreement": _agreement(study),
        "confusions": list_confusions(rates, study.classes, N_CONFUSIONS),
        "classes": _classes(study, rates),
        "people": _people(study),
        "aleatoric": spread(aleatoric),
        "aleatoric_steps": steps(aleatoric),
        "items": [_item(study, int(row), int(verdicts[row])) for row in listed],
        "forecast": _forecast(study) if forecast else None,
    }


def _data(study: LabelStudy, numbers: list[int]) -> LabelData:
    totals = study.totals
    disputed, still_open, agreed = numbers
    return {
        "n_items": len(totals),
        "n_labels": int(totals.sum()),
        "n_classes": len(study.classes),
        "classes": list(study.classes),
        "fewest_labels": int(totals.min()),
        "most_labels": int(totals.max()),
        "n_single": int((totals < 2).sum()),
        "n_disputed": disputed,
        "n_agreed": agreed,
        "n_open": still_open,
    }


def _limits(interval: Interval) -> Limits:
    return {
        "estimate": _known(interval.estimate),
        "lower": number(interval.lower),
        "upper": number(interval.upper),
    }


def _known(value: Any) -> float | None:
    return None if np.isnan(value) else number(value)


def _agreement(study: LabelStudy) -> AgreementPart:
    found = study.agreement
    return {
        "confidence": found.confidence,
        "pairs": _limits(found.pairs),
        "kappa": _limits(found.kappa),
        "alpha": _limits(found.alpha),
        "ordinal": found.ordinal,
    }


def _classes(study: LabelStudy, rates: sparse.csr_array) -> list[ClassRow]:
    """Return the classes, the most frequent first, and how often a second person repeats each."""
    labels = np.asarray(study.counts.sum(axis=0)).reshape(-1)
    said = np.asarray(rates.sum(axis=1)).reshape(-1)
    again = np.divide(rates.diagonal(), said, out=np.full(len(said), np.nan), where=said > 0)
    frequent = np.argsort(-labels, kind="stable")[:N_CLASSES]
    return [
        {
            "name": study.classes[j],
            "share": number(labels[j] / labels.sum()),
            "again": _known(again[j]),
        }
        for j in frequent
    ]


def _people(study: LabelStudy) -> People | None:
    effects = study.agreement.annotators
    remainder = study.agreement.without_dissenters
    if effects is None or remainder is None:
        return None
    n_annotators = len(effects.annotator)
    share = float(effects.n_items.min()) / len(study.items)
    n_shown = min(n_annotators, N_ANNOTATORS)
    return {
        "n_annotators": n_annotators,
        "panel": n_annotators > 1 and share >= PANEL_SHARE,
        "n_found": sum(bool(finding) for finding in effects.finding),
        "annotators": [_annotator(effects, i) for i in range(n_shown)],
        "dissenters": list(map(str, remainder.annotators)),
        "dissenters_share": number(remainder.judgements),
        "gone": _limits(remainder.gone),
    }


def _annotator(effects: AnnotatorEffects, i: int) -> AnnotatorRow:
    overused = effects.overused[i]
    return {
        "annotator": str(effects.annotator[i]),
        "n_items": int(effects.n_items[i]),
        "n_compared": int(effects.n_compared[i]),
        "excess": _known(effects.excess[i]),
        "excess_lower": _known(effects.excess_lower[i]),
        "excess_upper": _known(effects.excess_upper[i]),
        "shrunk": _known(effects.shrunk[i]),
        "finding": effects.finding[i],
        "overused": None if overused is None else str(overused),
        "overuse": _known(effects.overuse[i]),
        "n_gold": int(effects.n_gold[i]),
        "gold": _known(effects.gold[i]),
    }


def _item(study: LabelStudy, row: int, verdict: int) -> LabelItem:
    found = study.posterior
    counts = study.labels_of(row)
    return {
        "item": str(study.items[row]),
        "row": row,
        "n_labels": int(counts.sum()),
        "labels": [(name, int(value)) for name, value in _largest(study, counts)],
        "mean": [(name, number(value)) for name, value in _largest(study, found.mean[row])],
        "aleatoric": number(found.aleatoric[row]),
        "lower": number(found.lower[row]),
        "upper": number(found.upper[row]),
        "majority": study.classes[found.majority[row]],
        "majority_probability": number(found.majority_probability[row]),
        "verdict": VERDICTS[verdict],
    }


def _largest(study: LabelStudy, values: Any) -> list[tuple[str, Any]]:
    order = np.argsort(-values, kind="stable")[:SHOWN_CLASSES]
    return [(study.classes[j], values[j]) for j in order if values[j] > 0]


def _forecast(study: LabelStudy) -> Forecast:
    """Forecast what labels would bring, on a sample of the items if there are many."""
    n_items = len(study.items)
    chosen = np.arange(n_items)
    if n_items > FORECAST_ITEMS:
        generator = np.random.default_rng(0)
        chosen = np.sort(generator.choice(n_items, FORECAST_ITEMS, replace=False))
    prior = label_prior(study.counts)[chosen]
    states = pair_with_counts(prior.index, study.counts[chosen])
    objective = "distribution"
    budgets = [max(round(share * len(chosen)), 1) for share in PER_ITEM]
    most = check_purchase(len(chosen), max(budgets), objective)
    n_exact = exact_labels(prior, len(states.mixture), objective, int(most.max()))
    gains = expected_gains(prior, states, objective, int(most.max()), n_exact)
    rows: list[ForecastRow] = []
    now = float(gains.uncertainty[states.inverse].mean())
    for budget, per_item in zip(budgets, PER_ITEM, strict=True):
        bought = buy_labels(gains, states.inverse, budget=budget, objective=objective, limit=most)
        rows.append(
            {
                "budget": max(round(per_item * n_items), 1),
                "per_item": per_item,
                "chosen": number(now - bought.expected_gain),
                "evenly": number(now - bought.uniform_gain),
            }
        )
    return {"n_items": len(chosen), "now": number(now), "rows": rows}
