"""Score items by the prototypes whose figures were asked for, and by what held-out labels teach.

    HOCAL_DATA=... python experiments/prototypes.py [--resamplings 10] [--jobs 1] [--rows NAME]

`items.py` compares hocal with what prototypes reached on one pair of halves each. Here prototypes
written after the same recipe see the same halves and labels as hocal does. In two stages: an
average of ridge and extra trees expects the disagreement of an item from all that is known about
it, cross-fitted; then two conditional mixtures of the classes by rank see this number, its root and
log-odds, the entropy of the recalibrated prediction and its three largest probabilities. "Tilt"
moves the weights of one pool of atoms, "Dirichlets" are four whose weights and precisions are
linear in the inputs, "both" is the average of the two. Choices that the recipe leaves open (leaves
of trees, penalties) are made by error and likelihood on folds left out. The recalibration is
hocal's.

"Taught" corrects hocal's own answer by extra trees that have seen the *held-out* labels of other
test items, which no method has: what is left after that, more labels or better models must bring.
An hour and a half on one core.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from item_scores import Split, calibrate, disagreement, split
from items import ROWS, SLACK, resample_rows
from numpy.typing import NDArray
from protocol import digits, store
from real_data import Known, load
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hocal
from hocal.calibration.first_order.recalibration import fit_recalibration

KINDS = ("alone", "own")
PROTOTYPES = ("regression", "tilt", "Dirichlets", "both")
N_FOLDS = 5
FLOOR = 1e-6  # of probabilities whose logarithms are inputs
LEAST, MOST = 0.003, 0.98  # expected disagreement
LEAVES = (5, 20, 60)  # smallest leaf of trees
N_TREES = 100
TAUGHT_LEAF = 20
RIDGES = 10.0 ** np.arange(0, 6, 0.5)
PENALTIES = (1.0, 10.0)  # of what mixtures learn about inputs
N_DIRICHLETS = 4
PRECISIONS = (0.5, 2.0, 8.0, 40.0)  # where theirs begin

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


class Seen(NamedTuple):
    """What the second stage sees of some items: classes by rank of the recalibrated prediction."""

    inputs: Array  # (n_items, n_inputs) standardised, the first of them 1
    logs: Array  # (n_items, n_classes) logarithms of the recalibrated prediction by rank
    order: NDArray[np.intp]  # (n_items, n_classes)

    def rank(self, counts: Counts) -> Array:
        """Return counts by rank."""
        return np.take_along_axis(counts, self.order, axis=1).astype(float)

    def take(self, rows: Any) -> "Seen":
        """Return some of the items."""
        return Seen(*(part[rows] for part in self))


def entropy(points: Array) -> Array:
    """Return Shannon entropies in nats."""
    return np.asarray(-(points * np.log(np.maximum(points, 1e-300))).sum(axis=-1))


def all_inputs(known: Known, recalibrated: Array) -> Array:
    """Return what the first stage sees."""
    order = np.argsort(-recalibrated, axis=1, kind="stable")
    leading = np.take_along_axis(recalibrated, order[:, :5], axis=1)
    whole = entropy(recalibrated)
    spread = 1 - (recalibrated**2).sum(axis=1)
    one_hot = np.eye(recalibrated.shape[1])
    columns = [
        *(np.log(np.maximum(part, FLOOR)) for part in (recalibrated, leading, known.mean)),
        *(one_hot[order[:, place]] for place in (0, 1)),
        np.stack([whole, np.sqrt(whole), spread, entropy(known.mean)], axis=1),
    ]
    if known.members.shape[1] > 1:
        ranked = np.take_along_axis(known.members, order[:, None, :3], axis=2)
        logs = np.log(np.maximum(ranked, FLOOR))
        inner = entropy(known.members).mean(axis=1)
        agree = (known.members.argmax(axis=2) == order[:, :1]).mean(axis=1)
        shape = np.stack([inner, entropy(known.mean) - inner, agree], axis=1)
        columns += [logs.mean(axis=1), logs.std(axis=1), shape]
    if known.features is not None:
        columns.append(known.features)
    return np.concatenate(columns, axis=1)


def regress(
    inputs: Array, target: Array, folds: NDArray[np.intp], unseen: Array
) -> tuple[Array, Array]:
    """Return the average of ridge and trees: for each fold by the others, and for unseen items."""
    trials = []
    for leaf in LEAVES:
        found = _cross_fit(inputs, target, folds, leaf)
        trials.append((float(((found - target) ** 2).mean()), leaf, found))
    _, leaf, found = min(trials, key=lambda trial: trial[:2])
    return found, _ridge_and_trees(inputs, target, unseen, leaf)


def _cross_fit(inputs: Array, target: Array, folds: NDArray[np.intp], leaf: int) -> Array:
    found = np.empty(len(target))
    for fold in range(N_FOLDS):
        out = folds == fold
        found[out] = _ridge_and_trees(inputs[~out], target[~out], inputs[out], leaf)
    return found


def _ridge_and_trees(inputs: Array, target: Array, unseen: Array, leaf: int) -> Array:
    ridge = make_pipeline(StandardScaler(), RidgeCV(RIDGES)).fit(inputs, target)
    trees = _trees(leaf).fit(inputs, target)
    return np.clip((ridge.predict(unseen) + trees.predict(unseen)) / 2, LEAST, MOST)


def _trees(leaf: int) -> ExtraTreesRegressor:
    return ExtraTreesRegressor(N_TREES, min_samples_leaf=leaf, max_features=0.4, random_state=0)


def few_inputs(expected: Array, recalibrated: Array) -> Array:
    """Return what the second stage sees, not yet standardised."""
    whole = entropy(recalibrated)
    leading = np.log(np.maximum(-np.sort(-recalibrated, axis=1)[:, :3], FLOOR))
    odds = np.log(expected / (1 - expected))
    columns = [expected, np.sqrt(expected), odds, whole, np.sqrt(whole)]
    return np.concatenate([np.stack(columns, axis=1), leading], axis=1)


def see(parts: Split, generator: np.random.Generator) -> tuple[Seen, Seen, Array]:
    """Return the calibration half and the test half after the first stage, and what it expects."""
    fit, test = parts.fit, parts.test
    folds = generator.permutation(len(fit.counts)) % N_FOLDS
    recalibration = fit_recalibration(fit.members, fit.counts, fit.features, folds)
    known = recalibration.out_of_fold(fit.members, fit.features, folds)
    unseen = recalibration.final.apply(test.members, test.features)
    inputs, new = all_inputs(fit, known), all_inputs(test, unseen)
    expected, new_expected = regress(inputs, disagreement(fit.counts), folds, new)
    scale = StandardScaler().fit(few_inputs(expected, known))
    both = []
    for guess, prediction in ((expected, known), (new_expected, unseen)):
        columns = scale.transform(few_inputs(guess, prediction))
        order = np.argsort(-prediction, axis=1, kind="stable")
        logs = np.log(np.maximum(np.take_along_axis(prediction, order, axis=1), FLOOR))
        both.append(Seen(np.insert(columns, 0, 1.0, axis=1), logs, order))
    return both[0], both[1], new_expected


class Tilt:
    """One pool of atoms for all items, its weights tilted by inputs."""

    def __init__(self, seen: Seen, counts: Counts, penalty: float, seed: int) -> None:
        labels = seen.rank(counts)
        points = _atoms(labels, np.random.default_rng(seed))
        likelihood = _relative(labels @ np.log(points).T)
        weights = np.full(len(points), 1 / len(points))
        for _ in range(150):
            weights *= (1 / (likelihood @ weights)) @ likelihood / len(labels)
        kept = weights > 1e-7
        self.points, likelihood = points[kept], likelihood[:, kept]
        self.base = np.log(weights[kept])
        self.functions = _whitened(self.points, weights[kept])
        self.theta = self._fit(seen.inputs, likelihood, penalty)

    def _fit(self, inputs: Array, likelihood: Array, penalty: float) -> Array:
        shape = (self.functions.shape[1], inputs.shape[1])
        penalties = np.full(shape, penalty)
        penalties[:, 0] = 0

        def loss(flat: Array) -> tuple[float, Array]:
            theta = flat.reshape(shape)
            weights = self._weigh(inputs, theta)
            joint = weights * likelihood
            evidence = joint.sum(axis=1)
            value = -np.log(evidence).sum() + (penalties * theta**2).sum() / 2
            away = weights - joint / evidence[:, None]
            slope = (away @ self.functions).T @ inputs + penalties * theta
            return float(value), slope.ravel()

        start = np.zeros(shape).ravel()
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60})
        return np.asarray(found.x.reshape(shape))

    def _weigh(self, inputs: Array, theta: Array) -> Array:
        return np.asarray(softmax(self.base + inputs @ theta.T @ self.functions.T, axis=1))

    def evidence(self, seen: Seen, counts: Counts) -> float:
        """Return the log-probability of labels."""
        likelihood = np.exp(seen.rank(counts) @ np.log(self.points).T)
        return float(np.log((self._weigh(seen.inputs, self.theta) * likelihood).sum(axis=1)).sum())

    def brier(self, seen: Seen, own: Counts | None) -> Array:
        """Return the Brier uncertainty of items."""
        weights = self._weigh(seen.inputs, self.theta)
        if own is not None:
            weights = weights * _relative(seen.rank(own) @ np.log(self.points).T)
            weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights @ (1 - (self.points**2).sum(axis=1)))


def _relative(logs: Array) -> Array:
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _whitened(points: Array, weights: Array) -> Array:
    """Return the first rank, the root of the entropy and the second rank, uncorrelated."""
    functions = np.stack([points[:, 0], np.sqrt(entropy(points)), points[:, 1]], axis=1)
    functions -= weights @ functions / weights.sum()
    covariance = (functions.T * weights) @ functions + 1e-9 * np.eye(3)
    return np.asarray(functions @ np.linalg.inv(np.linalg.cholesky(covariance)).T)


def _atoms(labels: Array, generator: np.random.Generator) -> Array:
    """Return vertices, points on edges, points around the mean, and smoothed labels."""
    n_classes = labels.shape[1]
    mean = np.maximum(labels.sum(axis=0) / labels.sum(), 1e-4)
    mean /= mean.sum()
    vertices = np.eye(n_classes)
    steps = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])[:, None]
    first = vertices[: min(n_classes, 6)]
    edges = [(1 - steps) * a + steps * b for i, a in enumerate(first) for b in first[i + 1 :]]
    around = [generator.dirichlet(s * mean, 60) for s in (0.3, 1.0, 3.0, 10.0, 30.0)]
    some = labels[generator.choice(len(labels), 200)]
    smoothed = (some + mean) / (some.sum(axis=1, keepdims=True) + 1)
    points = np.concatenate([vertices, *edges, *around, smoothed])
    return np.asarray(0.998 * points + 0.002 * mean)


class Dirichlets:
    """Four Dirichlets by rank; weights and precisions are linear in the inputs."""

    def __init__(self, seen: Seen, counts: Counts, penalty: float) -> None:
        n_inputs = seen.inputs.shape[1]
        self.sizes = [N_DIRICHLETS * n_inputs] * 2 + [N_DIRICHLETS * (1 + seen.logs.shape[1])]
        start = np.zeros(sum(self.sizes))
        start[self.sizes[0] : 2 * self.sizes[0] : n_inputs] = np.log(PRECISIONS)
        penalties = np.full(len(start), penalty)
        penalties[: 2 * self.sizes[0] : n_inputs] = 0.01
        penalties[2 * self.sizes[0] :] = 1.0
        inputs, logs, labels = map(torch.tensor, (seen.inputs, seen.logs, seen.rank(counts)))
        middle, strength = torch.tensor(start), torch.tensor(penalties)

        def loss(flat: Array) -> tuple[float, Array]:
            parameters = torch.tensor(flat, requires_grad=True)
            joint = _joint(*self._shape(parameters, inputs, logs), labels)
            value = (strength * (parameters - middle) ** 2).sum() / 2
            value = value - torch.logsumexp(joint, 1).sum()
            value.backward()  # type: ignore[no-untyped-call]
            return float(value.detach()), np.asarray(parameters.grad)

        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 150})
        self.parameters = torch.tensor(found.x)

    def _shape(self, parameters: Any, inputs: Any, logs: Any) -> tuple[Any, Any]:
        """Return logarithms of the weights, and the parameters of the Dirichlets."""
        weights, precisions, means = torch.split(parameters, self.sizes)
        weights, precisions, means = (
            part.reshape(N_DIRICHLETS, -1) for part in (weights, precisions, means)
        )
        powers = torch.exp(means[:, 0])[None, :, None]
        mean = torch.softmax(powers * logs[:, None] + means[:, 1:], 2)
        total = torch.exp(torch.clamp(inputs @ precisions.T, -5, 8))
        return torch.log_softmax(inputs @ weights.T, 1), total[:, :, None] * mean + 1e-8

    def _of(self, seen: Seen) -> tuple[Any, Any]:
        return self._shape(self.parameters, torch.tensor(seen.inputs), torch.tensor(seen.logs))

    def evidence(self, seen: Seen, counts: Counts) -> float:
        """Return the log-probability of labels."""
        joint = _joint(*self._of(seen), torch.tensor(seen.rank(counts)))
        return float(torch.logsumexp(joint, 1).sum())

    def brier(self, seen: Seen, own: Counts | None) -> Array:
        """Return the Brier uncertainty of items."""
        weights, shape = self._of(seen)
        if own is not None:
            labels = torch.tensor(seen.rank(own))
            weights = torch.log_softmax(_joint(weights, shape, labels), 1)
            shape = shape + labels[:, None]
        total = shape.sum(2)
        brier = 1 - (shape * (shape + 1)).sum(2) / (total * (total + 1))
        return np.asarray((torch.exp(weights) * brier).sum(1))


def _joint(weights: Any, shape: Any, labels: Any) -> Any:
    """Return logarithms of weights times the probability of labels in one order."""
    total = shape.sum(2)
    labels = labels[:, None]
    pairs = torch.lgamma(shape + labels) - torch.lgamma(shape)
    return weights + torch.lgamma(total) - torch.lgamma(total + labels.sum(2)) + pairs.sum(2)


def choose(make: Any, seen: Seen, counts: Counts) -> Any:
    """Return a mixture with the penalty that tells a fifth of the items better by the others."""
    out = np.arange(len(counts)) % N_FOLDS == 0  # the items are in random order
    rest, left = seen.take(~out), seen.take(out)
    fits = {
        penalty: make(rest, counts[~out], penalty).evidence(left, counts[out])
        for penalty in PENALTIES
    }
    return make(seen, counts, max(fits, key=fits.__getitem__))


def taught(answer: Array, parts: Split, own: Counts | None, expected: Array) -> Array:
    """Return an answer corrected by trees that have seen held-out labels of other items."""
    truth = disagreement(parts.test.counts)
    inputs = [all_inputs(parts.test, parts.test.mean), np.stack([answer, expected], axis=1)]
    if own is not None:
        order = np.argsort(-parts.test.mean, axis=1, kind="stable")
        ranked = np.take_along_axis(own, order, axis=1)
        inputs += [ranked[:, :5], disagreement(own)[:, None], own]
    columns = np.concatenate(inputs, axis=1)
    folds = np.arange(len(truth)) % N_FOLDS
    corrected = answer.copy()
    for fold in range(N_FOLDS):
        out = folds == fold
        trees = _trees(TAUGHT_LEAF).fit(columns[~out], (truth - answer)[~out])
        corrected[out] += trees.predict(columns[out])
    return corrected


def resample(name: str, k: int, seed: int) -> dict[str, Any]:
    """Return the resolution of all of them on one pair of halves."""
    torch.set_num_threads(1)
    parts = split(load(name), k, seed)
    seen, new, expected = see(parts, np.random.default_rng(seed))
    counts = parts.fit.counts
    tilt = choose(lambda *given: Tilt(*given, seed), seen, counts)
    dirichlets = choose(Dirichlets, seen, counts)
    calibrator = calibrate(parts.fit, "items")
    found = {}
    for kind, own in zip(KINDS, (None, parts.own), strict=True):
        one, other = tilt.brier(new, own), dirichlets.brier(new, own)
        ours = calibrator.decompose(
            parts.test.members, "brier", features=parts.test.features, counts=own
        ).aleatoric
        answers = {
            "items": ours,
            "regression": expected,
            "tilt": one,
            "Dirichlets": other,
            "both": (one + other) / 2,
            "taught": taught(ours, parts, own, expected),
        }
        found[kind] = {
            method: hocal.resolution(answer, parts.test.counts).estimate
            for method, answer in answers.items()
        }
    return found


def judge(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its best prototype, in hindsight, and whether hocal is as good."""
    verdict: dict[str, Any] = {}
    for kind in KINDS:
        means = {method: cell["mean"] for method, cell in summary[kind].items()}
        best = max(PROTOTYPES, key=lambda method: means[method])
        gap = digits(means["items"] - means[best])
        verdict[kind] = {"best prototype": best, "gap": gap, "within .02": gap >= -SLACK}
    return {"verdict": verdict} | summary


def main() -> None:
    """Compute, store and print."""
    resamplings, summaries = resample_rows(__doc__, resample)
    result = {row.title: judge(summary) for row, summary in summaries}
    if len(result) == len(ROWS):
        store("prototypes", {"resamplings": resamplings, "rows": result})
    for title, found in result.items():
        line = f"{title:30}"
        for kind in KINDS:
            figures = ", ".join(f"{name} {cell['mean']:.3f}" for name, cell in found[kind].items())
            line += f" {kind}: {figures};"
        print(line)


if __name__ == "__main__":
    main()
