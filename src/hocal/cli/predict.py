"""`hocal predict`: a model and predictions in, a table with the uncertainty of each item out."""

from __future__ import annotations

from functools import partial
from typing import Any

import typer

from hocal.cli import options
from hocal.cli.files import table_kind
from hocal.cli.messages import ProgressBar, working
from hocal.cli.models import Model, load_model
from hocal.cli.options import split_list
from hocal.cli.outputs import open_writer, output_file, print_json
from hocal.cli.tables import Probabilities, count_rows, open_engine

# in a batch: some tens of MB for ten classes
ROWS = 100_000

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

    Writes one row per item in the order of PROBABILITIES: item, cell, top_class, aleatoric,
    epistemic, predictive, for each of the three the certified interval of the cell, _lower and
    _upper, empty for a cell without calibration items, and cell_name. On Spark, load the model
    inside mapInPandas instead.

    Example: hocal predict model.hocal softmax.parquet -o uncertainty.parquet
    """
    table_kind(output.name)  # refuse other endings before the work begins
    with (
        output_file(output, force=force) as temporary,
        open_engine("duckdb", memory_limit=memory_limit) as read,
    ):
        loaded = load_model(model).called(
            item=item,
            probability_columns=split_list(probability_columns, "--probability-columns"),
            cell=cell,
        )
        predictions = loaded.open(
            read, probabilities, names=split_list(probability_names, "--probability-names")
        )
        with working("Certifying"):
            cells = _describe_cells(loaded, entropy, confidence, simultaneous)
        n_rows = 0
        total = count_rows(predictions.table) if probabilities.endswith(".parquet") else None
        batches = predictions.table.to_arrow_reader(ROWS)
        schema = _join(batches.schema.empty_table(), cells[:0], [], loaded).schema
        with open_writer(temporary, output.name, schema) as writer, ProgressBar() as progress:
            for batch in batches:
                place = partial(_place, batch[loaded.item], n_rows)
                with predictions.explained(place):
                    rows = _predict_batch(loaded, predictions, cells, batch)
                writer.write_table(rows)
                n_rows += batch.num_rows
                progress.update("Predicting", n_rows, total)
    if as_json:
        print_json({"output": output, "n_items": n_rows})
    else:
        typer.echo(f"{n_rows} items in {output}")


def _describe_cells(model: Model, entropy: str, confidence: float, simultaneous: bool) -> Any:
    """Return an Arrow table with one row per cell: what is predicted for each of its items."""
    import numpy as np
    import pyarrow as pa

    import hocal

    calibrator = model.calibrator
    certificate = calibrator.certify(confidence, simultaneous=simultaneous)
    parts = hocal.decompose(
        calibrator.cell_mixtures_, entropy, panel_size=calibrator.panel_size
    ).as_dict()
    columns: dict[str, Any] = {"cell": np.arange(len(certificate))}
    columns |= {name: parts[name] for name in QUANTITIES}
    for name in QUANTITIES:
        lower, upper = certificate.interval(name, entropy)
        # no negative zeros
        columns[f"{name}_lower"] = lower + 0.0
        columns[f"{name}_upper"] = upper + 0.0
    # a NaN becomes an empty entry
    arrays = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    return pa.table(arrays).append_column("cell_name", pa.array(model.cell_names(), pa.string()))


def _predict_batch(model: Model, predictions: Probabilities, cells: Any, batch: Any) -> Any:
    """Return the output rows of a batch, as an Arrow table."""
    import numpy as np
    import pyarrow as pa

    columns = [batch[name].to_numpy(zero_copy_only=False) for name in predictions.columns]
    p = np.column_stack(columns)
    own = None if model.cell is None else batch[model.cell].to_numpy(zero_copy_only=False)
    where = model.calibrator.partition_.assign(p, own)
    return _join(batch, cells.take(pa.array(where)), p.argmax(axis=1), model)


def _place(items: Any, n_before: int, row: int) -> str:
    """Say in words where a row of a batch is in the file, counting from 1."""
    return f"for item {items[row].as_py()!r} in row {n_before + row + 1}"


def _join(batch: Any, described: Any, top: Any, model: Model) -> Any:
    """Return the columns of the output: the item, then what is known of its cell."""
    import pyarrow as pa

    classes = pa.array(model.classes, pa.string()).take(pa.array(top, pa.int64()))
    with_classes = described.add_column(1, "top_class", classes)
    return with_classes.add_column(0, model.item, batch[model.item])
