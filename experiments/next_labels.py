"""Buy labels where they are expected to bring most, and see what they brought.

    HOCAL_DATA=... python experiments/next_labels.py [--resamplings 10] [--jobs 1] [--studies NAME]

Some of each item's labels are held out for scoring; the others can be bought, without replacement.
A study starts with two labels per item and buys a tenth of a label per item at a time, up to two
per item. With a model, half of the items and their first two labels calibrate it and labels are
bought for the other half; with labels alone, the prior is made of all labels so far. Scores: the
squared error of the label distribution (unbiased, from the held-out labels), how often the reported
class is the majority of all labels of the item, and the resolution of the item's disagreement.

ActiveLab needs cleanlab (`pip install cleanlab==2.9.0`) and is left out without it. Where the
people are not known, its annotators are the places of a label in a random order. A minute for each
study and resampling on one core, three for CIFAR-10H with a model.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from protocol import draw_at_most, halves, in_parallel, options, store, summarise
from real_data import load

import hocal
from hocal.calibration import label_prior
from hocal.datasets import load_crowd

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

FIRST = 2  # labels per item at the start
BATCHES = 20  # each of a tenth of a label per item
CHECKPOINTS = {0: "0", 5: "0.5", 10: "1", 20: "2"}  # batches, and the labels bought per item
FEWEST = 4  # held-out labels that the resolution needs


class Source(NamedTuple):
    """Where a study's items come from."""

    data: str  # name in `real_data`, or of a crowd table
    with_model: bool
    n_held: int  # labels of each item that are never bought


STUDIES = {
    "CIFAR-10H, resnet18": Source("CIFAR-10H resnet18", True, 25),
    "CIFAR-10H, labels alone": Source("CIFAR-10H resnet18", False, 25),
    "ChaosNLI-S, roberta-base_0": Source("ChaosNLI-S roberta_0", True, 50),
    "ImageNet-16H, vgg19": Source("ImageNet-16H vgg19", True, 2),
    "CF (crowd), labels alone": Source("CF_amt", False, 10),
}


class Study(NamedTuple):
    """Items whose labels are bought."""

    probabilities: Array | None  # (n_items, n_classes) of the model
    calibrator: hocal.SnapshotCalibrator | None
    first: Counts  # labels at the start
    left: Counts  # labels that can be bought
    held: Counts  # labels that score
    prior: hocal.Mixtures | None  # of a model, given the first labels


def prepare(source: Source, seed: int) -> Study:
    """Draw labels, and fit the model if there is one."""
    if not source.with_model:
        counts = crowd(source.data) if source.data.endswith("amt") else load(source.data).counts
        first, left, held = divide(counts, source.n_held, np.random.default_rng(seed))
        return Study(None, None, first, left, held, None)
    data = load(source.data)
    fit, test, generator = halves(len(data.counts), seed)
    first, left, held = divide(data.counts, source.n_held, generator)
    calibrator = hocal.SnapshotCalibrator().fit(data.mean[fit], first[fit])
    p = data.mean[test]
    prior = calibrator.predict_mixture(p, counts=first[test])
    return Study(p, calibrator, first[test], left[test], held[test], prior)


def divide(
    counts: Counts, n_held: int, generator: np.random.Generator
) -> tuple[Counts, Counts, Counts]:
    """Return first labels, those that can be bought, and those held out."""
    held = draw_at_most(counts, n_held, generator)
    first = draw_at_most(counts - held, FIRST, generator)
    return first, counts - held - first, held


def crowd(name: str) -> Counts:
    """Return the labels of a crowd table, (n_items, n_classes)."""
    labels = load_crowd(name)
    items, rows = np.unique(labels.item, return_inverse=True)
    counts = np.zeros((len(items), len(labels.classes)), dtype=np.int64)
    np.add.at(counts, (rows, labels.label), 1)
    return counts


