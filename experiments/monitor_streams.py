"""False alarms and delays of a monitor in simulated streams, beside tests that are told more.

    python experiments/monitor_streams.py [--resamplings 100] [--jobs 1]

Three classes, four labels per item, a calibrator fitted on 400 items for each resampling, and 20
streams without a change for each calibrator: 2,000 for the false alarms; and five with each change,
which begins with item 101: label distributions move by a share towards (.6, .2, .2), the most
likely class first, so that people disagree more.

Delay is the number of items from the change to the alarm, its median and the share of streams with
an alarm within 400 items of it. Others that watch the same residuals of disagreement:
- "CUSUM": max(0, sum + residual - mean - half of the true shift), told the size and the direction
  of the change; its threshold is the 95th percentile of its largest value in the streams without a
  change, so that it makes as many false alarms as are allowed, within this horizon and not beyond;
- "fixed size": a two-sample t test of the items after the change, told when it began and on which
  side; the fewest items with which half of the streams are found at 5%, looking once.
Two minutes on one core.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import digits, in_parallel, options, store
from scipy import stats

import hocal
from hocal.calibration.reference import residuals

Array = NDArray[np.float64]

DELTA = 0.05
N_FIT = 400
N_BEFORE = 100
N_AFTER = 400
STREAMS = 20  # of a calibrator, without a change
CHANGED = 5  # with each change
N_LABELS = 4
MOVED = (0.0, 0.25, 0.5, 0.75)  # how far label distributions move; 0 is no change
FIRST_SEED = 1_000  # the monitor's stakes were chosen on worlds of other seeds
SIZES = np.arange(5, N_AFTER + 1, 5)


def draw_items(n_items: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return label distributions, and noisy predictions of them."""
    truth = generator.dirichlet([0.4] * 3, n_items)
    noisy = truth * np.exp(generator.normal(0, 0.7, truth.shape)) + 0.01
    return truth, noisy / noisy.sum(axis=1, keepdims=True)


def move(truth: Array, share: float) -> Array:
    """Return label distributions that people disagree about more."""
    torn = 0.4 * np.eye(3)[truth.argmax(axis=1)] + 0.2
    return (1 - share) * truth + share * torn


def resample(seed: int) -> dict[str, Any]:
    """Fit a calibrator; watch streams with every change; return alarms and residuals."""
    generator = np.random.default_rng(seed)
    truth, p = draw_items(N_FIT, generator)
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(3), method="cells")
    calibrator.fit(p, generator.multinomial(N_LABELS, truth))
    found: dict[str, Any] = {"calibration": calibrator.reference_.means.centre[0]}  # type: ignore
    for share in MOVED:
        runs = [watch(calibrator, share, generator) for _ in range(CHANGED if share else STREAMS)]
        alarms, watched = zip(*runs, strict=True)
        found[str(share)] = {"alarms": list(alarms), "residuals": np.array(watched)}
    return found


def watch(
    calibrator: hocal.SnapshotCalibrator, share: float, generator: np.random.Generator
) -> tuple[int, Array]:
    """Return the item with which a stream raised the alarm, 0 for none, and its residuals."""
    truth, p = draw_items(N_BEFORE + N_AFTER, generator)
    truth[N_BEFORE:] = move(truth[N_BEFORE:], share)
    counts = generator.multinomial(N_LABELS, truth)
    alarmed = hocal.Monitor(calibrator, 1 - DELTA).update(p, counts).alarmed_at
    return alarmed or 0, residuals(calibrator.expect(p), counts).disagreement


def cusum(watched: Array, half: float) -> Array:
    """Return the sums of each stream after each item, (n_streams, n_items)."""
    walk = np.cumsum(watched - half, axis=1)
    before = np.minimum.accumulate(np.minimum(walk, 0), axis=1)
    return np.asarray(walk - before)


def first_above(sums: Array, threshold: float) -> Array:
    """Return the item with which each stream first exceeds a threshold, 0 for none."""
    above = sums > threshold
    return np.where(above.any(axis=1), above.argmax(axis=1) + 1, 0)


def delays(alarms: Array) -> dict[str, float]:
    """Return the median delay after the change and the share of streams with an alarm after it.

    Streams with an alarm before the change are left out, as they would be in practice.
    """
    kept = alarms[(alarms == 0) | (alarms > N_BEFORE)]
    after = np.where(kept == 0, np.inf, kept - N_BEFORE)
    return {"median delay": finite(np.median(after)), "found": digits(np.mean(np.isfinite(after)))}


def finite(value: float) -> float | None:
    """Return a number as JSON can hold it."""
    return digits(value) if np.isfinite(value) else None


def fixed_size(before: Array, after: Array) -> int | None:
    """Return the fewest items after the change with which half of the streams are found."""
    for size in SIZES:
        test = stats.ttest_ind(after[:, :size], before, axis=1, alternative="greater")
        if np.mean(test.pvalue <= DELTA) >= 0.5:
            return int(size)
    return None


def compare(runs: list[dict[str, Any]], share: float) -> dict[str, Any]:
    """Return the delays of all methods for one change."""
    # each calibrator's own mean residual is known to all
    centred = {
        each: np.concatenate([run[each]["residuals"] - run["calibration"] for run in runs])
        for each in (str(MOVED[0]), str(share))
    }
    calm, changed = centred.values()
    shift = float(changed[:, N_BEFORE:].mean() - calm.mean())
    threshold = float(np.quantile(cusum(calm, shift / 2).max(axis=1), 1 - DELTA))
    told = first_above(cusum(changed, shift / 2), threshold)
    monitor = np.concatenate([run[str(share)]["alarms"] for run in runs])
    reference = np.resize(calm, (len(changed), N_FIT))
    return {
        "shift of disagreement": digits(shift),
        "monitor": delays(monitor),
        "CUSUM": delays(told),
        "fixed size": fixed_size(reference, changed[:, N_BEFORE:]),
    }


def main() -> None:
    """Compute, store and print."""
    chosen = options(__doc__, resamplings=100).parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + chosen.resamplings)
    runs = in_parallel(resample, [(seed,) for seed in seeds], chosen.jobs)
    calm = np.concatenate([run[str(MOVED[0])]["alarms"] for run in runs])
    result = {
        "resamplings": chosen.resamplings,
        "confidence": 1 - DELTA,
        "streams": len(calm),
        "false alarms": int((calm > 0).sum()),
        "changes": {str(share): compare(runs, share) for share in MOVED[1:]},
        "first": {share: runs[0][share]["alarms"][:3] for share in map(str, MOVED)},
    }
    store("monitor_streams", result)
    print(f"{result['false alarms']} false alarms in {len(calm)} streams")
    for share, found in result["changes"].items():
        print(share, found)


if __name__ == "__main__":
    main()
