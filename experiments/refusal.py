"""Answer, ask a person or refuse: by calibrated parts, and by scores that need no labels.

    HOCAL_DATA=... python experiments/refusal.py [--resamplings 3] [--jobs 1]

Half of the items calibrate, with five labels each at most; the other half are decided about, and
all their labels say what that cost. Of CIFAR-10H, 4,000 images by chance; of ImageNet-16H each
picture at one level of noise, so that no picture is in both halves. Everybody gives the same
answer, the class of the largest calibrated probability, so that only the order counts. Three curves
of risk against coverage: answer the items of the lowest scores and refuse the others; have a person
answer them and refuse the others; answer them and ask a person about the others. Then the cost per
item of three sets of prices: of the rule of `hocal.decisions.refusal_rule`, and of two thresholds
on a score, the cheapest of all pairs of quantiles on the calibration items. A minute on one core.
"""

from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from protocol import digits, draw, draw_at_most, halves, in_parallel, options, store, summarise
from real_data import Known, load

import hocal
from hocal.datasets import load_imagenet16h
from hocal.decisions import refusal_rule
from hocal.plot import RiskCoverageDisplay
from hocal.uncertainty import pair_disagreement

DATA = ("CIFAR-10H 14 nets", "ImageNet-16H 3 nets", "FER+ own network")
ACTIONS = ("answer", "ask", "refuse")
LABELS = 5
MOST = 4_000  # items of a data set
PRICES = ((0.02, 0.1), (0.05, 0.3), (0.1, 0.5))  # a person, a refusal; an error costs 1
GRID = np.linspace(0, 1, 21)  # quantiles of a score that are tried as thresholds
ENDINGS = ("refuse", "ask")  # what becomes of the most doubtful items
CURVES = ("answer or refuse", "person or refuse", "answer or ask")

Array = NDArray[np.float64]


class Half:
    """Items of one half: scores, the answer, and what each action costs without its price."""

    def __init__(self, known: Known, labels: NDArray[np.int64], mixtures: hocal.Mixtures) -> None:
        parts = hocal.decompose(mixtures)
        self.mixtures = mixtures
        self.scores = {
            "predictive": parts.predictive,
            "epistemic": parts.epistemic,
            "aleatoric": parts.aleatoric,
            **raw_scores(known),
        }
        rows = np.arange(len(labels))
        answer = mixtures.mean().argmax(axis=1)
        self.answered = 1 - labels[rows, answer] / labels.sum(axis=1)
        self.asked = pair_disagreement(labels)

    def paid(self, person: float, refusal: float) -> Array:
        """Return what answering, asking and refusing cost, item by item."""
        refused = np.full(len(self.answered), refusal)
        return np.column_stack([self.answered, person + self.asked, refused])


def raw_scores(known: Known) -> dict[str, Array]:
    """Return scores of predictions that nobody calibrated."""
    parts = hocal.decompose(hocal.Mixtures.from_ensemble(known.members))
    scores = {"confidence": -known.mean.max(axis=1), "entropy": parts.predictive}
    if known.members.shape[1] > 1:
        scores["mutual information"] = parts.epistemic
    return scores


def items(name: str) -> Known:
    """Return items with two labels or more, each of another picture, and not too many."""
    known = load(name)
    order = np.random.default_rng(0).permutation(np.flatnonzero(known.counts.sum(axis=1) > 1))
    if name.startswith("ImageNet"):
        pictures = np.array([item.split("@")[0] for item in load_imagenet16h().items])
        order = order[np.unique(pictures[order], return_index=True)[1]]
    return known[order[:MOST]]


@cache
def study(name: str, seed: int) -> tuple[Half, Half]:
    """Calibrate on one half; return both."""
    known = items(name)
    fit, test, generator = halves(len(known.counts), seed)
    labels = draw_at_most(known.counts[fit], LABELS, generator)
    calibrator = hocal.SnapshotCalibrator().fit(known.members[fit], labels)
    return (
        Half(known[fit], labels, calibrator.predict_mixture(known.members[fit])),
        Half(known[test], known.counts[test], calibrator.predict_mixture(known.members[test])),
    )


