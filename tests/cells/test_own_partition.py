"""A partition that a user writes, as CONTRIBUTING.md shows, works wherever one of hocal does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import hocal
from hocal.cells import CellLayout, CellStatistics, Partition, find_partition
from hocal.cli import main
from hocal.report import summarise

GENERATOR = np.random.default_rng(3)
PREDICTIONS = GENERATOR.dirichlet(np.full(3, 0.7), size=300)
COUNTS = GENERATOR.multinomial(3, PREDICTIONS)
CLASSES = ["ant", "bee", "cat"]


class TopTwoPartition(Partition):
    """Cells by first and second choice; the number of classes is all it needs."""

    def _lay_out(self, n_classes: int) -> tuple[int, CellLayout]:
        return n_classes**2, CellLayout.unordered(n_classes**2)

    def _locate(self, p: NDArray[np.float64]) -> NDArray[Any]:
        first, second = np.argsort(-p, axis=1, kind="stable")[:, :2].T
        return first * self.n_classes_ + second

    def describe(self, cell: int, class_names: Sequence[str]) -> str:
        """Name both choices."""
        first, second = divmod(cell, self.n_classes_)
        return f"{class_names[first]}, then {class_names[second]}"


class MedianPartition(Partition):
    """Two cells, below and above the median of one class; it learns where that is."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def _learn(self, p: NDArray[np.float64]) -> tuple[int, CellLayout]:
        self.median_ = float(np.median(p[:, self.column]))
        return 2, CellLayout.grid(1, 2)

    def _locate(self, p: NDArray[np.float64]) -> NDArray[Any]:
        return p[:, self.column] > self.median_


class EdgesPartition(Partition):
    """Cells between given probabilities of the first class, which an engine can find as well."""

    def __init__(self, edges: NDArray[np.float64]) -> None:
        self.edges = edges

    def _lay_out(self, n_classes: int) -> tuple[int, CellLayout]:  # noqa: ARG002
        return len(self.edges) + 1, CellLayout.grid(1, len(self.edges) + 1)

    def _locate(self, p: NDArray[np.float64]) -> NDArray[Any]:
        return np.searchsorted(self.edges, p[:, 0])

    def _locate_in_engine(self, frame: Any, columns: Sequence[str]) -> Any:
        passed = [(nw.col(columns[0]) > edge).cast(nw.Int64) for edge in self.edges.tolist()]
        return frame.with_columns(nw.sum_horizontal(*passed).alias("cell"))


MAKERS: list[Callable[[], Partition]] = [
    TopTwoPartition,
    MedianPartition,
    lambda: EdgesPartition(np.array([0.2, 0.6])),
]
every_partition = pytest.mark.parametrize("make", MAKERS, ids=["top two", "median", "edges"])


def fitted(partition: Partition) -> hocal.SnapshotCalibrator:
    return hocal.SnapshotCalibrator(partition, method="empirical").fit(PREDICTIONS, COUNTS)


def statistics(partition: Partition) -> CellStatistics:
    cells = partition.assign(PREDICTIONS)
    return CellStatistics.from_items(PREDICTIONS, COUNTS, cells, partition.layout_)


@every_partition
def test_a_calibrator_takes_it(make: Callable[[], Partition]) -> None:
    calibrator = fitted(make())

    expected = make().fit(PREDICTIONS).assign(PREDICTIONS)
    assert calibrator.locate(PREDICTIONS).cells.tolist() == expected.tolist()


@every_partition
def test_statistics_serve_as_well_as_items(make: Callable[[], Partition]) -> None:
    partition = make().fit(PREDICTIONS)

    calibrator = hocal.SnapshotCalibrator(partition, method="empirical")
    calibrator.fit_statistics(statistics(partition))

    expected = fitted(make()).predict_proba(PREDICTIONS)
    assert calibrator.predict_proba(PREDICTIONS).tolist() == expected.tolist()


def test_one_that_needs_no_predictions_need_not_be_fitted_for_statistics() -> None:
    held = statistics(TopTwoPartition().fit(PREDICTIONS))

    calibrator = hocal.SnapshotCalibrator(TopTwoPartition(), method="empirical")
    calibrator.fit_statistics(held)

    cells = calibrator.locate(PREDICTIONS).cells
    assert np.bincount(cells, minlength=9).tolist() == held.n_items.tolist()


def test_one_that_learns_must_be_fitted_for_statistics() -> None:
    """It once was fitted on a single uniform row, and half of the items changed their cell."""
    held = statistics(MedianPartition().fit(PREDICTIONS))

    with pytest.raises(hocal.InputError, match="must be fitted before fit_statistics"):
        hocal.SnapshotCalibrator(MedianPartition(), method="cells").fit_statistics(held)


@every_partition
def test_a_file_brings_it_back(make: Callable[[], Partition], tmp_path: Path) -> None:
    calibrator = fitted(make())
    hocal.save(calibrator, tmp_path / "model.hocal")

    loaded = hocal.load(tmp_path / "model.hocal")

    assert type(loaded.partition_) is type(calibrator.partition_)
    expected = calibrator.predict_proba(PREDICTIONS)
    assert loaded.predict_proba(PREDICTIONS).tolist() == expected.tolist()


def test_a_report_calls_cells_what_it_calls_them() -> None:
    summary = summarise(fitted(TopTwoPartition()), PREDICTIONS, classes=CLASSES)

    assert "ant, then bee" in {row["name"] for row in summary["cells"]}


