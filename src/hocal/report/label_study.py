"""What a report on labels is computed from: counts, agreement, and what is known of each item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Counts, Index, IntArray
from hocal._base.validation import check_counts, label_totals
from hocal.annotations import Agreement, agreement, count_labels
from hocal.annotations.tables import is_matrix
from hocal.calibration.item_posteriors import LabelPosterior, label_posterior
from hocal.report.item_values import ENOUGH_TO_AGREE
from hocal.report.label_schema import Verdict
from hocal.report.media import check_rows
from hocal.report.study import class_names
from hocal.uncertainty.distinct_counts import as_dense

__all__ = ["LabelStudy"]

VERDICTS: tuple[Verdict, ...] = ("disputed", "open", "agreed")  # in the order of the list


@dataclass(frozen=True, eq=False)
class LabelStudy:
    """Labels of all items, how much people agree, and what is known of each item."""

    items: NDArray[Any]  #: (n_items,) names
    classes: tuple[str, ...]
    counts: Counts  #: (n_items, n_classes)
    agreement: Agreement
    posterior: LabelPosterior

    @classmethod
    def of(
        cls,
        table: Any,
        *,
        item: str | None,
        label: str | Sequence[str] | None,
        annotator: str | None,
        count_columns: Sequence[str] | Mapping[Any, str] | None,
        gold: str | None,
        classes: Sequence[Any] | None,
        items: Any,
        ordinal: bool,
        missing: str,
        duplicates: str,
        confidence: float,
        progress: Callable[[str, int, int | None], object],
    ) -> LabelStudy:
        """Count the labels of a table, or take counts, and look at every item once."""
        progress("Measuring agreement", 0, None)
        columns: dict[str, Any] = {"item": item, "label": label, "annotator": annotator}
        columns |= {"count_columns": count_columns}
        options: dict[str, Any] = {"gold": gold, "ordinal": ordinal, "confidence": confidence}
        if is_matrix(table):
            measured = agreement(table, **columns, **options)
            given = _take_counts(table, items, classes)
        else:
            columns |= {"classes": classes, "missing": missing, "duplicates": duplicates}
            measured = agreement(table, **columns, **options)
            given = _count_table(table, columns)
        posterior = label_posterior(
            given.counts,
            entropy="ordinal" if ordinal else "shannon",
            confidence=confidence,
            progress=lambda done, total: progress("Describing items", done, total),
        )
        return cls(given.items, given.classes, given.counts, measured, posterior)

    @property
    def totals(self) -> IntArray:
        """Labels of each item."""
        return np.asarray(label_totals(self.counts))

    def verdicts(self) -> Index:
        """Return the place of each item's verdict in `VERDICTS`."""
        most = self.counts.max(axis=1)
        largest = np.reshape(most if isinstance(most, np.ndarray) else most.toarray(), -1)
        totals = self.totals
        same = largest == totals
        return np.asarray(np.where(~same, 0, np.where(totals < ENOUGH_TO_AGREE, 1, 2)))

    def order(self) -> Index:
        """Return all items, disputed ones first, then open and agreed ones, each by uncertainty.

        What everybody agrees on comes last, whatever its value.
        """
        order: Index = np.lexsort([-self.posterior.aleatoric, self.verdicts()])
        return order

    def labels_of(self, row: int) -> IntArray:
        """Return the label counts of an item, dense."""
        counts: IntArray = as_dense(self.counts[[row]])[0]
        return counts

    def table(self) -> dict[str, Any]:
        """Return one value per item by column, in the order of the list."""
        order = self.order()
        columns = {name: values[order] for name, values in self.posterior.as_dict().items()}
        names = np.array(self.classes, dtype=object)
        verdict = np.array(VERDICTS, dtype=object)[self.verdicts()[order]]
        columns |= {"majority": names[columns["majority"]], "verdict": verdict}
        shares = {f"share_{name}": self.posterior.mean[order, j] for j, name in enumerate(names)}
        return {"item": self.items[order], **columns, **shares}


class _Given(NamedTuple):
    """Labels of all items."""

    items: NDArray[Any]  #: (n_items,) names
    counts: Counts  #: (n_items, n_classes)
    classes: tuple[str, ...]


def _take_counts(table: Any, items: Any, classes: Sequence[Any] | None) -> _Given:
    """Take a matrix of counts as it is."""
    counts = check_counts(table, "table", minimum_total=0)
    names = check_rows(items, "items", counts.shape[0])
    found = np.arange(counts.shape[0]) if names is None else np.asarray(names, dtype=object)
    return _Given(found, counts, class_names(classes, counts.shape[1]))


def _count_table(table: Any, columns: dict[str, Any]) -> _Given:
    """Count the labels of a table; an item without any stays."""
    named = columns | {"item": str(columns["item"])}
    counted = count_labels(table, **named, empty="keep")
    return _Given(counted.items, counted.counts, tuple(map(str, counted.classes)))
