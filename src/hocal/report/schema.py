"""The summary behind a report: a typed dict of plain values, which every format renders."""

from __future__ import annotations

from typing import Literal, TypedDict

__all__ = [
    "Agreeing",
    "BudgetRow",
    "Calibration",
    "Card",
    "CellRow",
    "CertificatePart",
    "Check",
    "CheckFinding",
    "Confusion",
    "Contrast",
    "Data",
    "Distribution",
    "Gains",
    "Gallery",
    "Headroom",
    "Image",
    "ItemParts",
    "ItemRow",
    "Leaders",
    "Limited",
    "Listing",
    "MapPoint",
    "Parts",
    "Planning",
    "PredictedClass",
    "Standing",
    "Step",
    "Summary",
    "Text",
    "Trust",
    "WidthRow",
]

Standing = Literal["aleatoric", "epistemic"]
Agreeing = Literal["people", "model"]
Listing = Literal["epistemic", "aleatoric", "gain"]  #: what items are listed for
Interval = list[float]
Step = tuple[float, float]  #: a value, and the share of items that have at least as much


class Data(TypedDict):
    """What was looked at."""

    n_items: int  #: items of the report
    n_classes: int
    classes: list[str]  #: names
    n_cells: int  #: of the partition, empty ones included
    n_cells_used: int  #: cells that hold an item of the report
    partition: str  #: how items were sorted into cells
    method: str  #: how mixtures were estimated
    #: aleatoric uncertainty is what a panel of so many shows; None: the label distribution's
    panel_size: int | None
    calibration_items: int
    calibration_labels: int
    fewest_labels: int  #: of a calibration item
    most_labels: int  #: of a calibration item


class Distribution(TypedDict):
    """How a number is spread over the items."""

    mean: float
    low: float  #: a tenth of the items is below
    median: float
    high: float  #: a tenth of the items is above
    maximum: float


class MapPoint(TypedDict):
    """One cell, or one square of near cells, on the map of aleatoric and epistemic uncertainty."""

    name: str
    n_cells: int
    n_items: int
    aleatoric: float
    epistemic: float
    standing: Standing | None  #: None where no lower limit exceeds the average


class Parts(TypedDict):
    """What the uncertainty of the model is made of, in nats; predictive = aleatoric + epistemic.

    All numbers but the map are of single items, from their predictions alone.
    """

    predictive: Distribution
    aleatoric: Distribution
    epistemic: Distribution
    epistemic_share: float | None  #: of the predictive mean; None where that is 0
    maximum: float  #: the largest possible value, log n_classes
    aleatoric_steps: list[Step]  #: how many items have how much, rising
    epistemic_steps: list[Step]
    map: list[MapPoint]


class Calibration(TypedDict):
    """Predictions against held-out labels: those of items that were not fitted, if there are 50."""

    n_items: int  #: items measured
    n_available: int  #: with k labels and not fitted, unless `training`; of many some are measured
    n_fitted: int  #: of all items with at least k labels, those that the model was fitted on
    #: whether fitted items were measured, for lack of others: a figure that flatters the model
    training: bool
    k: int  #: labels in a snapshot
    #: distance between predicted and observed snapshots, from 0 to 2, items weighing the same
    mean: float
    worst: float  #: the same in the worst cell
    noise_floor: float  #: what `mean` would be for perfect predictions
    excess: float  #: mean less noise floor
    p_value: float  #: chance of such a mean for perfect predictions
    predicted_disagreement: float | None  #: chance that two people give an item different labels
    observed_disagreement: float | None  #: how often they do; None without items with two labels
    #: nats, against label histograms; None where they hold too few labels
    aleatoric_error: float | None
    median_labels: float  #: labels of a measured item