def draw_each(left: Counts, labels: Counts, generator: np.random.Generator) -> Counts:
    """Draw so many labels of each item without replacement."""
    drawn = np.zeros_like(left)
    for more in range(int(labels.max(initial=0))):
        chosen = labels > more
        drawn[chosen] += draw_at_most(left[chosen] - drawn[chosen], 1, generator)
    return drawn


# Strategies: how many labels for each item, given what was bought, what is left, and a budget.

Strategy = Callable[[Study, Counts, Counts, int, np.random.Generator], Counts]


def one_each(score: Array, left: Counts, budget: int, generator: np.random.Generator) -> Counts:
    """Buy one label for the items with the highest scores; items that tie are taken at random."""
    shuffled = generator.permutation(len(score))
    available = left.sum(axis=1) > 0
    order = shuffled[np.argsort(-np.where(available, score, -np.inf)[shuffled], kind="stable")]
    labels = np.zeros(len(score), dtype=np.int64)
    labels[order[: min(budget, int(available.sum()))]] = 1
    return labels


def evenly(
    _: Study, bought: Counts, left: Counts, budget: int, generator: np.random.Generator
) -> Counts:
    """Buy for the items with the fewest labels."""
    return one_each(-bought.sum(axis=1).astype(float), left, budget, generator)


def by_entropy(
    study: Study, bought: Counts, left: Counts, budget: int, generator: np.random.Generator
) -> Counts:
    """Buy for the items whose own labels have the highest entropy."""
    own = study.first + bought
    shares = own / own.sum(axis=1, keepdims=True)
    entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1)
    return one_each(entropy, left, budget, generator)


def by_activelab(
    study: Study, bought: Counts, left: Counts, budget: int, generator: np.random.Generator
) -> Counts:
    """Buy for the items with the lowest scores of ActiveLab."""
    from cleanlab.multiannotator import get_active_learning_scores

    own = study.first + bought
    p = study.probabilities
    if p is None:  # without a model, the frequency of classes
        p = np.tile((own.sum(axis=0) + 1) / (own.sum() + own.shape[1]), (len(own), 1))
    scores, _ = get_active_learning_scores(in_places(own, generator), p)
    return one_each(-scores, left, budget, generator)


def in_places(counts: Counts, generator: np.random.Generator) -> Array:
    """Return the labels of each item side by side in a random order, NaN where there is none."""
    totals = counts.sum(axis=1)
    item = np.repeat(np.arange(len(counts)), totals)
    label = np.repeat(np.tile(np.arange(counts.shape[1]), len(counts)), counts.reshape(-1))
    order = np.lexsort([generator.random(len(item)), item])
    place = np.arange(len(item)) - np.repeat(np.cumsum(totals) - totals, totals)
    table = np.full((len(counts), int(totals.max())), np.nan)
    table[item, place] = label[order]
    return table


def by_gain(objective: str) -> Strategy:
    """Buy where hocal expects most."""

    def choose(
        study: Study, bought: Counts, left: Counts, budget: int, generator: np.random.Generator
    ) -> Counts:
        prior = study.prior
        known = bought
        if prior is None:
            known = study.first + bought
            prior = label_prior(known)
        limit = np.minimum(left.sum(axis=1), 10)
        budget = min(budget, int(limit.sum()))
        if budget == 0:
            return np.zeros(len(left), dtype=np.int64)
        shuffled = generator.permutation(len(left))  # items that tie are taken at random
        labels = np.zeros(len(left), dtype=np.int64)
        labels[shuffled] = hocal.next_labels(
            prior[shuffled],
            known[shuffled],
            budget=budget,
            objective=objective,  # type: ignore[arg-type]
            limit=limit[shuffled],
        ).labels
        return labels

    return choose


STRATEGIES: dict[str, Strategy] = {
    "evenly": evenly,
    "entropy of own labels": by_entropy,
    "ActiveLab": by_activelab,
    "hocal, distribution": by_gain("distribution"),
    "hocal, aleatoric": by_gain("aleatoric"),
    "hocal, majority": by_gain("majority"),
}