def test_a_partition_without_words_numbers_its_cells() -> None:
    names = MedianPartition().fit(PREDICTIONS).cell_names(CLASSES)

    assert names == ["cell 0", "cell 1"]


def tables(partition: Partition | None = None) -> tuple[pa.Table, pa.Table]:
    items = np.arange(len(PREDICTIONS))
    labels = np.repeat(np.tile(CLASSES, len(items)), COUNTS.ravel())
    cells = {} if partition is None else {"cell": partition.assign(PREDICTIONS)}
    columns = dict(zip(CLASSES, PREDICTIONS.T, strict=True))
    return (
        pa.table({"item": np.repeat(items, 3), "label": labels}),
        pa.table({"item": items, **columns, **cells}),
    )


ARGUMENTS: dict[str, Any] = {
    "item": "item",
    "label": "label",
    "classes": CLASSES,
    "probability_columns": CLASSES,
}


def test_an_engine_computes_the_cells_that_it_can_express() -> None:
    partition = EdgesPartition(np.array([0.2, 0.6]))

    found = hocal.cell_statistics(*tables(), partition=partition, **ARGUMENTS)

    assert found.n_items.tolist() == statistics(partition.fit(PREDICTIONS)).n_items.tolist()


def test_an_engine_asks_for_the_cells_that_it_cannot_express() -> None:
    with pytest.raises(hocal.InputError, match=r"`cell` must name a column .* a TopTwoPartition"):
        hocal.cell_statistics(*tables(), partition=TopTwoPartition(), **ARGUMENTS)


def test_stored_cells_serve_an_engine() -> None:
    partition = TopTwoPartition().fit(PREDICTIONS)
    held = tables(partition)

    found = hocal.cell_statistics(*held, partition=TopTwoPartition(), cell="cell", **ARGUMENTS)

    assert found.n_items.tolist() == statistics(partition).n_items.tolist()


def test_whoever_moves_items_to_other_cells_inherits_no_engine_expression_and_no_names() -> None:
    class MirroredPartition(hocal.UniformPartition):
        def _locate(self, p: NDArray[np.float64]) -> Any:
            return super()._locate(p[:, ::-1])

    partition = MirroredPartition(2).fit([[0.5, 0.5]])

    assert not partition.works_in_engine
    assert partition.describe(0, CLASSES) == "cell 0"


def test_a_partition_with_an_assign_of_its_own_is_asked_that() -> None:
    class ConstantPartition(hocal.PrecomputedPartition):
        def assign(self, probabilities: Any, cells: Any = None) -> Any:  # noqa: ARG002
            return np.full(len(probabilities), 1)

    calibrator = fitted(ConstantPartition(2))

    assert calibrator.statistics_.n_items.tolist() == [0, 300]


def test_cells_beyond_the_declared_number_are_refused() -> None:
    class CarelessPartition(TopTwoPartition):
        def _locate(self, p: NDArray[np.float64]) -> NDArray[Any]:
            return super()._locate(p) + 5

    with pytest.raises(
        ValueError, match=r"`CarelessPartition\.assign\(probabilities\)` must be below 9"
    ):
        fitted(CarelessPartition())


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    class RememberingPartition(TopTwoPartition):
        def fit(self, probabilities: Any) -> Any:
            self.seen_ = {1.5}
            return super().fit(probabilities)

    with pytest.raises(
        hocal.InputError, match=r"got \{1\.5\} as `seen_` of a RememberingPartition"
    ):
        hocal.save(fitted(RememberingPartition()), tmp_path / "model.hocal")


def test_two_classes_cannot_share_a_name() -> None:
    with pytest.raises(hocal.InputError, match="`name` must be that of no other partition"):

        class Other(Partition, name="TopLabelPartition"):
            pass


MODULE = """
import numpy as np
from hocal.cells import CellLayout, Partition

class SecondPartition(Partition):
    def _lay_out(self, n_classes):
        return n_classes, CellLayout.unordered(n_classes)

    def _locate(self, p):
        return np.argsort(-p, axis=1, kind="stable")[:, 1]

    def describe(self, cell, class_names):
        return f"{class_names[cell]} second"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, a module with a partition, and a model that the command line fitted with it."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "lab_cells.py").write_text(MODULE)
    labels, predictions = tables()
    parquet.write_table(labels, folder / "labels.parquet")
    parquet.write_table(predictions, folder / "predictions.parquet")
    options = "--item item --label label --partition lab_cells:SecondPartition -o model.hocal"
    fit = ["fit", "labels.parquet", "predictions.parquet", *options.split()]
    start = "from hocal.cli import main; main()"
    command = [sys.executable, "-c", start, "--import", "lab_cells", *fit]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


def test_the_command_line_predicts_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))

    command = "evaluate model.hocal labels.parquet predictions.parquet --label label"
    with pytest.raises(SystemExit, match="0"):
        main(["--import", "lab_cells", *command.split()])

    assert find_partition("lab_cells:SecondPartition").__name__ == "SecondPartition"
    assert "ant second" in capsys.readouterr().out


def test_a_file_with_an_unknown_partition_names_the_import(folder: Path) -> None:
    code = "import hocal; hocal.load('model.hocal')"

    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)

    remedy = "Import what defines it first: import lab_cells."
    assert f"got 'lab_cells:SecondPartition' in the file. {remedy}" in ran.stderr
