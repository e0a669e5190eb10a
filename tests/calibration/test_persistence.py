"""Saving and loading: the same numbers, whole files, clear refusals."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from scipy import sparse

import hocal
from hocal.calibration.persistence import read_notes

GENERATOR = np.random.default_rng(11)
PREDICTIONS = GENERATOR.dirichlet(np.full(3, 0.6), size=200)
COUNTS = GENERATOR.multinomial(4, PREDICTIONS)


def fitted(**options: object) -> hocal.SnapshotCalibrator:
    return hocal.SnapshotCalibrator(**{"method": "empirical", **options}).fit(PREDICTIONS, COUNTS)


@pytest.mark.parametrize(
    "partition",
    [
        hocal.TopLabelPartition(4),
        hocal.QuantilePartition(3),
        hocal.LevelSetPartition(1),
        hocal.KMeansPartition(5),
    ],
)
@pytest.mark.parametrize("method", ["empirical", "cells"])
def test_a_loaded_calibrator_predicts_the_same_numbers(
    tmp_path: Path, partition: object, method: str
) -> None:
    calibrator = fitted(partition=partition, method=method)
    hocal.save(calibrator, tmp_path / "model.hocal")

    loaded = hocal.load(tmp_path / "model.hocal")

    assert (loaded.predict_proba(PREDICTIONS) == calibrator.predict_proba(PREDICTIONS)).all()
    assert (
        loaded.decompose(PREDICTIONS).aleatoric == calibrator.decompose(PREDICTIONS).aleatoric
    ).all()
    assert loaded.source_.tolist() == calibrator.source_.tolist()
    assert loaded.diagnostics_ == calibrator.diagnostics_


def test_a_loaded_calibrator_can_be_added_to(tmp_path: Path) -> None:
    hocal.save(fitted(), tmp_path / "model.hocal")

    loaded = hocal.load(tmp_path / "model.hocal").partial_fit(PREDICTIONS, COUNTS)

    assert loaded.statistics_.n_items.sum() == 400


def test_points_that_all_cells_share_are_written_once(tmp_path: Path) -> None:
    calibrator = fitted(method="cells")
    hocal.save(calibrator, tmp_path / "model.hocal")

    n_points = len(calibrator.cell_mixtures_.points) // calibrator.statistics_.n_cells
    assert load_file(tmp_path / "model.hocal")["mixtures.points"].shape == (n_points, 3)


def test_a_file_that_repeats_the_points_of_each_cell_is_read(tmp_path: Path) -> None:
    """As every file did once."""
    calibrator = fitted(method="cells")
    m = calibrator.cell_mixtures_
    calibrator.cell_mixtures_ = hocal.Mixtures(m.points, m.weights, m.offsets, m.index)
    hocal.save(calibrator, tmp_path / "model.hocal")

    loaded = hocal.load(tmp_path / "model.hocal")

    assert (loaded.predict_proba(PREDICTIONS) == calibrator.predict_proba(PREDICTIONS)).all()


def test_sparse_counts_survive(tmp_path: Path) -> None:
    calibrator = hocal.SnapshotCalibrator(method="empirical").fit(
        PREDICTIONS, sparse.csr_array(COUNTS)
    )
    hocal.save(calibrator, tmp_path / "model.hocal")

    held = hocal.load(tmp_path / "model.hocal").statistics_.observed.counts

    assert (held.toarray() == calibrator.statistics_.observed.counts.toarray()).all()


def test_saving_replaces_a_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    for _ in range(2):
        hocal.save(fitted(), tmp_path / "model.hocal")

    assert [path.name for path in tmp_path.iterdir()] == ["model.hocal"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hocal.save(fitted(), tmp_path / "model.hocal")
    before = (tmp_path / "model.hocal").read_bytes()

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        hocal.save(fitted(partition=hocal.TopLabelPartition(2)), tmp_path / "model.hocal")

    assert (tmp_path / "model.hocal").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("size", [0, 7, 100, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "model.hocal"
    hocal.save(fitted(), path)
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(
        ValueError, match=r"`path` must name a complete file written by hocal\.save"
    ):
        hocal.load(path)


def test_an_altered_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.hocal"
    hocal.save(fitted(), path)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)

    with pytest.raises(ValueError, match="wrong checksum"):
        hocal.load(path)


def test_another_safetensors_file_is_refused(tmp_path: Path) -> None:
    save_file({"x": np.zeros(3)}, tmp_path / "other.safetensors")

    with pytest.raises(ValueError, match=r"`path` must name a file written by hocal\.save"):
        hocal.load(tmp_path / "other.safetensors")


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.hocal"
    hocal.save(fitted(), path)
    save_file(load_file(path), path, {"format": "hocal-calibrator", "version": "999"})

    with pytest.raises(ValueError, match="must name a file of version 7, got version 999"):
        hocal.load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No calibrator at"):
        hocal.load(tmp_path / "nothing.hocal")


def test_an_unfitted_calibrator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`calibrator` must be a fitted SnapshotCalibrator"):
        hocal.save(hocal.SnapshotCalibrator(), tmp_path / "model.hocal")


def test_a_callable_partition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"must have a partition of numbers, .* as `function` of a CallablePartition",
    ):
        hocal.save(fitted(partition=lambda p: p.argmax(axis=1)), tmp_path / "model.hocal")


def test_a_generator_as_seed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`calibrator` must have plain parameters"):
        hocal.save(fitted(random_state=np.random.default_rng(0)), tmp_path / "model.hocal")


def test_notes_come_back_as_they_were(tmp_path: Path) -> None:
    notes = {"classes": '["chat", "été"]', "item": "image"}
    hocal.save(fitted(), tmp_path / "model.hocal", notes=notes)

    assert read_notes(tmp_path / "model.hocal") == notes


def test_a_file_without_notes_has_none(tmp_path: Path) -> None:
    hocal.save(fitted(), tmp_path / "model.hocal")

    assert read_notes(tmp_path / "model.hocal") == {}


def test_notes_do_not_change_the_calibrator(tmp_path: Path) -> None:
    hocal.save(fitted(), tmp_path / "model.hocal", notes={"item": "image"})

    loaded = hocal.load(tmp_path / "model.hocal")

    assert (loaded.predict_proba(PREDICTIONS) == fitted().predict_proba(PREDICTIONS)).all()


def test_altered_notes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.hocal"
    hocal.save(fitted(), path, notes={"item": "image"})
    path.write_bytes(path.read_bytes().replace(b"image", b"imago"))

    with pytest.raises(ValueError, match="wrong checksum"):
        read_notes(path)


def test_notes_of_another_file_are_refused(tmp_path: Path) -> None:
    save_file({"x": np.zeros(3)}, tmp_path / "other.safetensors")

    with pytest.raises(ValueError, match=r"`path` must name a file written by hocal\.save"):
        read_notes(tmp_path / "other.safetensors")


def test_notes_other_than_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`notes` must map str to str, got 'k': 3\."):
        hocal.save(fitted(), tmp_path / "model.hocal", notes={"k": 3})  # type: ignore[dict-item]


def test_equal_models_have_equal_files(tmp_path: Path) -> None:
    for name in ("first", "second"):
        hocal.save(fitted(), tmp_path / name, notes={"item": "image", "a": "b"})

    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
