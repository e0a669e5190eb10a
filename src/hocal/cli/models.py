"""Model files of the command line: a calibrator, and the names that its tables had."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hocal.cli.engines import ReadTable
from hocal.cli.messages import FileError
from hocal.cli.options import split_list
from hocal.cli.predictions import Probabilities, open_probabilities

if TYPE_CHECKING:
    from hocal import SnapshotCalibrator

__all__ = ["Model", "load_calibrator", "load_model", "model_notes"]


class Model(NamedTuple):
    """What a model file holds."""

    calibrator: SnapshotCalibrator
    classes: list[str]  #: names of the classes
    item: str  #: column of the items
    #: columns of the predictions; None for all but the others
    probability_columns: list[str] | None
    cell: str | None  #: column of the cells, where they come with the data
    scores: Sequence[str] = ()  #: columns of scores, which are features

    def cell_names(self) -> list[str]:
        """Say in words which predictions each cell holds, as reports do."""
        return self.calibrator.partition_.cell_names(self.classes)

    def open(
        self,
        read: ReadTable,
        path: str,
        *,
        names: str | None,
        extra: Mapping[str, str] | None = None,
    ) -> Probabilities:
        """Open a table of predictions for this model.

        `names` is what was typed for --probability-names, `extra` as in `open_probabilities`.
        """
        return open_probabilities(
            read,
            path,
            item=self.item,
            columns=self.probability_columns,
            n_classes=len(self.classes),
            cell=self.cell,
            extra=extra,
            names=split_list(names, "--probability-names"),
            scores=self.scores,
        )


def model_notes(
    *,
    classes: Sequence[str],
    item: str,
    probability_columns: Sequence[str],
    cell: str | None,
    scores: Sequence[str] = (),
) -> dict[str, str]:
    """Return the notes that `hocal fit` saves with a calibrator."""
    notes = {
        "item": item,
        "classes": json.dumps(classes),
        "probability_columns": json.dumps(probability_columns),
    }
    if scores:
        notes["scores"] = json.dumps(list(scores))
    return notes if cell is None else {**notes, "cell": cell}


def load_calibrator(path: Path) -> SnapshotCalibrator:
    """Load the calibrator of a model file, and say how to make one where there is none."""
    import hocal

    try:
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


def load_model(
    path: Path,
    *,
    item: str | None,
    probability_columns: str | None,
    cell: str | None,
    takes_scores: bool = False,
) -> Model:
    """Load a calibrator and its notes; one that was saved without notes has numbered classes.

    The options, as they were typed, are for a table whose columns have other names than in the fit.
    A command that does not take scores refuses a model that was fitted with some.
    """
    from hocal.calibration.persistence import read_notes

    calibrator = load_calibrator(path)
    notes = read_notes(path)
    scores = _read_names(notes, "scores", path) or []
    if scores and not takes_scores:
        remedy = "hocal predict and hocal evaluate take it; in Python pass the scores as features."
        raise FileError(str(path), "must be fitted without --score for this command", remedy=remedy)
    numbered = [str(number) for number in range(calibrator.statistics_.n_classes)]
    classes = _read_names(notes, "classes", path) or numbered
    columns = _read_names(notes, "probability_columns", path)
    if len(set(classes)) != len(numbered) or len(classes) != len(numbered):
        rule = f"must name {len(numbered)} distinct classes in its notes"
        raise FileError(str(path), rule, value=len(classes))
    return Model(
        calibrator,
        classes,
        item or notes.get("item", "item"),
        split_list(probability_columns, "--probability-columns") or columns,
        cell or notes.get("cell"),
        scores,
    )
