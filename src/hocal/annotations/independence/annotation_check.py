"""AnnotationCheck: what a table of judgements tells about the independence of its labels."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from hocal._base.frames import to_frame
from hocal._base.plurals import counted
from hocal._base.shares import percent
from hocal.annotations.independence.agreement_result import Agreement
from hocal.annotations.independence.annotator_table import AnnotatorEffects
from hocal.annotations.independence.design_effect import DesignEffect
from hocal.annotations.independence.exchangeability import Spread
from hocal.annotations.independence.findings import Finding
from hocal.annotations.independence.label_numbers import FirstLabels
from hocal.annotations.independence.plain_values import plain, short_p
from hocal.annotations.independence.votes import Repeats

__all__ = ["AnnotationCheck", "OrderEffects", "Summary"]


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
    agreement : Agreement
        How much they agree, with limits.
    annotators : AnnotatorEffects
        One value per annotator, the worst dissent first.
    order : OrderEffects or None
        Whether labels depend on time; None where the table has none.
    first_labels : FirstLabels or None
        Whether the number of labels of an item depends on its first two; None without an order, or
        where all items have as many.
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
    agreement: Agreement
    annotators: AnnotatorEffects
    order: OrderEffects | None
    first_labels: FirstLabels | None
    sharing: DesignEffect
    panel_size: int | None
    alpha: float
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        topics = [finding.topic for finding in self.findings if finding.severity == "warning"]
        return (
            f"AnnotationCheck({self._scope()}: "
            f"{'warnings about ' + ', '.join(topics) if topics else 'no warning'})"
        )

    def _scope(self) -> str:
        """Say what was looked at."""
        judgements = counted(self.n_judgements, "judgement")
        items = counted(self.n_items, "item")
        return f"{judgements} of {items} by {counted(self.n_annotators, 'annotator')}"

    def as_dict(self) -> dict[str, Any]:
        """Return everything in the types of JSON; None stands for NaN."""
        content = {field.name: plain(getattr(self, field.name)) for field in fields(self)}
        del content["agreement"]["annotators"]  # those of the check know about drift as well
        return content

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a dataframe with one row per annotator, of "pandas", "polars" or "pyarrow"."""
        return to_frame(self.annotators._asdict(), backend)

    def table(self) -> str:
        """Return a text for people: numbers, the annotators who stand out most, and findings."""
        lines = [self.agreement.table(), "", *self._work_lines(), ""]
        lines += [*self._annotator_lines(), ""]
        for finding in self.findings:
            said = f"{finding.topic}: {finding.message} {finding.action}".strip()
            text = f"[{finding.severity}] {said}"
            lines += textwrap.wrap(text, _WIDTH, subsequent_indent="    ")
        lines.append("Tests can find dependence; they can never prove independence.")
        return "\n".join(lines)

    def _work_lines(self) -> list[str]:
        """Say who did how much."""
        lines = [
            f"{self._scope()}, {counted(len(self.classes), 'class', 'classes')}",
            f"{'':22}{'least':>8}{'median':>8}{'mean':>8}{'most':>8}",
            *(
                f"{title:<22}{s.minimum:>8g}{s.median:>8g}{s.mean:>8.4g}{s.maximum:>8g}"
                for title, s in (
                    ("labels per item", self.labels_per_item),
                    ("annotators per item", self.annotators_per_item),
                    ("items per annotator", self.items_per_annotator),
                )
            ),
            f"The busiest tenth of the annotators gave {percent(self.busiest_share)} of the "
            "judgements.",
        ]
        if self.n_missing:
            rows = f"{counted(self.n_missing, 'row')} with missing values"
            lines.append(f"{rows} {'was' if self.n_missing == 1 else 'were'} left out.")
        return lines

    def _annotator_lines(self) -> list[str]:
        """Show the annotators of whom something was found, and then the worst of the others."""
        who = self.annotators
        lines = [
            f"{'annotator':<16}{'items':>6}{'excess':>8}{'limits':>15}  {'overused':<15}{'finding'}"
        ]
        for i in self._shown():
            over = f"{_cut(who.overused[i], 8)} {who.overuse[i]:+.2f}"
            limits = f"{who.excess_lower[i]:+.2f} to {who.excess_upper[i]:+.2f}"
            lines.append(
                f"{_cut(who.annotator[i], 15):<16}{who.n_compared[i]:>6}{who.excess[i]:>+8.2f}"
                f"{limits:>15}  {over:<15}{self._words(i)}".rstrip()
            )
        lines += [
            "items: those that others judged too. excess: share of the others' labels that",
            "differ from theirs, less the same among the others. finding: what stands out",
            "with its p-value, made larger for having looked at all annotators; class use:",
            "see overused.",
        ]
        return lines if len(lines) > 5 else ["No annotator could be compared with others."]

    def _shown(self) -> list[int]:
        """Return the annotators to show: what was found first, each from the largest excess on."""
        who = self.annotators
        known = [i for i in range(len(who.annotator)) if who.n_informative[i]]
        ranked = sorted(known, key=lambda i: not who.finding[i])
        return ranked[:_SHOWN]

    def _words(self, i: int) -> str:
        """Return the first finding about an annotator with its p-value."""
        who = self.annotators
        p_values = {
            "dissents": who.p_dissents,
            "class use": who.p_class_use,
            "agrees": who.p_agrees,
        }
        found = [name for name in who.finding[i].split(", ") if name]
        told = (f"{name} {short_p(p_values[name][i])}" for name in found[:1])
        return ", ".join(told)


def _cut(value: Any, width: int) -> str:
    text = str(value)
    return text if len(text) <= width else text[: width - 1] + "…"
