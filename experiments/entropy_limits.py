"""Count how often limits of the entropy of a mean fail, beside a bootstrap's.

    python experiments/entropy_limits.py [--cells 300] [--jobs 1]

Cells of 20 to 500 items with one, two or five labels each, 2, 10 and 100 classes. A limit at 95%
may lie on the wrong side of the truth in one cell of twenty. Bets on the entropy of the mean
(predictive uncertainty) and on what an aleatoric statistic leaves of it (epistemic uncertainty),
from below and from above, with guesses from 300 other items; beside them the percentile bootstrap
of the entropy of the mean, which a user would try first. Five minutes on one core.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import digits, in_parallel, options, store
from scipy import special

from hocal.guarantees.bernstein import BernsteinEstimator, bernstein_estimator
from hocal.guarantees.dealt_cells import Offset
from hocal.guarantees.entropy_bets import lower_entropies
from hocal.guarantees.learnt_guesses import UNIFORM_SHARE, upper_entropies
from hocal.guarantees.samples import Sample

DELTA = 0.05
N_ITEMS = (20, 100, 500)
LABELS = (1, 2, 5)
CLASSES = (2, 10, 100)
N_BOOTSTRAPS = 400
Array = NDArray[np.float64]
World = tuple[Array, Array]


def entropy(p: Array) -> Array:
    """Return Shannon entropies."""
    return np.asarray(-special.xlogy(p, p).sum(axis=-1))


def torn(n_classes: int) -> World:
    """Return items that are certain, and a few torn between two classes."""
    points = np.zeros((3, n_classes))
    points[[0, 1], [0, 1]] = 1
    points[2, :2] = 0.5
    return points, np.array([0.8, 0.1, 0.1])


def rare(n_classes: int) -> World:
    """Return items of one class, and very few of all."""
    points = np.full((2, n_classes), 1 / n_classes)
    points[0] = np.eye(n_classes)[0]
    return points, np.array([0.97, 0.03])


def spread(n_classes: int) -> World:
    """Return items that differ in everything."""
    points = np.random.default_rng(n_classes).dirichlet(np.full(n_classes, 0.3), 20)
    return points, np.full(20, 0.05)


def even(n_classes: int) -> World:
    """Return items about which nothing is known: no limit can lie far below."""
    return np.full((1, n_classes), 1 / n_classes), np.ones(1)


WORLDS = {"torn": torn, "rare": rare, "spread": spread, "even": even}


def draw(world: World, k: int, n_items: int, generator: np.random.Generator) -> Sample:
    """Return the items of a cell."""
    points, shares = world
    kinds = generator.choice(len(shares), n_items, p=shares)
    counts = generator.multinomial(k, points[kinds])
    distinct, repeats = np.unique(counts, axis=0, return_counts=True)
    return Sample(distinct, repeats.astype(np.float64))


def bootstrapped(sample: Sample, generator: np.random.Generator) -> tuple[float, float]:
    """Return percentiles of the entropies of resampled items' means."""
    shares = sample.repeats / sample.repeats.sum()
    drawn = generator.multinomial(sample.n_items, shares, size=N_BOOTSTRAPS) / sample.n_items
    lower, upper = np.quantile(entropy(drawn @ sample.shares), [DELTA, 1 - DELTA])
    return float(lower), float(upper)


def bets(samples: list[Sample], others: Sample, guess: Array, inside: bool) -> tuple[Array, Array]:
    """Return limits of H(m), or inside of H(m) - E H(p), from below and from above."""
    guesses = np.tile(guess, (len(samples), 1))
    ends = []
    for limits, side in ((lower_entropies, "upper"), (upper_entropies, "lower")):
        statistic = one_sided(samples[0], side) if inside else None
        known = offset(others, statistic)
        losses = others.shares @ -np.log(guess) - known.values
        deviation = np.sqrt(np.cov(losses, fweights=others.repeats.astype(int)))
        if side == "upper" and not inside:  # certificates do without, too
            deviation = np.inf
        offsets = [offset(each, statistic)._replace(deviation=deviation) for each in samples]
        ends.append(limits(samples, guesses, offsets, DELTA))
    return ends[0], ends[1]


def one_sided(sample: Sample, side: Any) -> BernsteinEstimator:
    """Return an aleatoric statistic of the items of a cell."""
    k = int(sample.totals[0])
    return bernstein_estimator("shannon", k, sample.n_classes, side=side, n_items=sample.n_items)


def offset(sample: Sample, statistic: BernsteinEstimator | None) -> Offset:
    """Return what is taken away from the losses."""
    if statistic is None:
        return Offset.none(sample)
    ends = (statistic.minimum, statistic.maximum)
    return Offset(statistic(sample.counts), *ends, np.inf, (statistic,))


def failures(name: str, n_classes: int, k: int, n_items: int, n_cells: int) -> dict[str, Any]:
    """Return how often limits fail in a setting, and how far from the truth they are."""
    generator = np.random.default_rng([n_classes, k, n_items])
    points, shares = world = WORLDS[name](n_classes)
    others = draw(world, k, 300, generator)
    guess = (1 - UNIFORM_SHARE) * others.mean + UNIFORM_SHARE / n_classes
    samples = [draw(world, k, n_items, generator) for _ in range(n_cells)]
    truth = float(entropy(shares @ points))
    resampled = np.array([bootstrapped(each, generator) for each in samples]).T
    limits = {
        "predictive": (bets(samples, others, guess, False), truth),
        "bootstrap": ((resampled[0], resampled[1]), truth),
    }
    if k > 1:
        left = truth - float(shares @ entropy(points))
        limits["epistemic"] = (bets(samples, others, guess, True), left)
    return {
        limit: {
            "below": summary(lower - value),
            "above": summary(value - upper),
        }
        for limit, ((lower, upper), value) in limits.items()
    }


def summary(excess: Array) -> dict[str, float]:
    """Return how often limits are on the wrong side of the truth, and how far from it they are."""
    return {"missed": digits((excess > 1e-9).mean()), "distance": digits(-excess.mean())}


def main() -> None:
    """Compute, store and print."""
    parser = options(__doc__, resamplings=1)
    parser.add_argument("--cells", type=int, default=300)
    chosen = parser.parse_args()
    settings = [
        (name, n_classes, k, n_items)
        for name in WORLDS
        for n_classes in CLASSES
        for k in LABELS
        for n_items in N_ITEMS
    ]
    tasks = [(*setting, chosen.cells) for setting in settings]
    found = in_parallel(failures, tasks, chosen.jobs)
    names = [f"{name}, {n_classes} classes, k={k}, n={n}" for name, n_classes, k, n in settings]
    result = dict(zip(names, found, strict=True))
    for limit in ("predictive", "epistemic", "bootstrap"):
        for side in ("below", "above"):
            rates = [each[limit][side]["missed"] for each in found if limit in each]
            worst = f"worst {max(rates):.3f}, mean {np.mean(rates):.3f}, of {len(rates)}"
            print(f"{limit} from {side}: {worst}")
    store("entropy_limits", {"allowed": DELTA, "cells": chosen.cells, "settings": result})


if __name__ == "__main__":
    main()
