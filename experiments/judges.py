"""Language models as judges, on real votes: five tasks, four to six models, two to six people.

    HOCAL_DATA=... python experiments/judges.py [--resamplings 5] [--jobs 1]

Each model named one class per item, so that the shares of their votes are the prediction. Half of
the items calibrate, the other half are judged: log loss against people's labels of the votes as
they are (with a floor), with the best temperature, calibrated, and of the shares of the classes;
what of the calibrated loss no judge can remove (`headroom`); the share of the items, most
epistemic first, that hold half of the epistemic uncertainty; and what `next_labels` expects of one
label for every tenth item, beside the same labels spread by chance. On all items, without any
fit: the class that each model says too often or too rarely (`class_bias`), whom it may replace
(`stand_in`, classes of SummEval and lesion in order), and which of the first two models people
agree with more often (`compare`). A minute on one core.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import digits, halves, in_parallel, options, store, summarise

import hocal
from hocal.calibration.first_order.temperature import apply_temperature, fit_temperature
from hocal.datasets import JudgedItems, load_judges
from hocal.datasets.judges import JUDGED_TASKS
from hocal.decisions import class_bias, stand_in

FLOOR = 0.01  # added to each class of the raw votes, whose zeros would cost any amount
ORDERED = ("summeval", "lesion")
TOLERANCE = 0.05  # by how much less often than a person a cheap judge may agree with others

Array = NDArray[np.float64]


def mean_loss(predictions: Array, counts: NDArray[np.int64]) -> float:
    """Return the log loss of an item's label, averaged over the items."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(-(shares * np.log(predictions)).sum(axis=1).mean())


def floored(votes: Array) -> Array:
    """Return shares of votes without zeros."""
    return (1 - FLOOR * votes.shape[1]) * votes + FLOOR


def resample(name: str, seed: int) -> dict[str, Any]:
    """Calibrate the votes on half of the items and look at the other half."""
    items = load_judges(name)
    assert items.probabilities is not None
    fit, test, _ = halves(len(items), seed)
    votes = items.probabilities
    counts = items.counts
    calibrator = hocal.SnapshotCalibrator().fit(votes[fit], counts[fit])
    calibrated = calibrator.predict_proba(votes[test])
    mean = votes.mean(axis=1)
    temperature = fit_temperature(mean[fit], counts[fit])
    prior = counts[fit].sum(axis=0) + 1 / counts.shape[1]
    found = hocal.headroom(calibrated, counts[test])
    return {
        "raw": mean_loss(floored(mean[test]), counts[test]),
        "temperature": mean_loss(apply_temperature(mean[test], temperature), counts[test]),
        "prior": mean_loss(np.broadcast_to(prior / prior.sum(), mean[test].shape), counts[test]),
        "calibrated": mean_loss(calibrated, counts[test]),
        "agrees": found.accuracy.estimate,
        "irreducible": found.irreducible.estimate,
        "irreducible at least": found.irreducible.lower,
        "remaining": found.remaining.estimate,
        "remaining at most": found.remaining.upper,
        **sent_to_people(calibrator, votes[test]),
    }


def sent_to_people(calibrator: hocal.SnapshotCalibrator, votes: Array) -> dict[str, float]:
    """Return how few items hold half of what is not known, and what labels for them bring."""
    epistemic = np.sort(calibrator.decompose(votes).epistemic)[::-1]
    half = np.searchsorted(epistemic.cumsum(), epistemic.sum() / 2) + 1
    mixtures = calibrator.predict_mixture(votes)
    bought = hocal.next_labels(mixtures, None, budget=len(votes) // 10)
    return {
        "epistemic": float(epistemic.mean()),
        "share with half of it": float(half / len(votes)),
        "gain over chance": bought.expected_gain / bought.uniform_gain,
    }


def judge(name: str) -> dict[str, Any]:
    """Return what is known of each model of a task without fitting anything."""
    items = load_judges(name)
    assert items.probabilities is not None
    votes = items.probabilities
    first, second = (votes[:, place] for place in (0, 1))
    compared = hocal.compare(first, second, items.counts, loss="accuracy")
    return {
        "items": len(items),
        "people": len(np.unique(items.annotator)),
        "compared": [items.models[0], items.models[1], *map(digits, compared.difference)],
        "models": {
            model: duel(name, items, votes[:, place]) for place, model in enumerate(items.models)
        },
    }


def duel(name: str, items: JudgedItems, votes: Array) -> dict[str, Any]:
    """Hold one model against the people of a task."""
    table = {"item": items.item, "who": items.annotator, "label": items.label}
    found = stand_in(
        votes,
        table,
        item="item",
        label="label",
        annotator="who",
        classes=range(len(items.classes)),
        ordinal=name in ORDERED,
        tolerance=TOLERANCE,
    )
    bias = class_bias(votes, items.counts)
    worst = int(np.argmax([abs(each.estimate) for each in bias]))
    return {
        "judge": digits(found.judge.estimate),
        "people": digits(found.people.estimate),
        "advantage": list(map(digits, found.advantage)),
        "acceptable": found.acceptable,
        "replaceable": len(found.replaceable),
        "irreplaceable": len(found.irreplaceable),
        "bias": [items.classes[worst], *map(digits, bias[worst])],
    }


def main() -> None:
    """Compute, store and print."""
    chosen = options(__doc__, resamplings=5).parse_args()
    seeds = range(chosen.resamplings)
    tasks = [(name, seed) for name in JUDGED_TASKS for seed in seeds]
    runs = in_parallel(resample, tasks, chosen.jobs)
    result: dict[str, Any] = {}
    for place, name in enumerate(JUDGED_TASKS):
        own = runs[place * len(seeds) : (place + 1) * len(seeds)]
        result[name] = {**judge(name), "votes": summarise(own)}
        print(name, {what: each["mean"] for what, each in result[name]["votes"].items()})
        print(result[name]["models"])
    store("judges", {"resamplings": chosen.resamplings, "tolerance": TOLERANCE, **result})


if __name__ == "__main__":
    main()
