"""The summary behind a report on labels alone: a typed dict of plain values."""

from __future__ import annotations

from typing import Literal, TypedDict

from hocal.report.schema import Confusion, Distribution, Step

__all__ = [
    "AgreementPart",
    "AnnotatorRow",
    "ClassRow",
    "Forecast",
    "ForecastRow",
    "LabelData",
    "LabelItem",
    "LabelSummary",
    "Limits",
    "People",
    "Verdict",
]

#: people gave different labels; three or more gave the same; fewer did, or one, or none
Verdict = Literal["disputed", "agreed", "open"]


class Limits(TypedDict):
    """A number with its limits; None where nothing can be said."""

    estimate: float | None
    lower: float
    upper: float


class LabelData(TypedDict):
    """What was looked at."""

    n_items: int
    n_labels: int
    n_classes: int
    classes: list[str]
    fewest_labels: int  #: of an item
    most_labels: int
    n_single: int  #: items with one label or none
    n_disputed: int
    n_agreed: int
    n_open: int


class AgreementPart(TypedDict):
    """How much people agree; limits hold with the confidence, each on its own."""

    confidence: float
    pairs: Limits  #: share of pairs of labels of an item that are the same
    kappa: Limits  #: Fleiss'
    alpha: Limits  #: Krippendorff's
    ordinal: bool


class ClassRow(TypedDict):
    """One class."""

    name: str
    share: float  #: of the labels
    again: float | None  #: who hears one person say it hears it from another with this probability


class AnnotatorRow(TypedDict):
    """One annotator, as `hocal.agreement` describes them."""

    annotator: str
    n_items: int
    n_compared: int  #: items that others judged too
    excess: float | None  #: disagreement with others on the same items beyond what is expected
    excess_lower: float | None
    excess_upper: float | None
    shrunk: float | None
    finding: str  #: "dissents", "class use", "agrees", joined by commas, or empty
    overused: str | None
    overuse: float | None
    n_gold: int
    gold: float | None  #: share of gold questions that they got right


class People(TypedDict):
    """Who judged."""

    n_annotators: int
    panel: bool  #: the same people judged all items, or nearly
    n_found: int  #: annotators of whom something was found
    annotators: list[AnnotatorRow]  #: the worst dissent first
    dissenters: list[str]
    dissenters_share: float  #: of the judgements
    gone: Limits  #: share of all disagreement that would be gone without them


class LabelItem(TypedDict):
    """One item."""

    item: str
    row: int
    n_labels: int
    labels: list[tuple[str, int]]  #: up to three classes with their labels, the most frequent first
    mean: list[tuple[str, float]]  #: up to three classes with their expected share
    aleatoric: float
    lower: float  #: credible limits
    upper: float
    majority: str
    majority_probability: float
    verdict: Verdict


class ForecastRow(TypedDict):
    """What a budget would bring."""

    budget: int  #: labels
    per_item: float
    chosen: float  #: expected squared error of the label distribution if bought where it helps most
    evenly: float  #: the same if spread evenly


class Forecast(TypedDict):
    """What more labels would bring."""

    n_items: int  #: items looked at, at most some thousands, drawn at random
    now: float  #: expected squared error of the label distribution
    rows: list[ForecastRow]


class LabelSummary(TypedDict):
    """Everything that a report on labels says."""

    format: str
    hocal: str  #: version
    title: str
    unit: str  #: of aleatoric uncertainty
    data: LabelData
    agreement: AgreementPart
    confusions: list[Confusion]  #: pairs of classes that are given to the same items
    classes: list[ClassRow]
    people: People | None  #: None where nobody knows who judged
    aleatoric: Distribution
    aleatoric_steps: list[Step]
    items: list[LabelItem]  #: disputed ones first, by aleatoric uncertainty
    forecast: Forecast | None
