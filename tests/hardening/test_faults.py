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
calibrator = hocal.SnapshotCalibrator(method=sys.argv[2]).fit(p[order], counts[order])
parts = calibrator.decompose(p)
answers = np.concatenate([calibrator.predict_proba(p).ravel(), parts.aleatoric, parts.epistemic])
print(hashlib.sha256(answers.tobytes()).hexdigest())
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


def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o500)

    with pytest.raises(PermissionError, match=r"model\.hocal"):
        hocal.save(fitted(), folder / "model.hocal")


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


@pytest.mark.parametrize("method", ["items", "empirical"])
def test_order_threads_and_hash_seeds_do_not_change_a_bit(method: str) -> None:
    digests = set()
    for order, threads, seed in ((0, "1", "0"), (1, "4", "12345")):
        settings = {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads}
        ran = subprocess.run(
            [sys.executable, "-c", DIGEST, str(order), method],
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
