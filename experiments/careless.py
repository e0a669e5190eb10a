"""Careless workers planted into real crowds: who finds them, and what is left without them.

    HOCAL_DATA=... python experiments/careless.py [--resamplings 1] [--jobs 1]

In each table 5, 10 or 20% of the workers with twenty judgements or more are made careless, K in
all: they click at random, always choose one class, or copy the worker with whom they share most
items. Found is the share of the K that are among the first K of a list, or in its first K pairs.
Lists are hocal's (excess disagreement, class use, pairs that agree too much) and, where these
packages are installed (benchmarks/peers.txt), lowest skill first, those of crowd-kit (worker's
accuracy after Dawid and Skene; agreement with the majority, WAWA) and of cleanlab (CROWDLAB, which
needs predictions: those of a network for ImageNet-16H, else the shares of the classes). Aleatoric
uncertainty is mean pair disagreement: of the table as it was, with careless workers, and without
those of whom hocal says that they dissent. Two minutes on one core.
"""

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from protocol import digits, in_parallel, options, store, summarise

from hocal.annotations.independence.agreement_of_people import add_annotators
from hocal.annotations.independence.agreement_result import Agreement, measure_agreement
from hocal.annotations.independence.left_out_annotators import count_votes, leave_out
from hocal.annotations.independence.votes import Votes, set_repeats_aside
from hocal.datasets import load_crowd, load_imagenet16h, load_lewidi

SHARES = (0.05, 0.1, 0.2)
KINDS = ("random", "one class", "copies")
FEWEST = 20  # judgements of a worker who may be made careless: fewer say too little
TABLES = ("CF_amt", "SP_amt", "ImageNet-16H", "MultiPICo")
PEERED = TABLES[:3]  # with the 506 workers of MultiPICo, packages take most of the time


class Planted(NamedTuple):
    """A table with careless workers."""

    votes: Votes
    workers: NDArray[np.int64]  #: numbers of the careless ones


def load(name: str) -> Votes:
    """Return a table of judgements, one of each worker and item."""
    if name.endswith("amt"):
        crowd = load_crowd(name)
        item, worker, label, classes = crowd.item, crowd.worker, crowd.label, crowd.classes
    else:
        judged = load_imagenet16h(["vgg19"]) if name.startswith("Image") else load_lewidi("MP")
        item, worker, label = judged.item, judged.annotator, judged.label
        classes = judged.classes
    workers, who = np.unique(worker, return_inverse=True)
    _, what = np.unique(item, return_inverse=True)
    votes = Votes(what, who, label.astype(np.int64), None, tuple(workers.tolist()), classes, 0)
    return set_repeats_aside(votes, np.random.default_rng(0))[0]


def plant(votes: Votes, kind: str, share: float, generator: np.random.Generator) -> Planted:
    """Make a share of the busy workers careless."""
    busy = np.flatnonzero(np.bincount(votes.annotator) >= FEWEST)
    chosen = generator.choice(busy, max(round(share * len(busy)), 1), replace=False)
    label = votes.label.copy()
    n_classes = len(votes.classes)
    for worker in chosen:
        own = np.flatnonzero(votes.annotator == worker)
        if kind == "random":
            label[own] = generator.integers(0, n_classes, len(own))
        elif kind == "one class":
            label[own] = generator.integers(0, n_classes)
        else:
            _copy(votes, label, own, np.setdiff1d(busy, chosen))
    places = np.arange(len(votes))
    changed = votes.take(places)
    object.__setattr__(changed, "label", label)
    return Planted(changed, chosen)


def _copy(
    votes: Votes, label: NDArray[np.int64], own: NDArray[np.int64], honest: NDArray[np.int64]
) -> None:
    """Give judgements the labels of the honest worker who judged most of the same items."""
    theirs = np.flatnonzero(np.isin(votes.item, votes.item[own]) & np.isin(votes.annotator, honest))
    source = np.bincount(votes.annotator[theirs]).argmax()
    rows = theirs[votes.annotator[theirs] == source]
    answer = dict(zip(votes.item[rows].tolist(), label[rows].tolist(), strict=True))
    for place in own:
        label[place] = answer.get(int(votes.item[place]), label[place])


def measure(votes: Votes) -> Agreement:
    """Return agreement and annotators."""
    counted = measure_agreement(count_votes(votes), ordinal=False, confidence=0.95)
    return add_annotators(counted, votes)


