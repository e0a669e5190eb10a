"""Arguments and options that several commands share, named as in the Python interface."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hocal._base.errors import InputError

_EXPORT = "The export of an annotation tool will do as well: JSON, JSONL, CSV, TSV, zip or folder."
_FILES = "CSV, TSV (.gz too) or Parquet; a pattern such as 'part-*.parquet' names many files."
_LIST = "A,B,..."  # or JSON, for names with commas or quotes


def split_list(text: str | None, option: str) -> list[str] | None:
    """Return the entries of an option that is a list, given as `a,b,"c, d"` or as JSON."""
    if text is None:
        return None
    entries = _parse_json(text, option) if text.lstrip().startswith("[") else _parse_csv(text)
    if not entries:
        raise InputError(
            option,
            "must be a list with at least one entry",
            value=repr(text),
            remedy="Leave the option out instead.",
        )
    return entries


def _parse_csv(text: str) -> list[str]:
    return next(csv.reader([text], skipinitialspace=True), [])


def _parse_json(text: str, option: str) -> list[str]:
    try:
        return [str(entry) for entry in json.loads(text)]
    except json.JSONDecodeError as error:
        found = f"{text}: {error}"
        rule = "must be a list separated by commas, or JSON"
        raise InputError(option, rule, value=found) from error


def _text(help_: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help_, metavar=metavar)


def _flag(help_: str, name: str) -> Any:
    # without a metavar the help shows a type, as if a value were to follow
    return typer.Option(name, help=help_, metavar="")


LabelsFile: TypeAlias = Annotated[
    str, typer.Argument(metavar="LABELS", help=f"Table of labels. {_FILES} {_EXPORT}")
]
ProbabilitiesFile: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="PROBABILITIES", help=f"Table of predictions, one row per item. {_FILES}"
    ),
]
ModelFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file written by `hocal fit`.")
]
Output: TypeAlias = Annotated[Path, _text("File to write.", "--output", "-o")]
Force: TypeAlias = Annotated[bool, _flag("Replace the output if it exists.", "--force")]
AsJson: TypeAlias = Annotated[bool, _flag("Print JSON for machines instead of a table.", "--json")]
SummaryAsJson: TypeAlias = Annotated[bool, _flag("Print the summary as JSON.", "--json")]
SummaryAsMarkdown: TypeAlias = Annotated[
    bool, _flag("Print a short report as Markdown.", "--markdown")
]
AnnotatorsFile: TypeAlias = Annotated[
    Path | None, _text("File to write, one row per annotator.", "--annotators")
]

Item: TypeAlias = Annotated[str, _text("Column that tells the items apart.", "--item")]
ItemOfLabels: TypeAlias = Annotated[
    str | None,
    _text("Column that tells the items apart, or the field of an export that does.", "--item"),
]
Label: TypeAlias = Annotated[
    str | None,
    _text("Column with the labels, or one column for each annotator.", "--label", metavar=_LIST),
]
Annotator: TypeAlias = Annotated[
    str | None,
    _text("Column that tells who judged: to find repeated judgements, and compare.", "--annotator"),
]
Tool: TypeAlias = Annotated[
    str | None,
    _text("Tool that LABELS was exported from, such as label-studio; else recognised.", "--tool"),
]
Question: TypeAlias = Annotated[
    str | None, _text("Question of the export to read, where there are several.", "--question")
]
Several: TypeAlias = Annotated[
    str, _text("Answers of an export with several labels: error or drop.", "--several")
]
CountColumns: TypeAlias = Annotated[
    str | None,
    _text(
        "Columns with the number of labels of each class, one row per item, instead of --label.",
        "--count-columns",
        metavar=_LIST,
    ),
]
Classes: TypeAlias = Annotated[
    str | None, _text("Classes, in the order of their columns.", "--classes", metavar=_LIST)
]
Names: TypeAlias = Annotated[
    str | None,
    _text(
        "Names of the columns of LABELS, when it is a CSV file without a header.",
        "--names",
        metavar=_LIST,
    ),
]
ProbabilityColumns: TypeAlias = Annotated[
    str | None,
    _text(
        "Columns with the probability of each class, or one column of lists.",
        "--probability-columns",
        metavar=_LIST,
    ),
]
Score: TypeAlias = Annotated[
    str | None,
    _text(
        "Columns of PROBABILITIES with scores of any kind, such as a judge's rating: features. "
        "Where there are no columns of probabilities, name the --classes.",
        "--score",
        metavar=_LIST,
    ),
]
ProbabilityNames: TypeAlias = Annotated[
    str | None,
    _text(
        "Names of the columns of PROBABILITIES, when it is a CSV file without a header.",
        "--probability-names",
        metavar=_LIST,
    ),
]
Cell: TypeAlias = Annotated[
    str | None, _text("Column of PROBABILITIES with cell numbers.", "--cell")
]

By: TypeAlias = Annotated[
    str | None,
    _text(
        "Column of PROBABILITIES with the group of each item, such as an aspect: cells are crossed "
        "with the groups, and the model learns what they differ in.",
        "--by",
    ),
]
Features: TypeAlias = Annotated[
    str | None,
    _text(
        "What else is known about items, as numbers: columns of PROBABILITIES; or a file, .npy "
        "with one row for each of its rows, or a table with the column of the items.",
        "--features",
        metavar="A,B,...|FILE",
    ),
]
Ensemble: TypeAlias = Annotated[
    str | None,
    _text(
        "Tables with the predictions of other members of an ensemble, for the same items; "
        "PROBABILITIES is the first member.",
        "--ensemble",
        metavar="FILE,FILE,...",
    ),
]


def _of_model(help_: str, name: str, metavar: str | None = None) -> Any:
    return typer.Option(name, help=f"{help_} By default as in the fit.", metavar=metavar)


ItemOfModel: TypeAlias = Annotated[
    str | None, _of_model("Column that tells the items apart.", "--item")
]
CellOfModel: TypeAlias = Annotated[str | None, _of_model("Column with cell numbers.", "--cell")]
ByOfModel: TypeAlias = Annotated[
    str | None, _of_model("Column with the group of each item.", "--by")
]
_COLUMNS = "Columns with the probability of each class, or one column of lists."
ColumnsOfModel: TypeAlias = Annotated[
    str | None, _of_model(_COLUMNS, "--probability-columns", _LIST)
]
_FEATURES = "Columns of features, or their file, as --features of `hocal fit`."
FeaturesOfModel: TypeAlias = Annotated[
    str | None, _of_model(_FEATURES, "--features", "A,B,...|FILE")
]

Gold: TypeAlias = Annotated[
    str | None, _text("Column with the right label of gold questions.", "--gold")
]
Ordinal: TypeAlias = Annotated[bool, _flag("The order of --classes is a scale.", "--ordinal")]

Missing: TypeAlias = Annotated[str, _text("Rows with a gap: error or drop.", "--missing")]
Unknown: TypeAlias = Annotated[str, _text("Unrecognised labels: error or drop.", "--unknown")]
Duplicates: TypeAlias = Annotated[
    str, _text("Repeated judgements: error, keep or drop.", "--duplicates")
]
Unlabelled: TypeAlias = Annotated[
    str, _text("Items with a prediction and no label: error or drop.", "--unlabelled")
]
Unpredicted: TypeAlias = Annotated[
    str, _text("Items with labels and no prediction: error or drop.", "--unpredicted")
]

First: TypeAlias = Annotated[
    int | None,
    _text(
        "Count only the first so many labels of each item, in the order of --time: for "
        "certificates, where later labels were bought for some items only.",
        "--first",
    ),
]
Time: TypeAlias = Annotated[
    str | None, _text("Column that tells when, or in which order; for --first.", "--time")
]

Confidence: TypeAlias = Annotated[
    float, _text("Confidence of the certified intervals.", "--confidence")
]
Simultaneous: TypeAlias = Annotated[bool, _flag("Certify all cells at once.", "--simultaneous")]
Entropy: TypeAlias = Annotated[
    str, _text("Measure of uncertainty: shannon (nats) or brier.", "--entropy")
]
RandomState: TypeAlias = Annotated[int, _text("Seed.", "--random-state")]
MemoryLimit: TypeAlias = Annotated[
    str, _text("Memory that DuckDB may use; it spills to disk.", "--memory-limit")
]
