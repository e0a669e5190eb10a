"""Time and peak memory of every public operation on large data, each in a process of its own.

    python benchmarks/sizes.py --jobs 2 # a quarter of an hour, writes results/sizes.json
    python benchmarks/sizes.py --tiny   # half a minute in one process, writes nothing

Data and fitted models are made first and lie in a temporary folder, which every process reads.
What takes longer than five minutes or more than 16 GB of addresses is stored as such.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import MOST_BYTES, measure_once, versions
from scipy import sparse

import hocal
import hocal.report
from hocal.calibration import label_posterior, label_prior
from hocal.decisions import class_bias, familiarity, refusal_rule, risk_coverage, stand_in

RESULTS = Path(__file__).parent / "results" / "sizes.json"
SIZES = ((1_000_000, 10), (100_000, 100), (50_000, 1_000))
TINY = (200, 4)
# Public functions that are not here, and why.
ELSEWHERE = {
    "cell_statistics": "annotations.py measures it in engines",
    "interval_width": "a formula, whose time does not depend on data",
    "items_needed": "a formula, whose time does not depend on data",
    "read_annotations": "reads files, as fast as their format",
}
N_LABELS = 3
N_MEMBERS = 2  # of an ensemble, the fewest
DENSE_CLASSES = 100  # beyond, counts are sparse, as people with many classes store them
CONCENTRATION = 2.0  # of predictions over all classes: a few likely ones each
SHARPNESS = 3.0  # of the items around their predictions: epistemic uncertainty that a fit can find
SMALLEST = 1e-12  # probability, so that no loss is infinite
WATCHED = 10_000  # items that a monitor looks at, one after the other
N_RESAMPLES = 3  # of a calibration error, which takes as long for each; 100 by default
MOST_SECONDS = 300  # of a process, its preparations included
BATCH = 1_000  # items whose mixtures are made at once, since those of all would not fit into memory

Operation = Callable[[], Any]


@dataclass(frozen=True)
class Size:
    """Data of one size: made once, read by each process."""

    folder: Path
    n_items: int
    n_classes: int

    def make(self) -> None:
        """Draw predictions, the items' own probabilities around them, and labels."""
        generator = np.random.default_rng(0)
        shape = (self.n_items, self.n_classes)
        p = generator.standard_gamma(CONCENTRATION / self.n_classes, size=shape) + SMALLEST
        p /= p.sum(axis=1, keepdims=True)
        np.save(self.folder / "predictions.npy", p)
        q = generator.standard_gamma(SHARPNESS * p + SMALLEST) + SMALLEST
        q /= q.sum(axis=1, keepdims=True)
        counts = sparse.csr_array(generator.multinomial(N_LABELS, q))
        sparse.save_npz(self.folder / "counts.npz", counts)

    @cached_property
    def p(self) -> Any:
        """Predictions."""
        return np.load(self.folder / "predictions.npy")

    @cached_property
    def counts(self) -> Any:
        """Labels of the items, dense unless there are many classes."""
        stored = sparse.csr_array(sparse.load_npz(self.folder / "counts.npz"))
        return stored.toarray() if self.n_classes <= DENSE_CLASSES else stored

    @cached_property
    def second(self) -> Any:
        """Predictions of another model, less sure of itself."""
        return 0.8 * self.p + 0.2 / self.n_classes

    @cached_property
    def ensemble(self) -> hocal.Mixtures:
        """Both models as the members of an ensemble."""
        return hocal.Mixtures.from_ensemble(np.stack([self.p, self.second], axis=1))

    @cached_property
    def cells(self) -> Any:
        """Cell of each item."""
        return self.partition.assign(self.p)

    @cached_property
    def table(self) -> Any:
        """One row per judgement."""
        import pandas as pd

        stored = sparse.csr_array(sparse.load_npz(self.folder / "counts.npz"))
        rows = np.repeat(np.arange(self.n_items), np.diff(stored.indptr))
        items = np.repeat(rows, stored.data)
        annotator = np.arange(len(items)) % (10 * N_LABELS) + 100 * (items % 10)
        labels = np.repeat(stored.indices, stored.data)
        return pd.DataFrame({"item": items, "label": labels, "annotator": annotator})

    @cached_property
    def partition(self) -> Any:
        """The default cells."""
        return hocal.TopLabelPartition().fit(self.p)

    @property
    def input_bytes(self) -> int:
        """Memory of predictions and counts."""
        counts = self.counts
        if isinstance(counts, np.ndarray):
            return int(self.p.nbytes + counts.nbytes)
        parts = (counts.data, counts.indices, counts.indptr)
        return int(self.p.nbytes + sum(part.nbytes for part in parts))

    def model(self, method: str) -> Path:
        """File of a fitted calibrator."""
        return self.folder / f"{method}.hocal"

    def fit(self, method: Any) -> hocal.SnapshotCalibrator:
        """Fit a calibrator."""
        return hocal.SnapshotCalibrator(method=method).fit(self.p, self.counts)

    def load(self, method: str = "items") -> hocal.SnapshotCalibrator:
        """Return a fitted calibrator, which another process may have fitted."""
        path = self.model(method)
        if not path.exists():
            hocal.save(self.fit(method), path)
        return hocal.load(path)


