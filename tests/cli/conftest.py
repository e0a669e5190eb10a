"""Fixtures that run `hocal` inside this process."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from command_line import CLASSES, N_ITEMS, N_LABELS, Outcome, Run, Study, study_tables
from hocal.cli import main
from hocal.cli.demonstration import Demonstration, demonstrate
from hocal.datasets import make_mixture_world


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `hocal` with the given arguments."""

    def call(*arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as exit_:
            main(list(arguments))
        return Outcome(int(exit_.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def shown() -> Demonstration:
    """Show two thousand digits, with few and with many labels."""
    return demonstrate(n_items=2000, label_numbers=(2, 10))


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Predictions and labels of 120 items in every form that is read, and a model of them."""
    world = make_mixture_world(N_ITEMS, len(CLASSES), random_state=0)
    p, counts = world.predictions, world.draw(N_LABELS, random_state=1)
    study = Study(tmp_path_factory.mktemp("study"), p, counts)
    for name, table in study_tables(p, counts).items():
        parquet.write_table(table, study / f"{name}.parquet")
        if not any(pa.types.is_list(kind) for kind in table.schema.types):
            csv.write_csv(table, study / f"{name}.csv")
    with pytest.raises(SystemExit, match="0"):
        main([*study.fit, "-o", study / "model.hocal"])
    return study
