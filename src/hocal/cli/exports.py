"""Exports of annotation tools in the place of a table of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hocal._base.errors import InputError
from hocal.cli.engines import ReadTable
from hocal.cli.messages import FileError, note
from hocal.cli.option_groups import LabelColumns, idle_of_labels, refuse_idle
from hocal.cli.options import split_list
from hocal.cli.tables import open_labels, spell_as

if TYPE_CHECKING:
    from hocal.annotations import Annotations

__all__ = [
    "ANNOTATOR",
    "ITEM",
    "LABEL",
    "ExportOptions",
    "Judged",
    "export_options",
    "open_judged",
    "open_judgements",
]

# columns of the table that an export becomes
ITEM, LABEL, ANNOTATOR = "item", "label", "annotator"
# that no table has; of others, which a table may have as well, the content tells
ENDINGS = (".json", ".jsonl", ".zip", ".json.gz", ".jsonl.gz")


@dataclass(frozen=True)
class ExportOptions:
    """What the options of a command say about the export of an annotation tool."""

    tool: str | None
    question: str | None
    several: str
    #: what was read, by path and item, so that two tables of predictions read it once
    found: dict[tuple[str, str | None], Annotations] = field(default_factory=dict)

    def read(self, path: str, item: str | None) -> Annotations:
        """Return the judgements of an export; a line on stderr says what was left out."""
        from hocal.annotations.exports import read_annotations

        if (path, item) not in self.found:
            try:
                self.found[path, item] = read_annotations(
                    path, item=item, tool=self.tool, question=self.question, several=self.several
                )
            except InputError as error:
                raise _about_file(error, path) from error
            note(" ".join(str(self.found[path, item]).splitlines()))
        return self.found[path, item]


def export_options(path: str, columns: LabelColumns) -> ExportOptions | None:
    """Return the options for an export; None where LABELS is a table.

    Where options name columns it is a table, whatever its columns are called.
    """
    if columns.tool is not None and columns.named:
        rule = "must be left out with --label and --count-columns, which name columns of a table"
        raise InputError("--tool", rule)
    if not columns.named and (columns.tool is not None or _is_export(path)):
        return ExportOptions(columns.tool, columns.question, columns.several)
    return None


class Judged(NamedTuple):
    """Labels of a table or an export without predictions, and the names of their columns."""

    table: Any
    item: str
    label: list[str]  #: one column of labels, or one for each annotator; none with `counted`
    annotator: str | None
    counted: list[str]  #: columns of counts

    @property
    def knows_annotators(self) -> bool:
        """Whether it is known who gave which label."""
        return self.annotator is not None or len(self.label) > 1


def open_judged(
    read: ReadTable,
    path: str,
    columns: LabelColumns,
    *,
    item: str | None,
    time: str | None = None,
    gold: str | None = None,
    classes: Sequence[str] | None = None,
) -> Judged:
    """Open labels without predictions: an export, or a table whose columns are named."""
    export = export_options(path, columns)
    refuse_idle(idle_of_labels(columns, export=export is not None))
    if export is not None:
        refuse_idle(dict.fromkeys(("--time", "--gold"), "for an export, which is read without it"))
        table = open_judgements(read, path, export, item=item)
        return Judged(table, item or ITEM, [LABEL], ANNOTATOR, [])
    rule = "must be given, unless LABELS is the export of an annotation tool"
    if item is None:
        raise InputError("--item", rule)
    if not columns.named:
        raise InputError("--label", rule)
    if columns.label is not None and columns.count_columns is not None:
        raise InputError("--label", "must be left out with --count-columns, which know nobody")
    label = split_list(columns.label, "--label") or []
    counted = split_list(columns.count_columns, "--count-columns") or []
    table = open_labels(
        read,
        path,
        item=item,
        label=label,
        annotator=columns.annotator,
        count_columns=counted,
        time=time,
        gold=gold,
        names=split_list(columns.names, "--names"),
    )
    known = [] if gold is None else [gold]
    table = spell_as(table, [*label, *known], classes)
    return Judged(table, item, label, columns.annotator, counted)


def open_judgements(read: ReadTable, path: str, options: ExportOptions, *, item: str | None) -> Any:
    """Return the judgements of an export as a table of the engine, all of it text.

    The items are in the column `item`, which must be the name of a field that every item has; they
    are those of the tool if it is None.
    """
    if item in (LABEL, ANNOTATOR):
        raise InputError("--item", "must be another name than that for an export", value=repr(item))
    table = options.read(path, item).table
    labels = list(map(str, table["label"]))
    columns = {item or ITEM: table["item"], LABEL: labels, ANNOTATOR: table["annotator"]}
    return read.hold(columns)


def _is_export(path: str) -> bool:
    """Tell an export from a table by its ending or, where that does not tell, its content."""
    from hocal.annotations.exports.reading import recognise

    where = Path(path)
    if where.is_dir():
        return not any(where.glob("*.parquet"))
    if path.lower().endswith(ENDINGS):
        return True
    try:
        return where.is_file() and ".parquet" not in where.suffixes and recognise(path)
    except InputError:
        return False  # what is wrong with a table is said by who reads it


def _about_file(error: InputError, path: str) -> InputError:
    """Name the file in an error about the export as a whole."""
    if error.argument != "path":
        return error
    return FileError(**(error._fields() | {"argument": path}))
