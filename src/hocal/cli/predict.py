"""`hocal predict`: a model and predictions in, a table with the uncertainty of each item out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hocal._base.plurals import counted
from hocal.cli import options
from hocal.cli.caution import cells_outside, warn_outside
from hocal.cli.engines import open_engine
from hocal.cli.files import table_kind
from hocal.cli.items import label_options
from hocal.cli.messages import ProgressBar, note, working
from hocal.cli.models import Model, load_model
from hocal.cli.option_groups import (
    LabelColumns,
    PredictionColumns,
    Rules,
    grouped,
    refuse_without_labels,
)
from hocal.cli.outputs import open_writer, output_file, print_json, refuse_item_name
from hocal.cli.own_labels import OWN_COLUMNS, OwnLabels, check_objective, describe_own
from hocal.cli.predictions import GivenRows, Probabilities
from hocal.cli.tables import count_rows

if TYPE_CHECKING:
    from hocal.decisions import Familiarity

# in a batch: some tens of MB for ten classes
ROWS = 100_000
# of a batch, that are compared with the calibration items: enough to see one in a hundred change
SUMMARISED = 10_000
# in all, some 10 MB; of longer tables earlier rows are thinned out
MOST_SUMMARISED = 200_000

QUANTITIES = ("aleatoric", "epistemic", "predictive")
OF_ITEMS = ("cell", "top_class", *QUANTITIES)
OF_CELLS = (
    *(f"cell_{name}_{what}" for name in QUANTITIES for what in ("lower", "upper", "inside")),
    "cell_name",
)


@grouped
def predict(
    model: options.ModelFile,
    probabilities: options.ProbabilitiesFile,
    output: options.Output,
    predicted: PredictionColumns,
    columns: LabelColumns,
    rules: Rules,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS",
            help="Table of labels of these items: what is left when they are known, too.",
        ),
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            help="What one more label is worth, with --labels: for the distribution (of labels), "
            "aleatoric (uncertainty) or majority."
        ),
    ] = "distribution",
    confidence: options.Confidence = 0.95,
    simultaneous: options.Simultaneous = False,
    entropy: options.Entropy = "shannon",
    memory_limit: options.MemoryLimit = "1GB",
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Split the uncertainty of each item, batch by batch, so that a table of any size will do.

    Writes one row per item in the order of PROBABILITIES: item, cell, top_class; aleatoric,
    epistemic and predictive uncertainty of the item; cell_aleatoric_lower, cell_aleatoric_upper and
    the like, the certified interval for the average over the item's cell, empty for a cell without
    calibration items; and cell_name. With --labels also n_labels, votes, the three uncertainties
    given the item's own labels, limits of its aleatoric uncertainty, and what one more label is
    expected to bring. A line on stderr says when predictions look unlike those of the calibration
    items. On Spark, load the model inside mapInPandas instead.

    Example: hocal predict model.hocal softmax.parquet -o uncertainty.parquet
    """
    table_kind(output.name)  # refuse other endings before the work begins
    refuse_without_labels(labels, "--objective")
    check_objective(objective)
    with (
        output_file(output, force=force) as temporary,
        open_engine("duckdb", memory_limit=memory_limit) as read,
    ):
        loaded = load_model(model, predicted)
        own_columns = OWN_COLUMNS if labels is not None else ()
        refuse_item_name(loaded.item, [*OF_ITEMS, *OF_CELLS, *own_columns])
        opened = loaded.open(read, probabilities)
        own = None
        if labels is not None:
            choices = label_options(labels, columns, rules._asdict() | {"unlabelled": "drop"})
            own = OwnLabels.read(read, labels, choices, opened, loaded.classes)
        with working("Certifying"):
            cells = _describe_cells(loaded, entropy, confidence, simultaneous)
        settings = Settings(entropy, objective, confidence)
        predict_rows = partial(_predict_batch, loaded, opened, cells, own, settings)
        looks = Looks(loaded)
        total = count_rows(opened.table) if probabilities.endswith(".parquet") else None
        n_rows = _write(temporary, output.name, opened, predict_rows, looks, total)
    _say(looks.compare(), output, n_rows, as_json=as_json)


class Settings(NamedTuple):
    """What is computed of each item."""

    entropy: str
    objective: str  #: of one more label
    confidence: float  #: of the limits of an item with labels


def _write(
    path: Path,
    name: str,
    opened: Probabilities,
    predict_rows: Callable[[Any, GivenRows], Any],
    looks: Looks,
    total: int | None,
) -> int:
    """Write the rows of all items, batch by batch; return how many there are."""
    n_rows = 0
    batches = opened.table.to_arrow_reader(ROWS)
    empty = batches.schema.empty_table()
    schema = predict_rows(empty, opened.arrays(empty)).schema
    with open_writer(path, name, schema) as writer, ProgressBar() as progress:
        for batch in batches:
            with opened.explained(partial(_place, batch[opened.item], n_rows)):
                given = opened.arrays(batch)
                rows = predict_rows(batch, given)
                looks.take(given)
            writer.write_table(rows)
            n_rows += batch.num_rows
            progress.update("Predicting", n_rows, total)
    return n_rows


