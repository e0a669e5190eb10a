"""How far worlds with the same labels can differ in their aleatoric uncertainty.

    python experiments/left_open.py [--items 300]

Given a prediction m, let an item's label distribution be w_1 e_1 + ... + w_r e_r + (1 - sum w) m,
where e_1, ..., e_r are classes drawn from m: some weights may be random, as those of a Dirichlet
distribution around m are. Whatever the weights, the mean is m, and the joint distribution of k
labels depends on them only through which of the labels share a draw: through the expectations of
the sums of w^2, ..., w^k, and of products of these. Worlds in which these agree show the same
labels, however many items there are, and a linear program finds those of least and of most
aleatoric uncertainty. A method that answers for one of the two must be wrong about the other: by
half of the range between them, or more. In the bimodal world, where two classes share all labels,
the joint distribution of k labels depends on the expectations of x, ..., x^k for the share x of the
one. Two minutes on one core.
"""

from collections.abc import Iterable
from functools import partial
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np
from protocol import digits, options, store
from scipy.optimize import linprog
from scipy.special import digamma, entr
from worlds import ASKED, GROWING, LABELS, WORLDS, Array, Generator

PIECES = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40)  # equal weights
SHARES = np.linspace(0.05, 1, 20)  # of all weights together
PRECISIONS = (0.3, 0.5, 0.8, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 50)  # of Dirichlets
DRAWS = 4  # of the classes of each item
LAPSE = np.array([0.89])  # .9 on one of 11 classes and .01 on the others
#: Worlds whose label distributions are of this kind, and the precision or the weights.
KINDS: dict[str, float | Array] = {
    "Dirichlet, 20 classes": 5.0,
    "Dirichlet, 50 classes": 5.0,
    "Dirichlet, 100 classes": 5.0,
    "lapses, class unknown": LAPSE,
    "fixed confusions, 20 classes": 8.0,
    "fixed confusions, 100 classes": 8.0,
    "Dirichlet, 5 classes": 5.0,
}
COIN_SHARES = np.linspace(0, 1, 401)


class Part(NamedTuple):
    """A kind of label distribution."""

    aleatoric: float  # nats, on average over the predictions
    sums: Array  # what the joint distribution of labels depends on


def sums_of_weights(weights: Array) -> Array:
    """Return the sums of w^2 to w^5, and the products of the first with itself and the second."""
    two, three, four, five = (float((weights**power).sum()) for power in (2, 3, 4, 5))
    return np.array([two, three, four, five, two**2, two * three])


def sums_of_dirichlet(precision: float) -> Array:
    """Return the expectations of the same for the weights of a Dirichlet process (Ewens)."""

    def share(*sizes: int) -> float:
        """Probability that labels fall into blocks of these sizes."""
        blocks = prod(precision * factorial(size - 1) for size in sizes)
        return blocks / prod(precision + i for i in range(sum(sizes)))

    single = [share(size) for size in (2, 3, 4, 5)]
    return np.array([*single, share(2, 2) + share(4), share(2, 3) + share(5)])


def needed(k: int) -> list[int]:
    """Return the places of the sums on which k labels depend."""
    return {2: [0], 3: [0, 1], 5: [0, 1, 2, 3, 4, 5]}[k]


def label_distributions(weights: Array, mean: Array, generator: Generator) -> Array:
    """Draw a label distribution for each prediction."""
    result = (1 - weights.sum()) * mean
    rows = np.arange(len(mean))
    limits = mean.cumsum(axis=1)[:, :-1]
    for weight in weights:
        drawn = (generator.random((len(mean), 1)) > limits).sum(axis=1)
        result[rows, drawn] += weight
    return result


def pieces(weights: Array, mean: Array, generator: Generator) -> Part:
    """Return label distributions with fixed weights."""
    draws = [label_distributions(weights, mean, generator) for _ in range(DRAWS)]
    entropy = -np.concatenate([p * np.log(np.maximum(p, 1e-300)) for p in draws]).sum(axis=1)
    return Part(float(entropy.mean()), sums_of_weights(weights))


def dirichlet(precision: float, mean: Array) -> Part:
    """Return Dirichlet distributions."""
    expected = digamma(precision + 1) - (mean * digamma(precision * mean + 1)).sum(axis=1)
    return Part(float(expected.mean()), sums_of_dirichlet(precision))


def extremes(truth: Part, parts: Iterable[Part], places: list[int]) -> dict[str, float]:
    """Return the least and the most aleatoric uncertainty among mixtures with the same labels."""
    parts = [truth, *parts]
    sums = np.array([part.sums[places] for part in parts]).T
    equal = np.vstack([sums, np.ones(len(parts))])
    cost = np.array([part.aleatoric for part in parts])
    solve = partial(linprog, A_eq=equal, b_eq=equal[:, 0], bounds=(0, None))
    least, most = solve(cost), solve(-cost)
    assert least.success
    assert most.success
    ends = {"least": float(least.fun), "most": float(-most.fun)}
    return {name: digits(end) for name, end in ends.items()} | {
        "half": digits((ends["most"] - ends["least"]) / 2)
    }


def left_open(world: str, n_items: int) -> dict[str, Any]:
    """Return the truth of a world, and the range that k labels per item leave open."""
    generator = np.random.default_rng(0)
    mean = (WORLDS | GROWING)[world](n_items, generator).mean
    tried = [np.full(number, share / number) for number in PIECES for share in SHARES]
    parts = [pieces(weights, mean, generator) for weights in [np.zeros(0), *tried]]
    parts += [dirichlet(precision, mean) for precision in PRECISIONS]
    kind = KINDS[world]
    spread = isinstance(kind, float)
    truth = dirichlet(kind, mean) if spread else pieces(np.asarray(kind), mean, generator)
    ranges = {str(k): extremes(truth, parts, needed(k)) for k in LABELS}
    return {"truth": digits(truth.aleatoric)} | ranges


def coins() -> dict[str, Any]:
    """Return the same for the bimodal world: half of the items are coin tosses, half certain."""
    powers = COIN_SHARES[:, None] ** np.arange(1, max(LABELS) + 1)
    entropy = entr(COIN_SHARES) + entr(1 - COIN_SHARES)
    parts = [Part(float(value), sums) for value, sums in zip(entropy, powers, strict=True)]
    toss = parts[len(parts) // 2]
    truth = Part(toss.aleatoric / 2, (toss.sums + (parts[0].sums + parts[-1].sums) / 2) / 2)
    ranges = {str(k): extremes(truth, parts, list(range(k))) for k in LABELS}
    return {"truth": digits(truth.aleatoric)} | ranges


def main() -> None:
    """Compute, store and print."""
    parser = options(__doc__, resamplings=1)
    parser.add_argument("--items", type=int, default=300, help="predictions to average over")
    chosen = parser.parse_args()
    result = {world: left_open(world, chosen.items) for world in KINDS}
    result["bimodal"] = coins()
    store("left_open", {"items": chosen.items, "unit": "nats", "asked": ASKED, "worlds": result})
    for world, found in result.items():
        ranges = ", ".join(
            f"k = {k}: {found[str(k)]['least']:.3f} to {found[str(k)]['most']:.3f}" for k in LABELS
        )
        print(f"{world:30}{found['truth']:.3f}; {ranges}")


if __name__ == "__main__":
    main()
