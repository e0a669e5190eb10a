"""Compare the mean of the items' mixtures with what anybody would do first.

    HOCAL_DATA=... python experiments/first_order.py [--resamplings 5] [--jobs 1] [--sets NAME]

Half of the items calibrate with up to three labels each, half test with all their labels; the log
loss is the mean over items, in nats. The rivals see the mean of the predictors: as it is, with a
temperature, through a logistic regression on its logarithms (its penalty and the floor of the
logarithms chosen by cross-validation), and not at all (the class prior). The claim: the mean of the
mixtures loses at most 1% more than the best of them, and mean predictive uncertainty is within .03
of the log loss that it claims. "Shares" are the shares of the language models' votes, without which
model said what. Sets of few items, on which halves differ by several percent, are resampled four
times as often. Half an hour on one core.
"""

import warnings
from typing import Any, Literal

import numpy as np
from item_scores import floored, log_loss
from numpy.typing import NDArray
from protocol import digits, draw_at_most, halves, in_parallel, options, store, summarise
from real_data import CHAOSNLI_MODELS, CIFAR10_MODELS, IMAGENET16H_MODELS, Known, load, shares
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import hocal
from hocal.calibration.first_order.temperature import apply_temperature, fit_temperature

N_LABELS = 3
SHARES = ", shares"
JUDGES = (
    "SummEval 6 models",
    "framing 6 models",
    "CEBaB 6 models",
    "lesion 4 models",
    "MT-bench 6 models",
)
SETS = (
    *(f"CIFAR-10H {name}" for name in CIFAR10_MODELS),
    "CIFAR-10H 14 nets",
    *(f"ChaosNLI-S {name}" for name in CHAOSNLI_MODELS),
    "ChaosNLI-S 5 models",
    "FER+ own network",
    *(f"ImageNet-16H {name}" for name in IMAGENET16H_MODELS),
    "ImageNet-16H 3 nets",
    *(name + SHARES for name in JUDGES),
    *JUDGES,
    "LeWiDi MP",
    "LeWiDi CSC",
)
RIVALS = ("raw", "temperature", "logistic", "prior")
METHODS: tuple[Literal["items", "cells"], ...] = ("items", "cells")
PENALTIES = (0.01, 0.1, 1.0, 10.0)  # of the logistic regression, inverse
FLOORS = (1e-6, 1e-2)  # of its logarithms
N_FOLDS = 3
FEW_ITEMS = 1_100  # below, a pair of halves moves the excess by 2%
OFTENER = 4  # are these resampled
WORSE = 0.01  # than the best rival, as a share of its loss
APART = 0.03  # mean predictive uncertainty from the log loss, nats

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def data(name: str) -> Known:
    """Return a data set, without its members where only their shares are asked for."""
    known = load(name.removesuffix(SHARES))
    return shares(known) if name.endswith(SHARES) else known


def seeds_of(name: str, resamplings: int) -> range:
    """Return the seeds of the resamplings of a data set."""
    few = len(data(name).counts) < FEW_ITEMS
    return range(resamplings * OFTENER if few else resamplings)


def resample(name: str, seed: int) -> dict[str, Any]:
    """Return the log loss of all methods on one pair of halves, and how far ours are off."""
    known = data(name)
    fit, test, generator = halves(len(known.counts), seed)
    labels = draw_at_most(known.counts[fit], N_LABELS, generator)
    counts = known.counts[test]
    losses = {
        rival: log_loss(mean, counts)
        for rival, mean in rivals(known.mean[fit], labels, known.mean[test]).items()
    }
    gaps = {}
    for method in METHODS:
        calibrator = hocal.SnapshotCalibrator(method=method).fit(known.members[fit], labels)
        losses[method] = log_loss(calibrator.predict_proba(known.members[test]), counts)
        predictive = calibrator.decompose(known.members[test]).predictive
        gaps[method] = float(predictive.mean() - losses[method])
    return {"log loss": losses, "predictive less log loss": gaps}


def rivals(predictions: Array, labels: Counts, unseen: Array) -> dict[str, Array]:
    """Return what the usual recalibrations say about the unseen items."""
    smoothed = labels.sum(axis=0) + 1 / labels.shape[1]  # one label's worth for the classes unseen
    prior = smoothed / smoothed.sum()
    temperature = fit_temperature(predictions, labels)
    return {
        "raw": floored(unseen),
        "temperature": apply_temperature(unseen, temperature),
        "logistic": logistic(predictions, labels, unseen),
        "prior": np.broadcast_to(prior, unseen.shape),
    }


def logistic(predictions: Array, labels: Counts, unseen: Array) -> Array:
    """Return the logistic regression with the best penalty and floor on folds left out."""
    folds = np.arange(len(labels)) % N_FOLDS  # the items are in random order
    trials = []
    for floor in FLOORS:
        inputs = np.log(np.maximum(predictions, floor))
        for penalty in PENALTIES:
            guess = np.empty(labels.shape)
            for fold in range(N_FOLDS):
                out = folds == fold
                guess[out] = _regress(inputs[~out], labels[~out], inputs[out], penalty)
            trials.append((log_loss(guess, labels), floor, penalty))
    _, floor, penalty = min(trials)
    seen, new = (np.log(np.maximum(each, floor)) for each in (predictions, unseen))
    return _regress(seen, labels, new, penalty)


def _regress(inputs: Array, labels: Counts, unseen: Array, penalty: float) -> Array:
    """Fit to every label, and predict; a class that never occurred gets next to nothing."""
    item, label = np.nonzero(labels)
    model = LogisticRegression(C=penalty, max_iter=1_000)
    with warnings.catch_warnings():  # cross-validation judges what did not converge, too
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(inputs[item], label, sample_weight=labels[item, label])
    found = np.zeros((len(unseen), labels.shape[1]))
    found[:, model.classes_] = model.predict_proba(unseen)
    return floored(found)


def judge(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary with the best rival, and whether both claims hold."""
    losses = {name: cell["mean"] for name, cell in summary["log loss"].items()}
    best = min(RIVALS[1:], key=lambda rival: losses[rival])
    excess = losses["items"] / losses[best] - 1
    gap = summary["predictive less log loss"]["items"]["mean"]
    verdict = {"best rival": best, "excess": digits(excess)}
    return summary | verdict | {"within 1%": excess <= WORSE, "within .03": abs(gap) <= APART}


def main() -> None:
    """Compute, store and print."""
    parser = options(__doc__, resamplings=5)
    parser.add_argument("--sets", default="", help="only sets whose name contains this")
    chosen = parser.parse_args()
    names = [name for name in SETS if chosen.sets in name]
    seeds = {name: seeds_of(name, chosen.resamplings) for name in names}
    tasks = [(name, seed) for name in names for seed in seeds[name]]
    runs = iter(in_parallel(resample, tasks, chosen.jobs))
    result = {name: judge(summarise([next(runs) for _ in seeds[name]])) for name in names}
    store("first_order", {"resamplings": chosen.resamplings, "unit": "nats", "sets": result})
    for name, found in result.items():
        losses = ", ".join(f"{key} {cell['mean']:.3f}" for key, cell in found["log loss"].items())
        gap = found["predictive less log loss"]["items"]["mean"]
        marks = [claim for claim in ("within 1%", "within .03") if not found[claim]]
        print(
            f"{name:32}{losses}; {found['excess']:+.1%}, {gap:+.3f}", *("not " + m for m in marks)
        )


if __name__ == "__main__":
    main()
