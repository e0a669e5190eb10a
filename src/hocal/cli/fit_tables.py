"""The two tables of `hocal fit`: opened, read, and counted inside an engine where possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hocal.cli.engines import ReadTable
from hocal.cli.items import LabelOptions, MatchedItems, read_items
from hocal.cli.left_out import count_left_out
from hocal.cli.messages import working
from hocal.cli.models import model_notes
from hocal.cli.predictions import BY, Probabilities, Wanted, extra_column, open_probabilities
from hocal.cli.tables import spell_as

if TYPE_CHECKING:
    from hocal import CellStatistics, SnapshotCalibrator
    from hocal.cells.partitions import Partition

__all__ = ["FitTables", "fit_statistics"]

CELL = extra_column("cell")  # of a crossed partition


class FitTables(NamedTuple):
    """The two tables of a fit, and what their columns mean."""

    labels: Any
    predictions: Probabilities
    label_choices: LabelOptions
    classes: Sequence[str]

    @classmethod
    def open(
        cls,
        read: ReadTable,
        paths: tuple[str, str],
        choices: LabelOptions,
        wanted: Wanted,
        declared: list[str] | None,
    ) -> FitTables:
        """Open LABELS and PROBABILITIES; their items then have the same type."""
        predictions = open_probabilities(read, paths[1], wanted)
        order = predictions.classes if declared is None else declared
        with working("Reading"), predictions.explained():
            labels, predictions = choices.open(read, paths[0], predictions)
            labels = spell_as(labels, choices.label, order)
        return cls(labels, predictions, choices, order)

    @property
    def item(self) -> str:
        """The column of the items, in both tables."""
        return self.predictions.item

    def read(self) -> MatchedItems:
        """Read all labelled items."""
        return read_items(self.labels, self.predictions, self.label_choices, classes=self.classes)

    def cross(self, partition: Partition) -> Partition:
        """Return the partition, apart for each group where a column holds groups."""
        import narwhals as nw

        from hocal.cells.crossed import cross

        if self.predictions.by is None:
            return partition
        groups = nw.from_native(self.predictions.table).lazy().select(BY).unique()
        found = groups.collect()[BY].to_list()
        crossed = cross(partition, found, title=self.predictions.by)
        if crossed.learns_from_predictions:
            return crossed
        return crossed.fit_classes(len(self.classes))

    def serialise(self, calibrator: SnapshotCalibrator) -> bytes:
        """Return the model file, which remembers what the columns were called."""
        from hocal.calibration.persistence import serialise

        return serialise(calibrator, notes=model_notes(self.classes, self.predictions))

    def describe(self, calibrator: SnapshotCalibrator) -> dict[str, Any]:
        """Return the classes, and how much of the tables was left out."""
        left_out = count_left_out(
            self.labels,
            self.predictions,
            self.label_choices,
            calibrator.statistics_,
            item=self.item,
            classes=self.classes,
        )
        return {"classes": self.classes, "left_out": left_out}


def fit_statistics(data: FitTables, partition: Partition) -> tuple[Partition, CellStatistics]:
    """Return the fitted partition and its labels, counted inside the engine where possible.

    A table of counts, one row per item, fits in memory, and so must the items of a partition whose
    cells no engine can compute.
    """
    from hocal.annotations.cell_counting import cell_statistics

    choices = data.label_choices
    table, cell = _with_cells(data, partition)
    if choices.count_columns or not (partition.works_in_engine or cell is not None):
        return _statistics_of_items(data, partition)
    return partition, cell_statistics(
        data.labels,
        table,
        item=data.item,
        label=choices.label_argument,
        annotator=choices.annotator,
        classes=data.classes,
        probability_columns=data.predictions.columns,
        partition=partition,
        cell=cell,
        **choices.rules,
    )


def _statistics_of_items(data: FitTables, partition: Partition) -> tuple[Partition, CellStatistics]:
    """Return the fitted partition and its labels, counted in memory."""
    from hocal.cells.statistics import CellStatistics

    items = data.read()
    p = items.probabilities
    fitted = partition if partition.is_fitted else partition.fit(p)
    with data.predictions.explained(items.place):
        where = fitted.assign(p, items.given.cells)
    return fitted, CellStatistics.from_items(p, items.counts, where, fitted.layout_)


def _with_cells(data: FitTables, partition: Partition) -> tuple[Any, str | None]:
    """Return the table of predictions and its column of cells, if it has one or can be given it."""
    import narwhals as nw

    from hocal.cells.crossed import CrossedPartition

    predictions = data.predictions
    if not isinstance(partition, CrossedPartition):
        return predictions.table, predictions.cell
    if not partition.crosses_in_engine or len(predictions.columns) != len(data.classes):
        return predictions.table, None
    # under names that no column on the way has
    places = {f"hocal {j}": name for j, name in enumerate(predictions.columns)}
    numbers = [nw.col(name).alias(place) for place, name in places.items()]
    frame = nw.from_native(predictions.table).lazy()
    frame = frame.select(nw.col(data.item).alias("hocal item"), *numbers, BY)
    crossed = partition.cross_in_engine(frame, list(places), BY)
    named = [nw.col(place).alias(name) for place, name in places.items()]
    cell = nw.col("cell").alias(CELL)
    items = nw.col("hocal item").alias(data.item)
    return crossed.select(items, *named, cell).to_native(), CELL
