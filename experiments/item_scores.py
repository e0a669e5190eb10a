"""Score predictions of single items by labels that they have not seen."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from protocol import draw_at_most, halves
from real_data import Known

import hocal

# labels of the snapshot score: nearly every data set has as many left, so that scores compare
N_SCORED = 4
FEWEST = 4  # labels that the resolution needs
FLOOR = 1e-6  # of a probability: what a method calls impossible happens once in a million
BATCH = 500  # items whose mixtures are listed at once

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


class Split(NamedTuple):
    """Half of the items with k labels each, and the other half with k of its own and the rest."""

    fit: Known  # its counts are the k labels
    test: Known  # its counts are the held-out labels
    own: Counts  # k labels of each test item
    scored: Counts  # N_SCORED of the held-out labels, or all where there are fewer
    whole: Known  # the calibration half with all its labels


class Prediction(NamedTuple):
    """What a method says about the test items."""

    mean: Array  # (n_items, n_classes)
    predictive: Array  # in nats
    disagreement: Array  # aleatoric, Brier
    log_scores: Array  # of the scored labels


def split(data: Known, k: int, seed: int) -> Split:
    """Draw halves and labels."""
    fit, test, generator = halves(len(data.counts), seed)
    labels = draw_at_most(data.counts[fit], k, generator)
    own = draw_at_most(data.counts[test], k, generator)
    rest = data.counts[test] - own
    scored = draw_at_most(rest, N_SCORED, generator)
    whole = data[fit]
    return Split(
        whole._replace(counts=labels), data[test]._replace(counts=rest), own, scored, whole
    )


def calibrate(data: Known, method: str) -> hocal.SnapshotCalibrator:
    """Fit a calibrator to all that it can use."""
    calibrator = hocal.SnapshotCalibrator(method=method)  # type: ignore[arg-type]
    features = data.features if method == "items" else None
    return calibrator.fit(data.members, data.counts, features=features)


def predict(
    calibrator: hocal.SnapshotCalibrator, parts: Split, own: Counts | None = None
) -> Prediction:
    """Return what a calibrator says, from the prediction alone or given the items' own labels."""
    batches = []
    for start in range(0, len(parts.own), BATCH):
        rows = slice(start, start + BATCH)
        batches.append(_predict_batch(calibrator, parts, own, rows))
    return Prediction(*map(np.concatenate, zip(*batches, strict=True)))


def _predict_batch(
    calibrator: hocal.SnapshotCalibrator, parts: Split, own: Counts | None, rows: slice
) -> Prediction:
    known: dict[str, Any] = {"counts": None if own is None else own[rows]}
    members = parts.test.members[rows]
    scored = parts.scored[rows]
    if calibrator.method != "items":
        return read(calibrator.predict_mixture(members, **known), scored)
    if parts.test.features is not None:
        known["features"] = parts.test.features[rows]
    # Atoms stand in for the mixture of an item in its likelihood alone; the rest is exact.
    shannon = calibrator.decompose(members, **known)
    brier = calibrator.decompose(members, "brier", **known)
    logs = calibrator.predict_mixture(members, **known).log_likelihood(scored)
    mean = calibrator.predict_proba(members, **known)
    return Prediction(mean, shannon.predictive, brier.aleatoric, logs)


def resolution(
    calibrator: hocal.SnapshotCalibrator, parts: Split, own: Counts | None = None
) -> dict[str, float]:
    """Return the resolution alone, which needs no atoms."""
    known: dict[str, Any] = {"counts": own}
    if parts.test.features is not None:
        known["features"] = parts.test.features
    brier = calibrator.decompose(parts.test.members, "brier", **known)
    return {"resolution": hocal.resolution(brier, parts.test.counts).estimate}


def read(mixtures: hocal.Mixtures, scored: Counts) -> Prediction:
    """Return what mixtures say."""
    shannon = hocal.decompose(mixtures)
    brier = hocal.decompose(mixtures, "brier")
    logs = mixtures.log_likelihood(scored)
    return Prediction(mixtures.mean(), shannon.predictive, brier.aleatoric, logs)


def figures(found: Prediction, parts: Split) -> dict[str, float]:
    """Return all scores of a prediction; the resolution only where labels are enough for it."""
    loss = log_loss(found.mean, parts.test.counts)
    rest = parts.test.counts
    scores = {
        "snapshot score": float(found.log_scores.sum() / parts.scored.sum()),
        "log loss": loss,
        "predictive less log loss": float(found.predictive.mean() - loss),
    }
    if rest.sum(axis=1).min() < FEWEST:
        return scores
    return {"resolution": hocal.resolution(found.disagreement, rest).estimate} | scores


def log_loss(mean: Array, counts: Counts) -> float:
    """Return the mean over items of the log loss of their labels, in nats."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(-(shares * np.log(np.maximum(mean, FLOOR))).sum(axis=1).mean())


def disagreement(counts: Counts) -> Array:
    """Return how often two labels of an item differ; 0 for items with one."""
    totals = counts.sum(axis=1)
    pairs = totals * (totals - 1)
    agreeing = (counts * (counts - 1)).sum(axis=1)
    return np.asarray((pairs - agreeing) / np.maximum(pairs, 1))


def floored(probabilities: Array) -> Array:
    """Return distributions that call nothing impossible."""
    raised = np.maximum(probabilities, FLOOR)
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))
