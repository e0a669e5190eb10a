"""Full disks, read-only folders, threads, forks: whole files, the same bits."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocal
from file_server import serving
from hardening.repeated_fits import COUNTS, METHODS, P, digest, fit
from hocal.cli import main
from hocal.datasets.fetching import obtain
from hocal.datasets.sources import SOURCES, DataFile

ELSEWHERE = Path(__file__).with_name("repeated_fits.py")


@cache
def items() -> hocal.SnapshotCalibrator:
    return fit("items")


@cache
def fitted(n_slices: int = 2) -> hocal.SnapshotCalibrator:
    partition = hocal.TopLabelPartition(n_slices)
    return hocal.SnapshotCalibrator(partition, method="empirical").fit(P, COUNTS)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 64 kB, where that is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
        check=False, capture_output=True,
    ).returncode == 0  # fmt: skip
    if not mounted:
        pytest.skip("mounting a small disk is not allowed here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_keeps_the_old_file_and_nothing_else(small_disk: Path) -> None:
    path = small_disk / "model.hocal"
    hocal.save(fitted(), path)
    before = path.read_bytes()
    (small_disk / "filler").write_bytes(bytes(61_440 - len(before)))

    with pytest.raises(OSError, match="No space left"):
        hocal.save(fitted(40), path)

    assert path.read_bytes() == before
    assert sorted(entry.name for entry in small_disk.iterdir()) == ["filler", "model.hocal"]


def test_a_download_onto_a_full_disk_ends_and_goes_on_when_there_is_room(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("HOCAL_MIRROR", raising=False)
    content = np.random.default_rng(0).bytes(40_000)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(40_960))
    with serving() as server:
        server.files["file.bin"] = content
        checksum = hashlib.sha256(content).hexdigest()
        file = DataFile("file.bin", len(content), checksum, f"{server.url}/file.bin")
        with pytest.raises(OSError, match="No space left"):
            obtain(file, data_home=small_disk)
        assert {entry.name for entry in small_disk.iterdir()} <= {"filler", "file.bin.part"}
        filler.unlink()

        assert obtain(file, data_home=small_disk).read_bytes() == content

    assert [entry.name for entry in small_disk.iterdir()] == ["file.bin"]


def test_fetch_says_in_one_line_that_the_disk_is_full(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as server:
        monkeypatch.setenv("HOCAL_MIRROR", server.url)
        for file in SOURCES["crowd"].files:
            server.files[file.path] = bytes(file.size)
        with pytest.raises(SystemExit, match="2"):
            main(["data", "fetch", "crowd", "--data-home", str(small_disk)])

    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("hocal: ")
    assert "No space left" in said
    assert not list(small_disk.rglob("*.csv"))


def test_training_on_a_full_disk_ends_and_goes_on_from_its_last_checkpoint(
    small_disk: Path, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, TensorDataset

    from hocal.torch import train

    data = TensorDataset(torch.randn(32, 4), torch.tensor([[2, 0], [0, 2]]).repeat(16, 1))
    checkpoint = small_disk / "run.safetensors"

    def run(path: Path, report: Any = False) -> Any:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        loss = torch.nn.functional.cross_entropy
        loader = DataLoader(data, 8)
        options = {"epochs": 3, "random_state": 0, "checkpoint": path, "progress": report}
        train(model, loader, loss=lambda out, counts: loss(out, counts / 2.0), **options)
        return model.weight

    def fill(*_: Any) -> None:
        """Leave no room once the first checkpoint is there."""
        if checkpoint.exists():
            with suppress(OSError), open(small_disk / "filler", "wb") as file:
                file.write(bytes(65_536))

    with pytest.raises(OSError, match="No space left"):
        run(checkpoint, fill)
    assert sorted(entry.name for entry in small_disk.iterdir()) == ["filler", checkpoint.name]
    (small_disk / "filler").unlink()

    assert torch.equal(run(checkpoint), run(tmp_path / "other"))


@pytest.fixture
def read_only(small_disk: Path) -> Path:
    """Make the small disk one that nobody may write to, root neither."""
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    return small_disk


def test_a_read_only_folder_is_named(read_only: Path) -> None:
    with pytest.raises(OSError, match=r"Read-only file system: .*model\.hocal"):
        hocal.save(fitted(), read_only / "model.hocal")


@pytest.mark.parametrize("state", ["read-only", "full"])
def test_commands_say_in_one_line_that_nothing_can_be_written(
    small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    hocal.save(fitted(), tmp_path / "model", notes={"item": "item", "classes": '["a", "b", "c"]'})
    rows = [f"{row},{a},{b},{1 - a - b}" for row, (a, b, _) in enumerate(P.tolist())]
    (tmp_path / "p.csv").write_text("\n".join(["item,a,b,c", *rows]))
    if state == "full":
        (small_disk / "filler").write_bytes(bytes(60_000))
    else:
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    before = sorted(small_disk.iterdir())

    for command, name in (("predict", "out.csv"), ("report", "out.html")):
        arguments = [command, tmp_path / "model", tmp_path / "p.csv", "-o", small_disk / name]
        with pytest.raises(SystemExit, match="2"):
            main([str(each) for each in arguments])
        *warnings, said = capsys.readouterr().err.splitlines()
        assert said.startswith("hocal: ")
        assert ("No space left" if state == "full" else "Read-only") in said
        assert all(line.startswith("hocal: The aleatoric estimate") for line in warnings)
        assert sorted(small_disk.iterdir()) == before


def test_a_folder_is_no_file_to_save_to(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="A file is wanted"):
        hocal.save(fitted(), tmp_path)


def test_eight_threads_share_a_calibrator() -> None:
    calibrator = items()
    expected = calibrator.decompose(P, counts=COUNTS).aleatoric

    with ThreadPoolExecutor(8) as threads:
        found = list(
            threads.map(lambda _: calibrator.decompose(P, counts=COUNTS).aleatoric, range(16))
        )

    assert all(np.array_equal(each, expected) for each in found)


@pytest.fixture(scope="module")
def elsewhere() -> list[str]:
    """Fit in another process, with other threads and another hash seed; return what it tells."""
    settings = {"PYTHONHASHSEED": "12345", "OMP_NUM_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", ELSEWHERE], env={**os.environ, **settings},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return ran.stdout.splitlines()


@pytest.mark.xdist_group("elsewhere")
def test_a_fork_predicts_the_same_numbers(elsewhere: list[str]) -> None:
    assert elsewhere[1] == "same"


@pytest.mark.xdist_group("elsewhere")
def test_order_threads_and_hash_seeds_do_not_change_a_bit(elsewhere: list[str]) -> None:
    digests = [digest(items() if method == "items" else fit(method)) for method in METHODS]

    assert elsewhere[0].split() == digests


def test_inputs_are_never_changed() -> None:
    p, counts = P.copy(), COUNTS.copy()
    calibrator = hocal.SnapshotCalibrator().fit(p, counts)
    calibrator.decompose(p, counts=counts)
    calibrator.predict_set(p)
    hocal.headroom(p, counts)
    hocal.Mixtures.from_points(p).condition(counts)

    assert np.array_equal(p, P)
    assert np.array_equal(counts, COUNTS)
