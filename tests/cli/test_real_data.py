"""The command line on real annotations: the numbers of Python, and raw files as they are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import hocal
from command_line import Run

DATA = Path(os.environ.get("HOCAL_DATA", "nowhere"))
# The first and the last thousand images, of which these have labels.
N_IMAGES, N_CALIBRATION, N_TEST = 2000, 1000, 300
CLASSES = ",".join(map(str, range(10)))

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="HOCAL_DATA names no folder")


def write_labels(path: Path, counts: NDArray[np.int64], first: int) -> None:
    """Write counts as one row per judgement."""
    entries = np.repeat(np.arange(counts.size), counts.ravel())
    parquet.write_table(pa.table({"image": entries // 10 + first, "choice": entries % 10}), path)


def load_cifar10h() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return predictions and label counts."""
    some = np.r_[: N_IMAGES // 2, -N_IMAGES // 2 : 0]
    counts = np.load(DATA / "cifar10h" / "cifar10h-counts.npy")
    p = np.load(DATA / "cifar10h" / "cifar10-test-softmax.npz")["resnet18"]
    return p[some], counts[some]


@pytest.fixture(scope="module")
def cifar10h(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CIFAR-10H as Parquet files: labels of calibration and test images, predictions of all."""
    folder = tmp_path_factory.mktemp("cifar10h")
    p, counts = load_cifar10h()
    write_labels(folder / "calibration.parquet", counts[:N_CALIBRATION], 0)
    write_labels(folder / "test.parquet", counts[-N_TEST:], len(counts) - N_TEST)
    columns = {f"p{j}": p[:, j] for j in range(10)}
    parquet.write_table(
        pa.table({"image": np.arange(len(p)), **columns}), folder / "softmax.parquet"
    )
    return folder


@pytest.mark.slow
def test_cifar10h_gives_the_numbers_of_python(run: Run, cifar10h: Path, tmp_path: Path) -> None:
    """One study from end to end: every step is exact, so any difference shows."""
    model, softmax = str(tmp_path / "model.hocal"), str(cifar10h / "softmax.parquet")
    options = ["--item", "image", "--label", "choice", "--classes", CLASSES, "--unlabelled", "drop"]
    fitted = run("fit", str(cifar10h / "calibration.parquet"), softmax, *options, "-o", model)
    predicted = run("predict", model, softmax, "-o", str(tmp_path / "out.parquet"))
    measure = [
        "--label",
        "choice",
        "--k",
        "2",
        "--n-resamples",
        "2",
        "--unlabelled",
        "drop",
        "--json",
    ]
    found = run("evaluate", model, str(cifar10h / "test.parquet"), softmax, *measure).json

    p, counts = load_cifar10h()
    calibrator = hocal.SnapshotCalibrator().fit(p[:N_CALIBRATION], counts[:N_CALIBRATION])
    parts, certificate = calibrator.decompose(p), calibrator.certify()
    error = calibrator.calibration_error(
        p[-N_TEST:], counts[-N_TEST:], k=2, n_resamples=2, random_state=0
    )
    table = parquet.read_table(tmp_path / "out.parquet")
    cells = table["cell"].to_numpy()
    assert (fitted.code, predicted.code) == (0, 0)
    for name, values in parts.as_dict().items():
        assert (table[name].to_numpy() == values).all()
        assert np.array_equal(
            table[f"cell_{name}_lower"].to_numpy(),
            certificate.interval(name)[0][cells],
            equal_nan=True,
        )
    measured = found["calibration_error"]
    assert (measured["mean"], measured["noise_floor"]) == (error.mean, error.noise_floor)
    assert found["aleatoric_error"]["items"] == hocal.aleatoric_error(
        calibrator.decompose(p[-N_TEST:]), counts[-N_TEST:], cells=cells[-N_TEST:]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_classes", "n_labels"), [("SP_amt", 2, 10_000), ("CF_amt", 5, 6030)]
)
def test_raw_crowd_files_are_fitted_and_measured(
    run: Run, tmp_path: Path, name: str, n_classes: int, n_labels: int
) -> None:
    raw = DATA / "crowd" / f"{name}.csv"
    items = sorted({line.split(",")[1] for line in raw.read_text("utf-8").splitlines()})
    p = np.random.default_rng(0).dirichlet(np.ones(n_classes), len(items))
    columns = {str(j): p[:, j] for j in range(n_classes)}
    parquet.write_table(pa.table({"item": items, **columns}), tmp_path / "p.parquet")
    files = [str(raw), str(tmp_path / "p.parquet")]
    options = ["--label", "label", "--names", "worker,item,label,gold,seconds", "--json"]

    fitted = run(
        "fit",
        *files,
        "--item",
        "item",
        *options,
        "--n-slices",
        "2",
        "-o",
        str(tmp_path / "m.hocal"),
    )
    measured = run(
        "evaluate", str(tmp_path / "m.hocal"), *files, *options, "--k", "2", "--n-resamples", "2"
    )

    assert fitted.json["n_labels"] == n_labels
    assert measured.json["n_items"] == len(items)


def test_repeated_judgements_in_a_raw_crowd_file_are_found(run: Run, tmp_path: Path) -> None:
    raw = DATA / "crowd" / "CF_amt.csv"
    items = sorted({line.split(",")[1] for line in raw.read_text("utf-8").splitlines()})
    columns = {str(j): np.full(len(items), 0.2) for j in range(5)}
    parquet.write_table(pa.table({"item": items, **columns}), tmp_path / "p.parquet")
    options = [
        "--item",
        "item",
        "--label",
        "label",
        "--annotator",
        "worker",
        "-o",
        str(tmp_path / "m.hocal"),
    ]
    options += ["--names", "worker,item,label,gold,seconds"]

    outcome = run("fit", str(raw), str(tmp_path / "p.parquet"), *options)

    assert outcome.code == 2
    assert "got several for 5 pairs" in outcome.err
    assert "--duplicates keep" in outcome.err