class CertificatePart(TypedDict):
    """What is proved about the cells, whatever the data look like, if the assumptions hold."""

    confidence: float
    simultaneous: bool  #: for all cells at once, or each on its own
    n_cells: int  #: cells with calibration items
    n_vacuous: int  #: of them, those whose aleatoric interval says nothing
    n_outside: int  #: of them, those whose estimate lies outside its own interval
    #: of the aleatoric interval, items of the report weighing the same; None without any
    mean_width: float | None
    #: share of the items in a cell with an aleatoric interval that says something
    informed_share: float
    informed_items: int  #: how many these are
    #: how many calibration items count as one, because labels do not look independent; else 1
    design_effect: float
    calibration_items: int  #: in these cells
    effective_items: int  #: what they count as
    assumptions: list[str]


class CheckFinding(TypedDict):
    """One thing that a check of the annotations found."""

    topic: str
    severity: str  #: "ok", "note" or "warning"
    message: str
    action: str


class Check(TypedDict):
    """What `hocal.check_annotations` says about the independence of the labels."""

    n_judgements: int
    n_items: int
    n_annotators: int
    #: how many items are worth one where items share annotators; None where it cannot be told
    design_effect: float | None
    findings: list[CheckFinding]


class Trust(TypedDict):
    """How far the numbers can be trusted."""

    calibration: Calibration | None  #: None without held-out labels
    certificate: CertificatePart
    borrowed_cells: int  #: cells in use that had no calibration items
    borrowed_items: int  #: items in them
    check: Check | None  #: None where the annotations were not checked


class Confusion(TypedDict):
    """Two classes between which people disagree."""

    first: str
    second: str
    share: float  #: of all disagreeing pairs of labels
    rate: float  #: of all pairs of labels


class CellRow(TypedDict):
    """One cell: items with alike predictions; uncertainty is the average over those of the report.

    The intervals are about the average as well.
    """

    cell: int
    name: str
    n_items: int  #: items of the report
    calibration_items: int
    calibration_labels: int
    source: str  #: whose calibration items were used: "cell", "neighbours" or "pool"
    predictive: float
    aleatoric: float
    epistemic: float
    aleatoric_interval: Interval | None  #: certified; None without calibration items
    aleatoric_vacuous: bool  #: the interval is the whole possible range
    aleatoric_inside: bool  #: the estimate lies in it
    epistemic_interval: Interval | None
    epistemic_vacuous: bool
    aleatoric_share: float  #: of the aleatoric uncertainty of all items
    epistemic_share: float
    aleatoric_excess: float  #: above the average of all items; negative below
    epistemic_excess: float
    stands_out: list[Standing]  #: of what its lower limit exceeds the average
    error: float | None  #: distance of predicted and observed snapshots
    noise_floor: float | None  #: what it would be for perfect predictions
    p_value: float | None
    predicted_disagreement: float  #: chance that two people give an item different labels
    observed_disagreement: float | None
    confusion: Confusion | None  #: the two classes that calibration labels confuse most


class Leaders(TypedDict):
    """The cells to act on: their lower limit exceeds the average; by items times excess.

    A cell may be in both lists. Both are empty where no cell differs from the others.
    """

    epistemic: list[CellRow]
    aleatoric: list[CellRow]


class ItemParts(TypedDict):
    """The uncertainty of one item."""

    predictive: float
    aleatoric: float
    epistemic: float


class ItemRow(ItemParts):
    """One item; its parts are what is left when its held-out labels, if any, are known."""

    item: str  #: its name
    row: int  #: its place in the data
    cell: int
    cell_name: str
    prediction: str  #: the most likely class
    probability: float  #: as the model said
    calibrated: list[tuple[str, float]]  #: up to three classes with their calibrated probability
    labels: list[tuple[str, int]] | None  #: up to three classes with their held-out labels
    n_labels: int
    #: all labels are the same: three or more, or two where next to nothing may be left
    agreed: bool
    alone: ItemParts  #: from its prediction alone, as if it had no labels
    #: limits of its aleatoric uncertainty, given its labels, with the certificate's confidence
    aleatoric_interval: Interval
    #: by how much one more label should lower the squared error of its label distribution
    gain: float
    #: what it is among the most of: epistemic is that `alone`, aleatoric never if agreed
    listed_as: list[Listing]