def fits(size: Size) -> dict[str, Callable[[], Operation]]:
    """Return the fits, and what a fitted calibrator does; each prepares the call that is timed."""
    p, load = (lambda: size.p), size.load
    return {
        "fit": lambda: partial(size.fit, "items"),
        'fit, method="cells"': lambda: partial(size.fit, "cells"),
        'fit, method="empirical"': lambda: partial(size.fit, "empirical"),
        "predict_proba": lambda: partial(load().predict_proba, p()),
        "decompose": lambda: partial(load().decompose, p()),
        "decompose, own labels": lambda: partial(load().decompose, p(), counts=size.counts),
        f"predict_mixture, {BATCH:,} items": lambda: partial(load().predict_mixture, p()[:BATCH]),
        'predict_set, kind="labels"': lambda: partial(load().predict_set, p(), kind="labels"),
        'predict_set, shape="certified"': lambda: partial(
            load().predict_set, p(), shape="certified"
        ),
        "certify": lambda: load().certify,
        'certify, by="aleatoric"': lambda: partial(load().certify, by="aleatoric"),
        "save": lambda: partial(hocal.save, load(), size.folder / "saved.hocal"),
        "load": lambda: partial(hocal.load, _existing(size, "items")),
        "summarise and page": lambda: partial(_report, load(), p(), size.counts),
        f"Monitor.update, {WATCHED:,} items": lambda: partial(
            hocal.Monitor(load()).update, p()[:WATCHED], size.counts[:WATCHED]
        ),
        "familiarity": lambda: partial(familiarity, load(), p()),
        "plan_budget": lambda: partial(
            hocal.plan_budget, load(), 10_000, n_simulations=3, random_state=0
        ),
    }


def of_mixtures(size: Size) -> dict[str, Callable[[], Operation]]:
    """Return what is computed from mixtures, here those of an ensemble, and from their parts."""

    def mixtures() -> hocal.Mixtures:
        return size.ensemble

    def parts(entropy: str = "shannon") -> hocal.Decomposition:
        return hocal.decompose(size.ensemble, entropy)

    options = {"n_resamples": N_RESAMPLES, "random_state": 0}
    return {
        "Mixtures.from_ensemble": lambda: partial(
            hocal.Mixtures.from_ensemble, np.stack([size.p, size.second], axis=1)
        ),
        "decompose mixtures": lambda: partial(hocal.decompose, mixtures()),
        "decompose_loss": lambda: partial(
            hocal.decompose_loss, hocal.Mixtures.from_points(size.second), mixtures()
        ),
        "Mixtures.condition": lambda: partial(mixtures().condition, size.counts),
        "wasserstein": lambda: partial(
            hocal.wasserstein, mixtures(), hocal.Mixtures.from_points(size.p)
        ),
        "predict_set": lambda: partial(hocal.predict_set, mixtures()),
        "coverage": lambda: partial(
            hocal.coverage, hocal.predict_set(mixtures(), shape="ball"), size.counts
        ),
        "snapshot_score": lambda: partial(hocal.snapshot_score, mixtures(), size.counts),
        "resolution": lambda: partial(hocal.resolution, parts("brier"), 2 * size.counts),
        f"calibration_error, {N_RESAMPLES} resamples": lambda: partial(
            hocal.calibration_error, mixtures(), size.counts, k=2, cells=size.cells, **options
        ),
        "aleatoric_error": lambda: partial(
            hocal.aleatoric_error, parts(), size.counts, cells=size.cells
        ),
        "refusal_rule": lambda: partial(refusal_rule, mixtures(), person=0.1, refusal=0.5),
        "next_labels": lambda: partial(
            hocal.next_labels, mixtures(), size.counts, budget=size.n_items
        ),
    }


def of_labels(size: Size) -> dict[str, Callable[[], Operation]]:
    """Return what is computed from predictions and labels, and from labels alone."""
    columns = {"item": "item", "label": "label"}
    named = columns | {"annotator": "annotator", "classes": range(size.n_classes)}
    return {
        "CellStatistics.from_items": lambda: partial(
            hocal.CellStatistics.from_items, size.p, size.counts, size.cells, size.partition.layout_
        ),
        "headroom": lambda: partial(hocal.headroom, size.p, size.counts),
        "compare": lambda: partial(hocal.compare, size.p, size.second, size.counts),
        "risk_coverage": lambda: partial(risk_coverage, *_doubts(size.p, size.counts)),
        "class_bias": lambda: partial(class_bias, size.p, size.counts),
        "stand_in": lambda: partial(stand_in, size.p, size.table, **named),
        "label_prior": lambda: partial(label_prior, size.counts),
        "label_posterior": lambda: partial(label_posterior, size.counts),
        "count_labels": lambda: partial(hocal.count_labels, size.table, **named),
        "agreement": lambda: partial(hocal.agreement, size.table, **named),
        "check_annotations": lambda: partial(hocal.check_annotations, size.table, **named),
        "summarise_labels": lambda: partial(hocal.report.summarise_labels, size.counts),
    }


