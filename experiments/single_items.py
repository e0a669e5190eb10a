"""Hold every output for single items to account, where the right answer for each is known.

    python experiments/single_items.py [--resamplings 3] [--jobs 1]

Label distributions are Dirichlet(a), with classes of unequal frequency. A predictor has seen 2, 8
or 32 labels h of each item that nobody else sees, and predicts (a + h) / (|a| + |h|): given all
that is known, the right mixture of the item is Dirichlet(a + h), and given own labels s it is
Dirichlet(a + h + s). How many labels the predictor has seen is a feature; h itself is not known. A
biased predictor is twice as sure, leans to some classes and exchanges the names of a third.

A calibrator that is fitted to three labels per item is compared with the right answer item by item:
its mean by the divergence, its uncertainties by the root mean square error and by the share of the
differences between items that they explain (1 is perfect, 0 what one number for all gives). Beside
it is what people do first: a recalibrated prediction, all of whose entropy is called aleatoric.
Twenty minutes on one core, most of it for logistic regression with 100 classes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from first_order import rivals
from item_scores import FLOOR
from numpy.typing import NDArray
from protocol import in_parallel, options, store, summarise
from scipy import special

import hocal
from hocal.uncertainty.entropy import get_entropy

CLASSES = (2, 10, 100)
PREDICTORS = ("right", "biased")
N_ITEMS = 2_000  # of the fit, and as many to test
K = 3  # labels per item of the fit, and own labels of test items
CONCENTRATION = 2.0  # |a|: label distributions differ much between items
SEEN = (2, 8, 32)  # labels that the predictor has seen
POWER = 2.0  # of a biased predictor: how much too sure it is
RIVALS = ("temperature", "logistic", "prior")
PARTS = ("predictive", "aleatoric", "epistemic")

Array = NDArray[np.float64]


class Scene(NamedTuple):
    """Items, and all that there is to know about them."""

    predictions: Array  # (n_items, n_classes)
    features: Array  # (n_items, 1)
    truth: Array  # (n_items, n_classes) label distributions
    right: Array  # (n_items, n_classes) parameters of the right Dirichlet distribution


class Answer(NamedTuple):
    """What is said about each item."""

    mean: Array  # (n_items, n_classes)
    predictive: Array
    aleatoric: Array
    epistemic: Array


def make_world(
    n_classes: int, predictor: str, generator: np.random.Generator
) -> Callable[[int], Scene]:
    """Return what draws items of a world."""
    falling = np.exp(-2 * np.arange(n_classes) / n_classes)
    prior = CONCENTRATION * generator.permutation(falling / falling.sum())
    bias = generator.normal(size=n_classes)
    names = np.arange(n_classes)
    some = generator.choice(n_classes, max(2, n_classes // 3), replace=False)
    names[some] = np.roll(some, 1)

    def draw(n_items: int) -> Scene:
        truth = generator.gamma(np.broadcast_to(prior, (n_items, n_classes))) + 1e-300
        truth /= truth.sum(axis=1, keepdims=True)
        seen = generator.choice(SEEN, size=n_items)
        right = prior + generator.multinomial(seen, truth)
        said = right / right.sum(axis=1, keepdims=True)
        if predictor == "biased":
            said = special.softmax(POWER * np.log(said) + bias, axis=1)[:, names]
        return Scene(said, np.log(seen)[:, None], truth, right)

    return draw


def know(parameters: Array) -> Answer:
    """Return the right answer, in closed form."""
    total = parameters.sum(axis=1)
    mean = parameters / total[:, None]
    predictive = get_entropy("shannon").value(mean)
    aleatoric = special.digamma(total + 1) - (mean * special.digamma(parameters + 1)).sum(axis=1)
    return Answer(mean, predictive, aleatoric, predictive - aleatoric)


def ask(calibrator: hocal.SnapshotCalibrator, scene: Scene, own: Any = None) -> Answer:
    """Return what a calibrator says."""
    known: dict[str, Any] = {"counts": own}
    if calibrator.method == "items":
        known["features"] = scene.features
    parts = calibrator.decompose(scene.predictions, **known)
    mean = calibrator.predict_proba(scene.predictions, **known)
    return Answer(mean, parts.predictive, parts.aleatoric, parts.epistemic)


def take_for_aleatoric(mean: Array) -> Answer:
    """Return a prediction all of whose entropy is called aleatoric."""
    entropy = get_entropy("shannon").value(mean)
    return Answer(mean, entropy, entropy, np.zeros_like(entropy))


def judge(answer: Answer, right: Answer) -> dict[str, float]:
    """Return the divergence of the mean, and errors of the uncertainties of single items."""
    found = {"divergence": divergence(answer.mean, right.mean)}
    for part in PARTS:
        truth = getattr(right, part)
        gap = getattr(answer, part) - truth
        square = float(np.mean(gap**2))
        found[f"{part}, bias"] = float(gap.mean())
        found[f"{part}, error"] = square**0.5
        found[f"{part}, explained"] = 1 - square / float(truth.var())
    return found


def divergence(mean: Array, right: Array) -> float:
    """Return the mean Kullback-Leibler divergence from the right means."""
    logs = special.xlogy(right, right) - right * np.log(np.maximum(mean, FLOOR))
    return float(logs.sum(axis=1).mean())


def resample(n_classes: int, predictor: str, seed: int) -> dict[str, Any]:
    """Return all figures of one world."""
    generator = np.random.default_rng(seed)
    draw = make_world(n_classes, predictor, generator)
    fit, test = draw(N_ITEMS), draw(N_ITEMS)
    counts = generator.multinomial(K, fit.truth)
    own = generator.multinomial(K, test.truth)
    alone, given = know(test.right), know(test.right + own)
    usual = rivals(fit.predictions, counts, test.predictions)
    found: dict[str, Any] = {
        rival: {"alone": judge(take_for_aleatoric(usual[rival]), alone)} for rival in RIVALS
    }
    for method in ("cells", "items"):
        calibrator = hocal.SnapshotCalibrator(method=method)  # type: ignore[arg-type]
        features = fit.features if method == "items" else None
        calibrator.fit(fit.predictions, counts, features=features)
        found[method] = {
            "alone": judge(ask(calibrator, test), alone),
            "own": judge(ask(calibrator, test, own), given),
        }
    truth = {part: float(getattr(alone, part).mean()) for part in PARTS}
    return {"truth": truth} | found


def main() -> None:
    """Compute, store and print."""
    chosen = options(__doc__, resamplings=3).parse_args()
    seeds = range(chosen.resamplings)
    worlds = [(n_classes, predictor) for n_classes in CLASSES for predictor in PREDICTORS]
    tasks = [(*world, seed) for world in worlds for seed in seeds]
    runs = iter(in_parallel(resample, tasks, chosen.jobs))
    found = {
        f"{n_classes} classes, {predictor}": summarise([next(runs) for _ in seeds])
        for n_classes, predictor in worlds
    }
    store("single_items", {"resamplings": chosen.resamplings, "unit": "nats", "worlds": found})
    for name, world in found.items():
        print(name)
        for method in (*RIVALS, "cells", "items"):
            for known, figures in world[method].items():
                means = {figure: cell["mean"] for figure, cell in figures.items()}
                print(f"  {method:12} {known:6}", means)


if __name__ == "__main__":
    main()
