"""Hold every output to account in worlds that nobody chose.

    python experiments/random_worlds.py [--resamplings 60] [--jobs 1]

Numbers of classes and of labels, label distributions and what is wrong with the predictor are drawn
at random: sharp or flat, biased towards classes, noisy, with all names of the classes exchanged,
with nothing but its top class, as an ensemble whose members may be the same, with features or not.
Each world is fitted with several numbers of items, and judged on 3,000 new ones whose label
distributions are known. The mean is compared with the best of the usual recalibrations, mean
predictive uncertainty with the log loss that it claims, mean aleatoric uncertainty with the truth,
and that of single items by how much of the differences between them is explained; all of it from
predictions alone and given labels of the item's own. Brackets hold the middle 90% of the worlds. A
third as many worlds have 20 to 100 classes. Twenty minutes on one core.
"""

from typing import Any, NamedTuple

import numpy as np
from first_order import rivals
from item_scores import FLOOR
from numpy.typing import NDArray
from protocol import digits, in_parallel, options, store
from scipy.special import softmax

import hocal
from hocal.uncertainty.entropy import get_entropy

CLASSES = (2, 3, 5, 10)
MANY_CLASSES = (20, 50, 100)
SIZES = {CLASSES: (100, 400, 1_600), MANY_CLASSES: (400, 1_600)}
FEWER = 3  # times fewer worlds of many classes: logistic regression takes most of the time
N_TEST = 3_000
LABELS = (2, 3, 5, 0)  # per item; 0: from one to ten
NOISES = (0.0, 0.5, 2.0, 6.0)  # of the predictor's logits
MEMBERS = (1, 1, 5)
RIVALS = ("temperature", "logistic", "prior")
OVER = 0.01  # of the best rival's loss: as much as the mean may lose more

Array = NDArray[np.float64]
Generator = np.random.Generator


class World(NamedTuple):
    """How items come about, what people say about them, and what a predictor makes of them."""

    scale: float  # of the logits of mean label distributions
    prior: Array  # (n_classes,) logits of the classes
    precision: float  # logarithm, of label distributions around their mean
    varied: float  # how much the precision varies between items
    lapses: bool  # whether for half of the items people agree but for one label in ten
    power: float  # of predictions: above 1 they are too sure
    bias: Array  # (n_classes,) of the predictor's logits
    noise: float
    names: NDArray[np.intp]  # (n_classes,) that the predictor gives to classes
    hard: bool  # whether the predictor says nothing but its top class
    n_members: int
    features: bool  # whether what the precision depends on is known, roughly


class Scene(NamedTuple):
    """Items of a world."""

    members: Array  # (n_items, n_members, n_classes)
    features: Array | None  # (n_items, n_features)
    truth: Array  # (n_items, n_classes) label distributions


def draw_world(generator: Generator, classes: tuple[int, ...]) -> World:
    """Choose everything at random."""
    n_classes = int(generator.choice(classes))
    exchanged = generator.random() < 0.2
    return World(
        scale=generator.uniform(0.3, 3),
        prior=generator.choice([0, 1.5]) * generator.normal(size=n_classes),
        precision=generator.uniform(-2, 4),
        varied=float(generator.choice([0, 1])),
        lapses=generator.random() < 0.25,
        power=float(np.exp(generator.uniform(-1, 1.3))),
        bias=generator.choice([0, 1]) * generator.normal(size=n_classes),
        noise=float(generator.choice(NOISES)),
        names=generator.permutation(n_classes) if exchanged else np.arange(n_classes),
        hard=generator.random() < 0.1,
        n_members=int(generator.choice(MEMBERS)),
        features=generator.random() < 0.3,
    )


def draw_items(world: World, n_items: int, generator: Generator) -> Scene:
    """Draw items of a world."""
    n_classes = len(world.prior)
    logits = world.scale * generator.normal(size=(n_items, n_classes)) + world.prior
    mean = softmax(logits, axis=1)
    depends_on = generator.normal(size=(n_items, 1))
    precision = np.exp(world.precision + world.varied * depends_on)
    truth = generator.gamma(np.maximum(precision * mean, 1e-9)) + 1e-300
    truth /= truth.sum(axis=1, keepdims=True)
    if world.lapses:
        agreed = np.eye(n_classes)[(mean.cumsum(axis=1) < generator.random((n_items, 1))).sum(1)]
        truth = np.where(generator.random((n_items, 1)) < 0.5, 0.9 * agreed + 0.1 * mean, truth)
    noise = world.noise * generator.normal(size=(n_items, world.n_members, n_classes))
    said = world.power * (logits[:, None] + world.bias + noise)
    members = softmax(said, axis=2)[:, :, world.names]
    if world.hard:
        members = np.eye(n_classes)[members.argmax(axis=2)]
    beside = generator.normal(size=(n_items, 3))  # which tell nothing
    features = np.hstack([depends_on + 0.3 * beside[:, :1], beside]) if world.features else None
    return Scene(members, features, truth)