def know(study: Study, bought: Counts) -> tuple[Array, Array]:
    """Return the mean label distribution and the disagreement of each item given all its labels."""
    own = study.first + bought
    if study.calibrator is None:
        posterior = label_prior(own).condition(own)
        return posterior.mean(), hocal.decompose(posterior, "brier").aleatoric
    p = study.probabilities
    assert p is not None
    parts = study.calibrator.decompose(p, "brier", counts=own)
    return study.calibrator.predict_proba(p, counts=own), parts.aleatoric


def scores(mean: Array, disagreement: Array, study: Study) -> dict[str, float]:
    """Score what is reported about the items."""
    held = study.held
    totals = held.sum(axis=1)
    shares = held / totals[:, None]
    noise = (1 - (shares**2).sum(axis=1)) / (totals - 1)
    every = study.first + study.left + held
    reported = np.take_along_axis(every, mean.argmax(axis=1)[:, None], axis=1)[:, 0]
    found = {
        "error": float((((mean - shares) ** 2).sum(axis=1) - noise).mean()),
        "consensus": float((reported == every.max(axis=1)).mean()),
    }
    if totals.min() >= FEWEST:
        found["resolution"] = hocal.resolution(disagreement, held).estimate
    return found


def buy(study: Study, strategy: Strategy, seed: int) -> list[Counts]:
    """Return what was bought at each checkpoint."""
    generator = np.random.default_rng(seed)
    bought = np.zeros_like(study.first)
    kept = [bought]
    for batch in range(1, BATCHES + 1):
        left = study.left - bought
        budget = len(left) * batch // 10 - len(left) * (batch - 1) // 10
        labels = strategy(study, bought, left, budget, generator)
        bought = bought + draw_each(left, labels, generator)
        if batch in CHECKPOINTS:
            kept.append(bought)
    return kept


def resample(name: str, seed: int, strategies: tuple[str, ...]) -> dict[str, Any]:
    """Return the scores of all strategies at all checkpoints."""
    study = prepare(STUDIES[name], seed)
    found: dict[str, Any] = {}
    for strategy in strategies:
        kept = buy(study, STRATEGIES[strategy], seed)
        found[strategy] = score_all(study, kept, know)
        if strategy == "evenly":
            found["evenly, frequencies of the labels"] = score_all(study, kept, frequencies)
    return found


def frequencies(study: Study, bought: Counts) -> tuple[Array, Array]:
    """Return the frequencies of each item's labels, and their disagreement."""
    own = study.first + bought
    shares = own / own.sum(axis=1, keepdims=True)
    return shares, 1 - (shares**2).sum(axis=1)


def score_all(
    study: Study, kept: list[Counts], report: Callable[..., tuple[Array, Array]]
) -> dict[str, Any]:
    """Score what is reported at each checkpoint."""
    return {
        labels: scores(*report(study, bought), study)
        for labels, bought in zip(CHECKPOINTS.values(), kept, strict=True)
    }


def available() -> tuple[str, ...]:
    """Return the strategies that can run here."""
    peers = {"ActiveLab": find_spec("cleanlab") is not None}
    return tuple(name for name in STRATEGIES if peers.get(name, True))


def main() -> None:
    """Compute, store and print."""
    parser = options(__doc__, resamplings=10)
    parser.add_argument("--studies", default="", help="only studies whose name contains this")
    chosen = parser.parse_args()
    names = [name for name in STUDIES if chosen.studies in name]
    seeds = range(chosen.resamplings)
    tasks = [(name, seed, available()) for name in names for seed in seeds]
    runs = iter(in_parallel(resample, tasks, chosen.jobs))
    result = {name: summarise([next(runs) for _ in seeds]) for name in names}
    store("next_labels", {"resamplings": chosen.resamplings, "studies": result})
    for name, found in result.items():
        for strategy, curve in found.items():
            line = f"{name:28} {strategy:36}"
            for cells in curve.values():
                line += "  " + " ".join(f"{cell['mean']:.4f}" for cell in cells.values())
            print(line)


if __name__ == "__main__":
    main()
