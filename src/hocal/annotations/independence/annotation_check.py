"""AnnotationCheck: what a table of judgements tells about the independence of its labels."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from hocal._base.frames import to_frame
from hocal._base.typing import Array, IntArray
from hocal.annotations.independence.design_effect import DesignEffect
from hocal.annotations.independence.exchangeability import Spread
from hocal.annotations.independence.findings import Finding
from hocal.annotations.independence.votes import Repeats

__all__ = ["AnnotationCheck", "AnnotatorEffects", "OrderEffects", "Summary"]


_WIDTH = 79  # columns of a terminal
_SHOWN = 10  # annotators in the text table


class Summary(NamedTuple):
    """How large some numbers are.

    Attributes
    ----------
    minimum, median, mean, maximum : float
        Of the numbers.
    """

    minimum: float
    median: float
    mean: float
    maximum: float


class AnnotatorEffects(NamedTuple):
    """One value per annotator, in sorted order of the annotators.

    Attributes
    ----------
    annotator : tuple
        Who they are.
    n_items : ndarray
        Items they judged.
    n_informative : ndarray
        Those among them on which labels differ; only these tell annotators apart.
    distance : ndarray
        Total variation between their labels and the other labels of the same items; chance makes it
        positive.
    overused, underused : tuple
        The class they use most, and least, compared with the others; None without informative
        items.
    overuse, underuse : ndarray
        By how much: share of that class in their labels less its share in the other labels of the
        same items.
    dissent, expected_dissent : ndarray
        On informative items, how often their label is not a most frequent one of the item, and how
        often a random label of these items is not.
    p_value : ndarray
        Exact test of all this given the items; NaN where nothing can be tested. Valid with any
        number of labels.
    p_value_holm : ndarray
        Adjusted for all annotators: below alpha, a difference is real with family-wise error alpha.
    p_value_fdr : ndarray
        Adjusted by Benjamini and Hochberg: a list to look at, of which a share of about alpha is
        innocent.
    drift : ndarray
        Total variation between the first and second half of their judgements, compared with the
        other labels of the items; NaN without time or with fewer than four informative items.
    drift_p_value : ndarray
        Permutation p-value of the drift, adjusted for all annotators.
    """

    annotator: tuple[Any, ...]
    n_items: IntArray
    n_informative: IntArray
    distance: Array
    overused: tuple[Any, ...]
    overuse: Array
    underused: tuple[Any, ...]
    underuse: Array
    dissent: Array
    expected_dissent: Array
    p_value: Array
    p_value_holm: Array
    p_value_fdr: Array
    drift: Array
    drift_p_value: Array


class OrderEffects(NamedTuple):
    """Whether labels depend on when they were given.

    Attributes
    ----------
    agreement, expected_agreement : float
        Share of labels equal to the previous label of the same item, and the same if order does not
        matter; on items on which labels differ.
    agreement_p_value : float
        Two-sided, by permutation within items; exact.
    shift : tuple of float
        For each class, its share in the later half of the items' labels less that in the earlier
        half.
    shift_p_value : float
        By permutation within items; exact.
    drift_ratio : float
        How much the halves of annotators' judgements differ, as a multiple of chance.
    drift_p_value : float
        By permutation within annotators; exact if the order in which they met items is arbitrary.
    n_ties : int
        Judgements given at the same time as another one of the same item; their order is taken at
        random.
    """

    agreement: float
    expected_agreement: float
    agreement_p_value: float
    shift: tuple[float, ...]
    shift_p_value: float
    drift_ratio: float
    drift_p_value: float
    n_ties: int


@dataclass(frozen=True, eq=False, repr=False)
class AnnotationCheck:
    """What a table of judgements tells about the independence of its labels.

    Tests can find dependence; they can never prove independence. NaN marks what could not be
    tested.

    Attributes
    ----------
    n_judgements, n_items, n_annotators : int
        Rows, items and annotators of the table.
    n_missing : int
        Rows left out because a value was missing.
    classes : tuple
        The labels.
    labels_per_item, annotators_per_item, items_per_annotator : Summary
        How the judgements are spread; the first counts repeated judgements, the others do not.
    busiest_share : float
        Share of the judgements that the busiest tenth of the annotators gave.
    n_effective_annotators : float
        Annotators of equal activity among whom two random judgements would be by the same person as
        often.
    repeats : Repeats
        Annotators who judged an item twice; the rest of the check uses one judgement of each pair.
    class_use, dissent : Spread
        Whether annotators differ in the classes they use and in how often they leave the most
        frequent label.
    annotators : AnnotatorEffects
        The same for each annotator.
    order : OrderEffects or None
        Whether labels depend on time; None where the table has none.
    sharing : DesignEffect
        What annotators shared between items do to the width of intervals.
    panel_size : int or None
        Number of annotators if the same ones judged every item, else None.
    alpha : float
        Error rate of each finding.
    findings : tuple of Finding
        All this in words: a severity, a sentence, and what to do.

    Examples
    --------
    >>> import pandas as pd
    >>> from hocal.annotations.independence import check_annotations
    >>> table = pd.DataFrame({"item": [0, 0, 1, 1], "label": list("abba"), "worker": list("xyxy")})
    >>> check_annotations(table, item="item", label="label", annotator="worker", random_state=0)
    AnnotationCheck(4 judgements of 2 items by 2 annotators: no warning)
    """

    n_judgements: int
    n_items: int
    n_annotators: int
    n_missing: int
    classes: tuple[Any, ...]
    labels_per_item: Summary
    annotators_per_item: Summary
    items_per_annotator: Summary
    busiest_share: float
    n_effective_annotators: float
    repeats: Repeats
    class_use: Spread
    dissent: Spread
    annotators: AnnotatorEffects
    order: OrderEffects | None
    sharing: DesignEffect
    panel_size: int | None
    alpha: float
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        topics = [finding.topic for finding in self.findings if finding.severity == "warning"]
        return (
            f"AnnotationCheck({self.n_judgements} judgements of {self.n_items} items by "
            f"{self.n_annotators} annotators: "
            f"{'warnings about ' + ', '.join(topics) if topics else 'no warning'})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything in the types of JSON; None stands for NaN."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a dataframe with one row per annotator, of "pandas", "polars" or "pyarrow"."""
        return to_frame(self.annotators._asdict(), backend)

    def table(self) -> str:
        """Return a text for people: numbers, the annotators who stand out most, and findings."""
        lines = [
            f"{self.n_judgements} judgements of {self.n_items} items by {self.n_annotators} "
            f"annotators, {len(self.classes)} classes",
            f"{'':22}{'least':>8}{'median':>8}{'mean':>8}{'most':>8}",
            *(
                f"{title:<22}{s.minimum:>8g}{s.median:>8g}{s.mean:>8.4g}{s.maximum:>8g}"
                for title, s in (
                    ("labels per item", self.labels_per_item),
                    ("annotators per item", self.annotators_per_item),
                    ("items per annotator", self.items_per_annotator),
                )
            ),
            f"The busiest tenth of the annotators gave {self.busiest_share:.0%} of the judgements.",
            *(
                [f"{self.n_missing} rows with missing values were left out."]
                if self.n_missing
                else []
            ),
            "",
            *self._annotator_lines(),
            "",
        ]
        for finding in self.findings:
            text = (
                f"[{finding.severity}] {finding.topic}: {finding.message} {finding.action}".strip()
            )
            lines += textwrap.wrap(text, _WIDTH, subsequent_indent="    ")
        lines.append("Tests can find dependence; they can never prove independence.")
        return "\n".join(lines)

    def _annotator_lines(self) -> list[str]:
        """Show the annotators with the smallest p-values, the busiest first among equals."""
        who = self.annotators
        ranked = np.lexsort((-who.n_items, np.nan_to_num(who.p_value, nan=2.0)))[:_SHOWN]
        lines = [
            f"{'annotator':<17}{'split':>6}{'dissent':>9}{'expected':>9}  "
            f"{'overused':<18}{'p':>9}{'Holm':>9}"
        ]
        for i in ranked[~np.isnan(who.p_value[ranked])]:
            over = f"{_cut(who.overused[i], 10)} {who.overuse[i]:+.2f}"
            lines.append(
                f"{_cut(who.annotator[i], 16):<17}{who.n_informative[i]:>6}{who.dissent[i]:>9.2f}"
                f"{who.expected_dissent[i]:>9.2f}  {over:<18}"
                f"{who.p_value[i]:>9.2g}{who.p_value_holm[i]:>9.2g}"
            )
        lines.append(
            "split: items on which labels differ; dissent and expected are shares of them."
        )
        return lines if len(lines) > 2 else ["No annotator could be compared with others."]


def _cut(value: Any, width: int) -> str:
    text = str(value)
    return text if len(text) <= width else text[: width - 1] + "…"


def _plain(value: Any) -> Any:
    """Return a value in the types of JSON."""
    if hasattr(value, "_asdict"):
        return {name: _plain(entry) for name, entry in value._asdict().items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
