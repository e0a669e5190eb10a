"""Full disks, read-only folders, threads, forks: whole files, the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import hocal
from hocal.cli import main

GENERATOR = np.random.default_rng(6)
P = GENERATOR.dirichlet(np.full(3, 0.7), size=150)
COUNTS = GENERATOR.multinomial(3, P)

# Prints a digest of what a fit says, whatever the order of the rows.
DIGEST = """
import hashlib, sys
import numpy as np
import hocal

generator = np.random.default_rng(6)
p = generator.dirichlet(np.full(3, 0.7), size=150)
counts = generator.multinomial(3, p)
order = np.random.default_rng(int(sys.argv[1])).permutation(150)
for method in sys.argv[2:]:
    calibrator = hocal.SnapshotCalibrator(method=method).fit(p[order], counts[order])
    parts = calibrator.decompose(p)
    certified = np.array(calibrator.certify().interval("aleatoric"))
    answers = [calibrator.predict_proba(p), parts.aleatoric, parts.epistemic, certified]
    digest = hashlib.sha256(b"".join(each.tobytes() for each in answers)).hexdigest()
    print(method, digest)
"""

# Fits, forks, and compares what parent and child predict.
FORK = """
import os
import numpy as np
import hocal

generator = np.random.default_rng(6)
p = generator.dirichlet(np.full(3, 0.7), size=150)
calibrator = hocal.SnapshotCalibrator().fit(p, generator.multinomial(3, p))
expected = calibrator.predict_proba(p)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(calibrator.predict_proba(p), expected) else 1)
print("same" if os.waitpid(child, 0)[1] == 0 else "other")
"""


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
        said = capsys.readouterr().err
        assert said.startswith("hocal: ")
        assert said.count("\n") == 1
        assert sorted(small_disk.iterdir()) == before


def test_a_folder_is_no_file_to_save_to(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="A file is wanted"):
        hocal.save(fitted(), tmp_path)


def test_eight_threads_share_a_calibrator() -> None:
    calibrator = hocal.SnapshotCalibrator().fit(P, COUNTS)
    expected = calibrator.decompose(P, counts=COUNTS).aleatoric

    with ThreadPoolExecutor(8) as threads:
        found = list(
            threads.map(lambda _: calibrator.decompose(P, counts=COUNTS).aleatoric, range(16))
        )

    assert all(np.array_equal(each, expected) for each in found)


def test_a_fork_predicts_the_same_numbers() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip

    assert ran.stdout.split() == ["same"]


def test_order_threads_and_hash_seeds_do_not_change_a_bit() -> None:
    methods = ["items", "cells", "empirical"]
    digests = set()
    for order, threads, seed in ((0, "1", "0"), (1, "2", "12345")):
        settings = {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads}
        ran = subprocess.run(
            [sys.executable, "-c", DIGEST, str(order), *methods],
            env={**os.environ, **settings}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        digests.add(ran.stdout)

    assert len(digests) == 1


def test_inputs_are_never_changed() -> None:
    p, counts = P.copy(), COUNTS.copy()
    calibrator = hocal.SnapshotCalibrator().fit(p, counts)
    calibrator.decompose(p, counts=counts)
    calibrator.predict_set(p)
    hocal.headroom(p, counts)
    hocal.Mixtures.from_points(p).condition(counts)

    assert np.array_equal(p, P)
    assert np.array_equal(counts, COUNTS)
