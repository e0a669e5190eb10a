"""Watch a calibrator on ImageNet-16H while the images get noisier.

    HOCAL_DATA=... python experiments/monitor.py [--resamplings 10] [--jobs 1]

Three networks. Half of the 1,200 images calibrate, each at noise 80 or 95 by chance, and once only:
the same picture at two levels would not be two independent items. The other half are streamed in a
random order: at noise 80 or 95, where nothing has changed, at 110 and at 125. For each stream
the item with which the alarm is raised at 95%, the evidence about people's disagreement and about
the label distribution, the share of unlabelled items that look unlike, and how many of the
certified level sets fail: those whose interval of the Brier uncertainty, at 95%, does not meet the
betting interval of the disagreement that the stream shows there. A second calibrator, of the first
half at each noise itself, says what the uncertainty is really made of: its mean parts in nats
beside what the calibrator of 80 or 95 says. Two minutes on one core.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from protocol import digits, draw, in_parallel, options, store, summarise

import hocal
from hocal.datasets import ImageNet16H, load_imagenet16h
from hocal.decisions import familiarity
from hocal.guarantees.means import betting_interval
from hocal.plot import EvidenceDisplay
from hocal.plot.canvas import BLUE, ORANGE
from hocal.uncertainty.moments import pair_disagreement

CALIBRATED = (80, 95)
STREAMS = {"80 or 95": (80, 95), "110": (110,), "125": (125,)}
LEVELS = (80, 95, 110, 125)
PARTS = ("aleatoric", "epistemic")

Rows = NDArray[np.intp]


class Study:
    """Images of one resampling: those that calibrate, and those that are streamed."""

    def __init__(self, images: ImageNet16H, seed: int) -> None:
        assert images.probabilities is not None
        self.members = images.probabilities / images.probabilities.sum(axis=2, keepdims=True)
        self.counts = images.counts
        self._noise = images.noise
        self._generator = np.random.default_rng(seed)
        names = np.array([name.split("@")[0] for name in images.items])
        known = np.unique(names)
        first = self._generator.permutation(known)[: len(known) // 2]
        self._calibrates = np.isin(names, first)
        self._names = names

    def calibration(self, levels: tuple[int, ...]) -> Rows:
        """Return the images of the first half, each at one of some levels of noise."""
        return self._once(self._calibrates & np.isin(self._noise, levels))

    def stream(self, levels: tuple[int, ...]) -> Rows:
        """Return the images of the other half, each at one of some levels, in a random order."""
        return self._once(~self._calibrates & np.isin(self._noise, levels))

    def _once(self, chosen: NDArray[np.bool_]) -> Rows:
        """Return one row of each image, in a random order."""
        rows = self._generator.permutation(np.flatnonzero(chosen))
        places = np.unique(self._names[rows], return_index=True)[1]
        return rows[np.sort(places)]

    def fit(self, levels: tuple[int, ...]) -> hocal.SnapshotCalibrator:
        """Calibrate on the first half at some levels of noise."""
        rows = self.calibration(levels)
        return hocal.SnapshotCalibrator().fit(self.members[rows], self.counts[rows])


def watch(study: Study, calibrator: hocal.SnapshotCalibrator, rows: Rows) -> hocal.Monitor:
    """Return a monitor that has seen a stream."""
    return hocal.Monitor(calibrator).update(study.members[rows], study.counts[rows])


def failed_levels(study: Study, calibrator: hocal.SnapshotCalibrator, rows: Rows) -> float:
    """Return the share of level sets whose certificate the stream refutes."""
    lower, upper = calibrator.certify(by="aleatoric").interval("aleatoric", "brier")
    levels = calibrator.level(study.members[rows])
    seen = pair_disagreement(study.counts[rows])
    failed = []
    for level in np.unique(levels):
        own = betting_interval(seen[levels == level])
        failed.append(own.lower > upper[level] or own.upper < lower[level])
    return float(np.mean(failed))


def resample(seed: int) -> dict[str, Any]:
    """Calibrate once, stream everything."""
    study = Study(load_imagenet16h(), seed)
    calibrator = study.fit(CALIBRATED)
    streams = {}
    for name, levels in STREAMS.items():
        rows = study.stream(levels)
        monitor = watch(study, calibrator, rows)
        kinds = monitor.evidence_by_kind
        unlike = familiarity(calibrator, study.members[rows])
        streams[name] = {
            "alarm": float(monitor.alarm),
            "items until the alarm": float(monitor.alarmed_at or len(rows)),
            **{f"log10 evidence, {kind}": digits(np.log10(kinds[kind])) for kind in kinds},
            "failed certificates": failed_levels(study, calibrator, rows),
            "unlike without labels": unlike.share.estimate,
            "warning without labels": float(unlike.warning),
        }
    return {"streams": streams, "parts": _parts(study, calibrator)}


def _parts(study: Study, calibrator: hocal.SnapshotCalibrator) -> dict[str, Any]:
    """Return what the uncertainty at each noise is made of, and what the calibrator says it is."""
    found = {}
    for noise in LEVELS:
        rows = study.stream((noise,))
        said = calibrator.decompose(study.members[rows])
        own = study.fit((noise,)).decompose(study.members[rows])
        agree = study.members[rows].mean(axis=1).argmax(axis=1) == study.counts[rows].argmax(axis=1)
        found[str(noise)] = {
            "people disagree": float(pair_disagreement(study.counts[rows]).mean()),
            "expected": float(calibrator.expect(study.members[rows]).disagreement.mean()),
            "networks agree with the majority": float(agree.mean()),
            **{f"{part}, fitted there": float(getattr(own, part).mean()) for part in PARTS},
            **{f"{part}, as calibrated": float(getattr(said, part).mean()) for part in PARTS},
        }
    return found


def panels(seed: int, summary: dict[str, Any]) -> Figure:
    """Draw the evidence of the streams of one resampling, and the parts of the uncertainty."""
    study = Study(load_imagenet16h(), seed)
    calibrator = study.fit(CALIBRATED)
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    calm = study.stream(CALIBRATED)[:300]
    for ax, noise in ((left, 110), (middle, 125)):
        rows = np.concatenate([calm, study.stream((noise,))[:300]])
        display = EvidenceDisplay.from_monitor(watch(study, calibrator, rows))
        display.plot(ax=ax, title=f"300 items at noise 80 or 95, then {noise}")
    _bars(right, summary["parts"])
    return figure


def _bars(ax: Any, parts: dict[str, Any]) -> None:
    """Draw the parts at each noise: fitted there, and as the calibrator of 80 or 95 says."""
    for place, noise in enumerate(parts):
        for shift, how in ((-0.2, "fitted there"), (0.2, "as calibrated")):
            values = [parts[noise][f"{part}, {how}"]["mean"] for part in PARTS]
            look = {"width": 0.36, "alpha": 1.0 if how == "fitted there" else 0.5}
            for part, colour, bottom, height in zip(
                PARTS, (BLUE, ORANGE), (0.0, values[0]), values, strict=True
            ):
                label = f"{part}, {how}" if place == 0 else None
                ax.bar(place + shift, height, bottom=bottom, color=colour, label=label, **look)
    ax.set_xticks(range(len(parts)), list(parts))
    ax.set(xlabel="noise", ylabel="mean uncertainty (nats)", title="what the doubt is made of")
    ax.legend(fontsize="small")


def main() -> None:
    """Compute, store, draw and print."""
    chosen = options(__doc__, resamplings=10).parse_args()
    runs = in_parallel(resample, [(seed,) for seed in range(chosen.resamplings)], chosen.jobs)
    summary = summarise(runs)
    store("monitor", {"resamplings": chosen.resamplings, **summary})
    draw("monitor", panels(0, summary))
    for part in summary.values():
        for name, found in part.items():
            print(name, {what: value["mean"] for what, value in found.items()})


if __name__ == "__main__":
    main()