def operations(size: Size) -> dict[str, Callable[[], Operation]]:
    """Return what prepares each operation and gives the call that is timed."""
    return fits(size) | of_mixtures(size) | of_labels(size)


def _existing(size: Size, method: str) -> Path:
    size.load(method)
    return size.model(method)


def _doubts(p: Any, counts: Any) -> tuple[Any, Any]:
    """Return how unsure each prediction is, and how often people differ from it."""
    chosen = p.argmax(axis=1)
    agree = np.asarray(counts[np.arange(len(p)), chosen]).ravel()
    return 1 - p.max(axis=1), 1 - agree / N_LABELS


def _report(calibrator: hocal.SnapshotCalibrator, p: Any, counts: Any) -> str:
    return hocal.report.Report(hocal.report.summarise(calibrator, p, counts)).html()


def measure(name: str, size: Size) -> dict[str, Any]:
    """Measure one operation in this process, the data being there."""
    given = size.input_bytes
    call = operations(size)[name]()
    cpu = time.process_time()
    try:
        seconds, peak, result = measure_once(call)
    except hocal.InputError as error:
        return {"refused": str(error), "input_bytes": given}
    if name.startswith("fit"):
        method = result.get_params()["method"]
        hocal.save(result, size.model(method))
    taken = {"seconds": seconds, "cpu_seconds": time.process_time() - cpu}
    return taken | {"bytes": peak, "input_bytes": given}


def measure_apart(name: str, size: Size) -> dict[str, Any]:
    """Measure one operation in a process of its own, or say why it did not end."""
    row: dict[str, Any] = {"operation": name, "n_items": size.n_items, "n_classes": size.n_classes}
    command = [sys.executable, __file__, "--one", name, str(size.folder)]
    command += [str(size.n_items), str(size.n_classes)]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return row | {"stopped": f"over {MOST_SECONDS // 60} minutes"}
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1]
        memory = "MemoryError" in ran.stderr
        return row | {"stopped": f"over {2 * MOST_BYTES / 1e9:.0f} GB" if memory else last}
    return row | json.loads(ran.stdout.splitlines()[-1])


def run(wanted: str | None, jobs: int) -> dict[str, Any]:
    """Return all measurements, fits before what needs them."""
    rows = []
    for numbers in SIZES:
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
            size = Size(Path(folder), *numbers)
            size.make()
            names = [name for name in operations(size) if wanted is None or wanted in name]
            first = [name for name in names if name.startswith("fit")]
            others = [name for name in names if name not in first]
            for part in (first, others):
                for row in pool.map(partial(measure_apart, size=size), part):
                    rows.append(row)
                    print(json.dumps(row), flush=True)
    return {
        "versions": versions("numpy", "scipy", "scikit-learn"),
        "labels": N_LABELS,
        "members": N_MEMBERS,
        "jobs": jobs,
        "load_average": os.getloadavg()[0],
        "rows": rows,
    }


def renewed(content: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return stored measurements with new ones in the places of the old."""
    keys = ("operation", "n_items", "n_classes")
    found = {tuple(row[key] for key in keys): row for row in rows}
    kept = [found.get(tuple(row[key] for key in keys), row) for row in content["rows"]]
    return content | {"rows": kept}


def try_everything() -> None:
    """Run every operation on small data in this process, and one as it is measured."""
    with tempfile.TemporaryDirectory() as folder:
        size = Size(Path(folder), *TINY)
        size.make()
        found = {name: measure(name, size) for name in operations(size)}
        found["compare, apart"] = measure_apart("compare", size)
    failed = {name: row for name, row in found.items() if "seconds" not in row}
    assert not failed, failed


def main() -> None:
    """Measure everything, or one operation for the process that asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small data; writes nothing")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--only", help="operations whose name contains this; the rest is kept")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, folder, *numbers = options.one
        limit = int(2 * MOST_BYTES)  # addresses, of which about half are used
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        print(json.dumps(measure(name, Size(Path(folder), *map(int, numbers)))))
        return
    if options.tiny:
        try_everything()
        return
    content = run(options.only, options.jobs)
    if options.only is not None:
        content = renewed(json.loads(RESULTS.read_text(encoding="utf-8")), content["rows"])
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
