"""Model files of the command line: a calibrator, and the names that its tables had."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hocal._base.errors import InputError
from hocal.cli.engines import ReadTable
from hocal.cli.items import LabelOptions, MatchedItems, read_items
from hocal.cli.messages import FileError, called
from hocal.cli.option_groups import PredictionColumns
from hocal.cli.options import split_list
from hocal.cli.predictions import Probabilities, Wanted, open_probabilities
from hocal.cli.side_tables import check_width, is_file

if TYPE_CHECKING:
    from hocal import SnapshotCalibrator

__all__ = ["Model", "load_calibrator", "load_model", "model_notes"]

AS_FITTED = PredictionColumns()


class Model(NamedTuple):
    """What a model file holds, and what was typed about the tables it is used on."""

    calibrator: SnapshotCalibrator
    classes: list[str]  #: names of the classes
    item: str  #: column of the items
    wanted: Wanted  #: the columns of PROBABILITIES in the fit
    typed: PredictionColumns  #: what was typed about them now

    def cell_names(self) -> list[str]:
        """Say in words which predictions each cell holds, as reports do."""
        return self.calibrator.partition_.cell_names(self.classes)

    @property
    def scores_alone(self) -> bool:
        """Whether predictions name no class."""
        return self.wanted.columns == [] and self.typed.probability_columns is None

    def open(
        self, read: ReadTable, path: str, *, extra: Mapping[str, str] | None = None
    ) -> Probabilities:
        """Open a table of predictions for this model; `extra` as in `Wanted`."""
        scores, file = self._features()
        typed = self.typed
        columns = split_list(typed.probability_columns, "--probability-columns")
        opened = open_probabilities(
            read,
            path,
            self.wanted._replace(
                columns=columns or self.wanted.columns,
                cell=self._cell(),
                by=self._by(),
                scores=scores,
                names=split_list(typed.probability_names, "--probability-names"),
                features=file,
                ensemble=self._members(),
                extra=extra or {},
            ),
        )
        if opened.features is not None:
            check_width(opened.features, self._n_given() - len(scores))
        return opened

    def read(
        self, read: ReadTable, paths: tuple[str, str], choices: LabelOptions
    ) -> tuple[Probabilities, MatchedItems]:
        """Read LABELS and PROBABILITIES: the predictions as a table, and all labelled items."""
        predictions = self.open(read, paths[1])
        labels, predictions = choices.open(read, paths[0], predictions)
        return predictions, read_items(labels, predictions, choices, classes=self.classes)

    def _n_given(self) -> int:
        """Return how many features the fit had, without those that stand for groups."""
        calibrator = self.calibrator
        return calibrator.input_shape_.n_features - calibrator.partition_.n_item_columns

    def _features(self) -> tuple[Sequence[str], str | None]:
        """Return the columns of features, and the file with the others."""
        n_given, scores, typed = self._n_given(), self.wanted.scores, self.typed.features
        n_more = n_given - len(scores)
        if typed is None:
            if n_more:
                rule = f"must name a file with {n_more} features, or as many columns, as in the fit"
                raise InputError("--features", rule, value="none")
            return scores, None
        if n_given == 0:
            rule = "must be left out: the model was fitted without features"
            raise InputError("--features", rule, value=typed)
        if is_file(typed) and n_more:
            return scores, typed
        columns = [] if is_file(typed) else split_list(typed, "--features") or []
        if len(columns) == n_given:
            return columns, None
        if columns and len(columns) == n_more:
            return [*scores, *columns], None
        rule = f"must name {n_given} columns, as in the fit, or be left out"
        raise InputError("--features", rule, value=typed)

    def _members(self) -> Sequence[str]:
        """Return the files of the other members of an ensemble, as many as in the fit."""
        n_others = self.calibrator.input_shape_.n_members - 1
        files = split_list(self.typed.ensemble, "--ensemble") or []
        if len(files) == n_others:
            return files
        if n_others == 0:
            rule = "must be left out: the model was fitted on one prediction per item"
        else:
            tables = "table of another member" if n_others == 1 else "tables of other members"
            rule = f"must name {n_others} {tables} beside PROBABILITIES, as in the fit"
        raise InputError("--ensemble", rule, value=f"{len(files)}" if files else "none")

    def _cell(self) -> str | None:
        """Return the column of cell numbers, if they come with the data."""
        partition = self.calibrator.partition_
        if partition.takes_cells and not partition.takes_groups:
            return self.typed.cell or self.wanted.cell
        if self.typed.cell is not None:
            rule = "must be left out: the model was fitted without --cell, and computes its cells"
            raise InputError("--cell", rule, value=self.typed.cell)
        return None

    def _by(self) -> str | None:
        """Return the column of groups, if the model was fitted with groups."""
        column = self.typed.by or self.wanted.by
        if not self.calibrator.partition_.takes_groups:
            if self.typed.by is not None:
                rule = "must be left out: the model was fitted without groups"
                raise InputError("--by", rule, value=self.typed.by)
            return None
        if column is None:
            rule = "must name the column of groups: the model was fitted with some"
            raise InputError("--by", rule, value="none")
        return column


def model_notes(classes: Sequence[str], predictions: Probabilities) -> dict[str, str]:
    """Return the notes that `hocal fit` saves with a calibrator."""
    notes = {
        "item": predictions.item,
        "classes": json.dumps(list(classes)),
        "probability_columns": json.dumps(predictions.file_columns),
    }
    if predictions.scores:
        notes["scores"] = json.dumps(list(predictions.scores))
    more = {"cell": predictions.cell, "by": predictions.by}
    return notes | {name: column for name, column in more.items() if column is not None}


def load_calibrator(path: Path) -> SnapshotCalibrator:
    """Load the calibrator of a model file, and say how to make one where there is none."""
    import hocal

    try:
        with called("MODEL"):
            return hocal.load(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error} Make one with `hocal fit`.") from error


def _read_names(notes: Mapping[str, str], key: str, path: Path) -> list[str] | None:
    """Return a list of names from the notes of a model file, which anybody can have written."""
    try:
        names: list[str] | None = json.loads(notes.get(key, "null"))
    except (ValueError, RecursionError) as error:
        raise FileError(str(path), f"must have {key} as JSON in its notes") from error
    listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if names is not None and not listed:
        raise FileError(str(path), f"must have {key} as a list of names in its notes")
    return names


def load_model(path: Path, typed: PredictionColumns = AS_FITTED) -> Model:
    """Load a calibrator and its notes; one that was saved without notes has numbered classes.

    The options, as they were typed, are for a table whose columns have other names than in the fit.
    """
    from hocal.calibration.persistence import read_notes

    calibrator = load_calibrator(path)
    notes = read_notes(path)
    numbered = [str(number) for number in range(calibrator.statistics_.n_classes)]
    classes = _read_names(notes, "classes", path) or numbered
    if len(set(classes)) != len(numbered) or len(classes) != len(numbered):
        rule = f"must name {len(numbered)} distinct classes in its notes"
        raise FileError(str(path), rule, value=len(classes))
    item = typed.item or notes.get("item", "item")
    wanted = Wanted(
        item,
        _read_names(notes, "probability_columns", path),
        len(classes),
        cell=notes.get("cell"),
        by=notes.get("by"),
        scores=_read_names(notes, "scores", path) or [],
    )
    return Model(calibrator, classes, item, wanted, typed)