def resample(classes: tuple[int, ...], n_items: int, seed: int) -> dict[str, float]:
    """Return the figures of one world, after a fit to so many items."""
    generator = np.random.default_rng(seed)
    world = draw_world(generator, classes)
    test = draw_items(world, N_TEST, generator)
    k = int(generator.choice(LABELS))
    own = generator.multinomial(k or 3, test.truth)
    fit = draw_items(world, n_items, generator)
    totals = np.full(n_items, k) if k else generator.integers(1, 11, n_items)
    counts = generator.multinomial(totals, fit.truth)
    calibrator = hocal.SnapshotCalibrator().fit(fit.members, counts, features=fit.features)
    usual = rivals(fit.members.mean(axis=1), counts, test.members.mean(axis=1))
    best = min(_loss(usual[rival], test.truth) for rival in RIVALS)
    alone = judge(calibrator, test, None)
    given = judge(calibrator, test, own)
    excess = {"excess": alone.pop("log loss") / best - 1}
    return excess | alone | {f"{name}, own labels": value for name, value in given.items()}


def judge(
    calibrator: hocal.SnapshotCalibrator, test: Scene, own: NDArray[np.int64] | None
) -> dict[str, float]:
    """Return the log loss of the mean, and how far claims are from what is true."""
    known: dict[str, Any] = {"features": test.features, "counts": own}
    parts = calibrator.decompose(test.members, **known)
    loss = _loss(calibrator.predict_proba(test.members, **known), test.truth)
    entropy = get_entropy("shannon").value(test.truth)
    disagreement = get_entropy("brier").value(test.truth)
    errors = calibrator.decompose(test.members, "brier", **known).aleatoric - disagreement
    return {
        "log loss": loss,
        "predictive less log loss": float(parts.predictive.mean() - loss),
        "aleatoric less truth": float((parts.aleatoric - entropy).mean()),
        "explained": float(1 - (errors**2).mean() / disagreement.var()),
    }


def _loss(mean: Array, truth: Array) -> float:
    return float(-(truth * np.log(np.maximum(mean, FLOOR))).sum(axis=1).mean())


def over_worlds(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Return mean and middle 90% of each figure, and how often the mean loses more than allowed."""
    found: dict[str, Any] = {}
    for name in runs[0]:
        values = np.array([run[name] for run in runs])
        lower, upper = np.quantile(values, [0.05, 0.95])
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        found[name] = {
            "mean": digits(values.mean()),
            "standard error": digits(error),
            "lower": digits(lower),
            "upper": digits(upper),
            "first": digits(values[0]),
        }
    more = [run["excess"] > OVER for run in runs]
    return found | {"share that loses 1% more than the best rival": digits(np.mean(more))}


def main() -> None:
    """Compute, store and print."""
    chosen = options(__doc__, resamplings=60).parse_args()
    n_worlds = {CLASSES: chosen.resamplings, MANY_CLASSES: -(-chosen.resamplings // FEWER)}
    rows = [(classes, size) for classes, sizes in SIZES.items() for size in sizes]
    tasks = [(*row, seed) for row in rows for seed in range(n_worlds[row[0]])]
    runs = iter(in_parallel(resample, tasks, chosen.jobs))
    kinds: dict[str, Any] = {}
    for classes, size in rows:
        kind = f"{classes[0]} to {classes[-1]} classes"
        found = kinds.setdefault(kind, {"worlds": n_worlds[classes], "items": {}})
        found["items"][str(size)] = over_worlds([next(runs) for _ in range(n_worlds[classes])])
        print(f"{kind}, {size} items:")
        for name, cell in found["items"][str(size)].items():
            print(f"  {name:40}", cell)
    store("random_worlds", {"unit": "nats", "kinds": kinds})


if __name__ == "__main__":
    main()
