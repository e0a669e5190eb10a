"""`hocal predict`: a model and predictions in, a table with the uncertainty of each item out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from hocal._base.plurals import counted
from hocal.cli import options
from hocal.cli.engines import open_engine
from hocal.cli.files import table_kind
from hocal.cli.items import stack_scores
from hocal.cli.messages import ProgressBar, note, working
from hocal.cli.models import Model, load_model
from hocal.cli.outputs import open_writer, output_file, print_json
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


def predict(
    model: options.ModelFile,
    probabilities: options.ProbabilitiesFile,
    output: options.Output,
    item: options.ItemOfModel = None,
    probability_columns: options.ColumnsOfModel = None,
    cell: options.CellOfModel = None,
    probability_names: options.ProbabilityNames = None,
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
    calibration items; and cell_name. A line on stderr says when predictions look unlike those of
    the calibration items. On Spark, load the model inside mapInPandas instead.

    Example: hocal predict model.hocal softmax.parquet -o uncertainty.parquet
    """
    table_kind(output.name)  # refuse other endings before the work begins
    with (
        output_file(output, force=force) as temporary,
        open_engine("duckdb", memory_limit=memory_limit) as read,
    ):
        loaded = load_model(
            model, item=item, probability_columns=probability_columns, cell=cell, takes_scores=True
        )
        predictions = loaded.open(read, probabilities, names=probability_names)
        with working("Certifying"):
            cells = _describe_cells(loaded, entropy, confidence, simultaneous)
            predict_rows = partial(_predict_batch, loaded, predictions.columns, cells, entropy)
        n_rows = 0
        total = count_rows(predictions.table) if probabilities.endswith(".parquet") else None
        batches = predictions.table.to_arrow_reader(ROWS)
        schema = predict_rows(batches.schema.empty_table()).schema
        looks = Looks(loaded, predictions.columns)
        with open_writer(temporary, output.name, schema) as writer, ProgressBar() as progress:
            for batch in batches:
                place = partial(_place, batch[loaded.item], n_rows)
                with predictions.explained(place):
                    rows = predict_rows(batch)
                writer.write_table(rows)
                looks.take(batch)
                n_rows += batch.num_rows
                progress.update("Predicting", n_rows, total)
    unlike = looks.compare()
    if unlike is not None and unlike.warning:
        note(str(unlike))
    if as_json:
        print_json({"output": output, "n_items": n_rows, "familiarity": _as_dict(unlike)})
    else:
        typer.echo(f"{counted(n_rows, 'item')} in {output}")


class Looks:
    """What a sample of the items looks like, gathered batch by batch."""

    def __init__(self, model: Model, columns: Sequence[str]) -> None:
        self._model = model
        self._columns = columns
        self._summaries: list[Any] = []

    def take(self, batch: Any) -> None:
        """Summarise evenly spaced rows of a batch."""
        if self._model.calibrator.reference_ is None:
            return
        p, given = _inputs(self._model, self._columns, batch)
        chosen = slice(None, None, max(-(-len(p) // SUMMARISED), 1))
        if len(p):
            part = {name: None if x is None else x[chosen] for name, x in given.items()}
            self._summaries.append(self._model.calibrator.summarise(p[chosen], **part))
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
    return pa.table(columns | {"cell_name": pa.array(model.cell_names(), pa.string())})


def _predict_batch(
    model: Model, columns: Sequence[str], cells: Any, entropy: str, batch: Any
) -> Any:
    """Return the output rows of a batch, as an Arrow table: its items, then what holds of cells."""
    import numpy as np
    import pyarrow as pa

    calibrator = model.calibrator
    p, given = _inputs(model, columns, batch)
    top = p
    where = np.empty(0, dtype=np.int64)
    parts = dict.fromkeys(QUANTITIES, np.empty(0))
    if len(p):
        where = calibrator.partition_.assign(p, given["cells"])
        parts = calibrator.decompose(p, entropy, **given).as_dict()
        if model.probability_columns == []:  # scores alone name no class
            top = calibrator.predict_proba(p, **given)
    classes = pa.array(model.classes, pa.string())
    described = {
        model.item: batch[model.item],
        "cell": pa.array(where),
        "top_class": classes.take(pa.array(top.argmax(axis=1))),
        **{name: pa.array(parts[name] + 0.0) for name in QUANTITIES},
    }
    of_cells = cells.take(pa.array(where))
    return pa.table(described | {name: of_cells[name] for name in of_cells.column_names})


def _inputs(model: Model, columns: Sequence[str], batch: Any) -> tuple[Any, dict[str, Any]]:
    """Return the predictions of a batch, and its cells and scores where there are any."""
    import numpy as np

    p = np.column_stack([batch[name].to_numpy(zero_copy_only=False) for name in columns])
    own = None if model.cell is None else batch[model.cell].to_numpy(zero_copy_only=False)
    return p, {"cells": own, "features": stack_scores(batch, model.scores)}


def _place(items: Any, n_before: int, row: int) -> str:
    """Say in words where a row of a batch is in the file, counting from 1."""
    return f"for item {items[row].as_py()!r} in row {n_before + row + 1}"
