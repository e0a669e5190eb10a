"""The same fits elsewhere: rows in another order, other threads and hash seeds, and after a fork.

Run as a program it prints the digest of each method, then whether a fork predicts the same.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Literal

import numpy as np

import hocal

METHODS: tuple[Literal["items", "cells", "empirical"], ...] = ("items", "cells", "empirical")
GENERATOR = np.random.default_rng(6)
P = GENERATOR.dirichlet(np.full(3, 0.7), size=150)
COUNTS = GENERATOR.multinomial(3, P)


def fit(method: Any, order: Any = slice(None)) -> hocal.SnapshotCalibrator:
    """Fit all items, in some order."""
    return hocal.SnapshotCalibrator(method=method).fit(P[order], COUNTS[order])


def digest(calibrator: hocal.SnapshotCalibrator) -> str:
    """Return a digest of what a fit says, whatever the order of its rows."""
    parts = calibrator.decompose(P)
    certified = np.array(calibrator.certify().interval("aleatoric"))
    answers = [calibrator.predict_proba(P), parts.aleatoric, parts.epistemic, certified]
    return hashlib.sha256(b"".join(each.tobytes() for each in answers)).hexdigest()


def predicts_the_same_after_a_fork(calibrator: hocal.SnapshotCalibrator) -> bool:
    """Fork, and compare what parent and child predict."""
    expected = calibrator.predict_proba(P)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(calibrator.predict_proba(P), expected) else 1)
    return os.waitpid(child, 0)[1] == 0


def main() -> None:
    """Tell what fits of the rows in another order say."""
    order = np.random.default_rng(1).permutation(len(P))
    calibrators = [fit(method, order) for method in METHODS]
    print(*map(digest, calibrators))
    print("same" if predicts_the_same_after_a_fork(calibrators[0]) else "other")


if __name__ == "__main__":
    main()