def _say(unlike: Familiarity | None, output: Path, n_rows: int, *, as_json: bool) -> None:
    """Say what was written, and whether the items look like those of the calibration."""
    if unlike is not None and unlike.warning:
        note(str(unlike))
    if as_json:
        print_json({"output": output, "n_items": n_rows, "familiarity": _as_dict(unlike)})
    else:
        typer.echo(f"{counted(n_rows, 'item')} in {output}")


class Looks:
    """What a sample of the items looks like, gathered batch by batch."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._summaries: list[Any] = []

    def take(self, given: GivenRows) -> None:
        """Summarise evenly spaced rows of a batch."""
        if self._model.calibrator.reference_ is None:
            return
        n_rows = len(given.probabilities)
        part = given.rows(slice(None, None, max(-(-n_rows // SUMMARISED), 1)))
        if n_rows:
            found = self._model.calibrator.summarise(part.probabilities, **part.beside)
            self._summaries.append(found)
        if sum(map(len, self._summaries)) > MOST_SUMMARISED:
            self._summaries = [each[::2] for each in self._summaries]

    def compare(self) -> Familiarity | None:
        """Compare them with the calibration items; None where either are too few or not known."""
        import numpy as np

        from hocal.decisions.familiarity import FEWEST, compare_summaries

        reference = self._model.calibrator.reference_
        n_new = sum(map(len, self._summaries))
        if reference is None or min(n_new, len(reference.summaries)) < FEWEST:
            return None
        return compare_summaries(self._model.calibrator, np.concatenate(self._summaries))


def _as_dict(unlike: Familiarity | None) -> dict[str, Any] | None:
    """Return what JSON says about unfamiliar items."""
    if unlike is None:
        return None
    shown = {name: getattr(unlike, name) for name in ("warning", "p_value", "level", "by_summary")}
    return shown | {"share": unlike.share._asdict()}


def _describe_cells(model: Model, entropy: str, confidence: float, simultaneous: bool) -> Any:
    """Return an Arrow table with one row per cell: what is proved about its average, its name."""
    import pyarrow as pa

    certificate = model.calibrator.certify(confidence, simultaneous=simultaneous)
    columns: dict[str, Any] = {}
    for name in QUANTITIES:
        lower, upper = certificate.interval(name, entropy)
        # no negative zeros; a NaN becomes an empty entry
        columns[f"cell_{name}_lower"] = pa.array(lower + 0.0, from_pandas=True)
        columns[f"cell_{name}_upper"] = pa.array(upper + 0.0, from_pandas=True)
        columns[f"cell_{name}_inside"] = pa.array(certificate.inside(name, entropy))
    warn_outside(cells_outside(certificate))
    return pa.table(columns | {"cell_name": pa.array(model.cell_names(), pa.string())})


def _predict_batch(
    model: Model,
    opened: Probabilities,
    cells: Any,
    own: OwnLabels | None,
    settings: Settings,
    batch: Any,
    given: GivenRows,
) -> Any:
    """Return the output rows of a batch, as an Arrow table: its items, then what holds of cells."""
    import numpy as np
    import pyarrow as pa

    calibrator = model.calibrator
    top = given.mean
    where = np.empty(0, dtype=np.int64)
    parts = dict.fromkeys(QUANTITIES, np.empty(0))
    if len(top):
        where = calibrator.partition_.assign(top, given.cells)
        decomposed = calibrator.decompose(given.probabilities, settings.entropy, **given.beside)
        parts = decomposed.as_dict()
        if model.scores_alone:  # scores alone name no class
            top = calibrator.predict_proba(given.probabilities, **given.beside)
    items = batch[opened.item]
    described = {
        opened.item: items,
        "cell": pa.array(where),
        "top_class": pa.array(model.classes, pa.string()).take(pa.array(top.argmax(axis=1))),
        **{name: pa.array(parts[name] + 0.0) for name in QUANTITIES},
    }
    if own is not None:
        described |= describe_own(calibrator, own, items, given, settings._asdict())
    of_cells = cells.take(pa.array(where))
    return pa.table(described | {name: of_cells[name] for name in of_cells.column_names})


def _place(items: Any, n_before: int, row: int) -> str:
    """Say in words where a row of a batch is in the file, counting from 1."""
    return f"for item {items[row].as_py()!r} in row {n_before + row + 1}"