def our_lists(result: Agreement) -> dict[str, list[Any]]:
    """Return annotators by excess, by class use, and pairs of them that agree too much."""
    effects = result.annotators
    assert effects is not None

    def by(p_values: NDArray[np.float64], effect: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.lexsort((-np.nan_to_num(effect), np.nan_to_num(p_values, nan=2.0)))

    beyond = effects.closest_agreement - effects.closest_expected
    pairs = [(effects.annotator[i], effects.closest[i]) for i in by(effects.p_agrees, beyond)]
    return {
        "hocal, excess": list(effects.annotator),
        "hocal, class use": [
            effects.annotator[i] for i in by(effects.p_class_use, effects.distance)
        ],
        "hocal, pairs": list(dict.fromkeys(tuple(sorted(map(str, pair))) for pair in pairs)),
    }


def peer_lists(name: str, votes: Votes) -> dict[str, list[Any]]:
    """Return the lists of the packages that are installed, lowest skill first."""
    lists: dict[str, list[Any]] = {}
    if find_spec("crowdkit"):
        lists |= crowdkit_lists(votes)
    if find_spec("cleanlab"):
        lists["cleanlab, CROWDLAB"] = cleanlab_list(votes, predictions(name, votes))
    return lists


def crowdkit_lists(votes: Votes) -> dict[str, list[Any]]:
    """Return workers by their accuracy after Dawid and Skene, and by WAWA."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene, Wawa

    names = np.array(votes.annotators, dtype=object)
    table = pd.DataFrame(
        {"task": votes.item, "worker": names[votes.annotator], "label": votes.label}
    )
    model = DawidSkene(n_iter=50).fit(table)
    errors = model.errors_.fillna(0)
    priors = model.priors_
    right = {
        worker: sum(
            block.loc[(worker, c), c] * priors[c]
            for c in priors.index
            if (worker, c) in block.index and c in block.columns
        )
        for worker, block in errors.groupby(level=0)
    }
    wawa = Wawa().fit(table).skills_
    return {
        "crowd-kit, Dawid-Skene": sorted(right, key=right.__getitem__),
        "crowd-kit, WAWA": wawa.sort_values().index.tolist(),
    }


def predictions(name: str, votes: Votes) -> NDArray[np.float64]:
    """Return what a network says about the items; the shares of the classes where there is none."""
    if name.endswith("amt"):
        shares = np.bincount(votes.label, minlength=len(votes.classes)) / len(votes)
        return np.tile(shares, (votes.n_items, 1))
    judged = load_imagenet16h(["vgg19"]) if name.startswith("Image") else load_lewidi("MP")
    assert judged.probabilities is not None
    return judged.probabilities[np.unique(judged.item), 0]


def cleanlab_list(votes: Votes, probabilities: NDArray[np.float64]) -> list[Any]:
    """Return workers by the quality of their labels after CROWDLAB."""
    import pandas as pd
    from cleanlab.multiannotator import get_label_quality_multiannotator

    wide = np.full((votes.n_items, len(votes.annotators)), np.nan)
    wide[votes.item, votes.annotator] = votes.label
    table = pd.DataFrame(wide, columns=list(votes.annotators))
    result = get_label_quality_multiannotator(
        table,
        probabilities,
        verbose=False,
        return_detailed_quality=False,
    )
    stats: Any = result["annotator_stats"]
    return list(stats.sort_values("annotator_quality").index)


def found(names: set[Any], ranked: list[Any]) -> float:
    """Return the share of the careless that are among as many first ones; a pair counts as one."""
    first = ranked[: len(names)]
    flat = {who for entry in first for who in (entry if isinstance(entry, tuple) else (entry,))}
    return digits(len(names & flat) / len(names))


def resample(
    name: str, kind: str, share: float, seed: int, *, peers: bool = True
) -> dict[str, Any]:
    """Plant careless workers once, and look for them."""
    peers = peers and name in PEERED
    votes = load(name)
    planted = plant(votes, kind, share, np.random.default_rng(seed))
    names = {votes.annotators[worker] for worker in planted.workers}
    result = measure(planted.votes)
    lists = our_lists(result) | (peer_lists(name, planted.votes) if peers else {})
    remainder = result.without_dissenters
    effects = result.annotators
    assert remainder is not None
    assert effects is not None
    word = "agrees" if kind == "copies" else "dissents"
    told = set(effects.with_finding(word)) | set(effects.with_finding("class use"))
    oracle = leave_out(planted.votes, names, 0.95)
    return {
        "found": {method: found(names, ranked) for method, ranked in lists.items()},
        "told": digits(len(told & names) / len(names)),
        "aleatoric": {
            "with careless": digits(1 - result.pairs.estimate),
            "without dissenters": digits(remainder.remaining),
            "without careless": digits(oracle.remaining),
        },
    }


def main() -> None:
    """Plant careless workers into all tables, and store what was found."""
    parser = options(__doc__, resamplings=1)
    chosen = parser.parse_args()
    seeds = range(chosen.resamplings)
    cases = [(name, kind, share) for name in TABLES for kind in KINDS for share in SHARES]
    tasks = [(*case, seed) for case in cases for seed in seeds]
    runs = in_parallel(resample, tasks, chosen.jobs)
    results: dict[str, Any] = {}
    for place, (name, kind, share) in enumerate(cases):
        mine = runs[place * len(seeds) : (place + 1) * len(seeds)]
        kept = results.setdefault(name, {"as it was": as_it_was(name)})
        kept.setdefault(kind, {})[f"{share:.0%}"] = summarise(mine)
        print(name, kind, share, {k: v["mean"] for k, v in summarise(mine)["found"].items()})
    store("careless", results)


def as_it_was(name: str) -> dict[str, float]:
    """Return the disagreement of a table without planted workers, and without its dissenters."""
    result = measure(load(name))
    assert result.without_dissenters is not None
    assert result.annotators is not None
    return {
        "disagreement": digits(1 - result.pairs.estimate),
        "without dissenters": digits(result.without_dissenters.remaining),
        "dissenters": len(result.without_dissenters.annotators),
        "workers": len(result.annotators.annotator),
    }


if __name__ == "__main__":
    main()