def curves(half: Half, score: Array) -> dict[str, float]:
    """Return the areas of the three curves."""
    made = hocal.decisions.risk_coverage
    found = (
        made(score, half.answered),
        made(score, half.asked),
        made(score, half.answered, otherwise=half.asked),
    )
    return {name: digits(each.area.estimate) for name, each in zip(CURVES, found, strict=True)}


def thresholds(known: Half, new: Half, score: str, prices: tuple[float, float]) -> float:
    """Return the cost of two thresholds on a score that were cheapest on the calibration items."""
    paid = known.paid(*prices)
    values = known.scores[score]
    cuts = np.quantile(values, GRID)
    cuts[0], cuts[-1] = -np.inf, np.inf
    tried = [
        (paid[np.arange(len(values)), actions(values, low, high, ending)].mean(), low, high, ending)
        for low, high in combinations_with_replacement(cuts, 2)
        for ending in ENDINGS
    ]
    _, low, high, ending = min(tried)
    taken = actions(new.scores[score], low, high, ending)
    return float(new.paid(*prices)[np.arange(len(taken)), taken].mean())


def actions(score: Array, low: float, high: float, ending: str) -> NDArray[np.int64]:
    """Answer up to the first threshold; ask or refuse up to the second, and the other beyond."""
    middle, last = (1, 2) if ending == "refuse" else (2, 1)
    return np.where(score <= low, 0, np.where(score <= high, middle, last))


def resample(name: str, seed: int) -> dict[str, Any]:
    """Return areas and costs of one split."""
    known, new = study(name, seed)
    areas = {score: curves(new, values) for score, values in new.scores.items()}
    costs = {}
    for person, refusal in PRICES:
        rule = refusal_rule(new.mixtures, person=person, refusal=refusal)
        paid = new.paid(person, refusal)
        taken = rule.expected.argmin(axis=1)
        costs[f"person {person}, refusal {refusal}"] = {
            "rule": float(paid[np.arange(len(paid)), taken].mean()),
            **{score: thresholds(known, new, score, (person, refusal)) for score in new.scores},
            **dict(zip(ACTIONS, map(float, paid.mean(axis=0)), strict=True)),
            "expected": float(rule.expected.min(axis=1).mean()),
            **{f"share {action}": float((taken == i).mean()) for i, action in enumerate(ACTIONS)},
        }
    return {"areas": areas, "costs": costs}


def intervals(name: str) -> dict[str, Any]:
    """Return what the first split proves about the middle prices."""
    known = items(name)
    test = halves(len(known.counts), 0)[1]
    person, refusal = PRICES[1]
    found = refusal_rule(study(name, 0)[1].mixtures, person=person, refusal=refusal)
    cost = found.cost(known.counts[test])
    return {
        "rule": [digits(value) for value in cost.rule],
        **{
            f"saved against {other}": [digits(value) for value in saved]
            for other, saved in cost.saved.items()
        },
    }


def panels() -> Figure:
    """Draw the curves of answering, and refusing the others, for each data set."""
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    for ax, name in zip(figure.subplots(1, len(DATA)), DATA, strict=True):
        half = study(name, 0)[1]
        display = RiskCoverageDisplay.from_scores(half.scores, half.answered)
        display.plot(ax=ax, title=name)
    return figure


def main() -> None:
    """Compute, store, draw and print."""
    chosen = options(__doc__, resamplings=3).parse_args()
    tasks = [(name, seed) for name in DATA for seed in range(chosen.resamplings)]
    runs = in_parallel(resample, tasks, chosen.jobs)
    n_runs = chosen.resamplings
    found = {
        name: {
            **summarise(runs[place * n_runs : (place + 1) * n_runs]),
            "intervals": intervals(name),
        }
        for place, name in enumerate(DATA)
    }
    store("refusal", {"resamplings": n_runs, "data": found})
    draw("refusal", panels())
    for name, result in found.items():
        for part in ("areas", "costs"):
            for what, cells in result[part].items():
                print(name, what, {key: cell["mean"] for key, cell in cells.items()})
        print(result["intervals"])


if __name__ == "__main__":
    main()