class Image(TypedDict):
    """A picture inside the page."""

    source: str  #: data: address of a PNG
    width: int
    height: int
    pixelated: bool  #: so small that it is to be enlarged with sharp pixels


class Text(TypedDict):
    """The beginning of a text."""

    text: str
    n_cut: int  #: characters left out


class Card(TypedDict):
    """One item of a gallery."""

    item: ItemRow
    image: Image | None
    text: Text | None


class Gallery(TypedDict):
    """Items with much of one kind of uncertainty; none in the second that people agree on."""

    standing: Standing
    least: float  #: nats, below which an item has next to nothing of it
    n_items: int  #: items with at least that
    cards: list[Card]


class Contrast(TypedDict):
    """An item on which people agree and the model does not, or the other way round."""

    agree: Agreeing  #: "people", or "model" where it is sure and people are not
    card: Card


class WidthRow(TypedDict):
    """How closely a cell would be certified with more labels, in nats."""

    name: str
    n_items: int  #: calibration items now
    k: int  #: labels of an item now, on average, rounded
    now: float  #: certified width
    twice_items: float  #: forecast for twice the items
    four_times_items: float
    twice_labels: float  #: forecast for the same items with twice the labels


class BudgetRow(TypedDict):
    """One way to spend a budget of labels."""

    k: int
    n_items: int
    error: float  #: expected error of aleatoric uncertainty, nats
    standard_error: float


class Planning(TypedDict):
    """What more labels would bring."""

    widths: list[WidthRow]
    budget: int  #: labels of the simulated new study
    splits: list[BudgetRow]
    best_k: int
    near_k: list[int]  #: others that do as well within the noise of the simulation


class Limited(TypedDict):
    """A number with its limits."""

    estimate: float | None  #: None where nothing tells
    lower: float | None  #: None where nothing was measured
    upper: float | None


class Gains(TypedDict):
    """A loss against the labels of new people, and its two parts; the labels decide each alone."""

    loss: Limited
    irreducible: Limited  #: what no model can avoid; estimate None where no item has two labels
    remaining: Limited  #: what the best possible model would gain


class Headroom(TypedDict):
    """What the model loses, what nobody can avoid and what is left to gain.

    Measured, these are about the model as it is, on items with labels. Otherwise they are what the
    fitted mixtures expect of the calibrated model: predictive, aleatoric and epistemic.
    """

    measured: bool
    loss_name: str  #: "log loss"; "Brier score" where a prediction is 0
    unit: str
    confidence: float | None  #: of each pair of limits; None where nothing was measured
    n_items: int  #: items measured, or else all items of the report
    n_available: int  #: items with labels, of which at most a fixed number is measured
    n_fitted: int  #: of those measured, fitted items: no test of the calibrator's own predictions
    gains: Gains
    #: the loss of the calibrated predictions on the same items; None where it was not measured
    calibrated: Limited | None
    agreement: Limited | None  #: how often a new person says what the model finds most likely
    best_agreement: Limited | None  #: ... and what the best possible model would
    assumptions: list[str]


class PredictedClass(TypedDict):
    """The items for which the model finds one class the most likely."""

    name: str
    n_items: int
    share: float  #: of all items
    predictive: float  #: mean over the items, from their predictions alone
    aleatoric: float
    epistemic: float
    aleatoric_share: float  #: of the aleatoric uncertainty of all items
    epistemic_share: float
    n_measured: int  #: items with labels whose loss was measured; 0 where they are too few
    gains: Gains | None


class Summary(TypedDict):
    """Everything that a report says."""

    format: str
    hocal: str  #: version
    title: str
    unit: str
    data: Data
    headroom: Headroom
    parts: Parts
    classes: list[PredictedClass]  #: by predicted class, those that hold most of the uncertainty
    trust: Trust
    cells: list[CellRow]  #: those that hold most of the uncertainty
    leaders: Leaders
    confusions: list[Confusion]
    items: list[ItemRow]  #: those with the most epistemic, aleatoric uncertainty and gain
    galleries: list[Gallery]
    contrast: list[Contrast]  #: at most one of each kind; none without held-out labels
    planning: Planning | None
