"""Call every public function and method with hostile arguments, and judge how it ends.

A call may end with a result, or with an InputError, a TypeError or a NotFittedError that says
something; a missing or unreadable file, or a folder in place of one, is an OSError; training that
diverges is a FloatingPointError, for the arguments alone do not tell. Nothing else, and within ten
seconds and two gigabytes.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from copy import copy
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import hocal
from hardening.optional_calls import displays, networks

ALLOWED = (
    hocal.InputError, TypeError, NotFittedError, OSError, ImportError, FloatingPointError,
)  # fmt: skip
SECONDS = 10
BYTES = 2 << 30
HEAVY = 0.3  # how often a target is tried whose honest call takes long

ROOMS = (
    "uncertainty", "cells", "annotations", "guarantees", "calibration", "decisions", "datasets",
    "report",
)  # fmt: skip

# Their documentation says that nothing is checked, or scikit-learn wrote them.
UNCHECKED = {
    "atoms_at_shares", "average", "average_over_support", "blocks", "member_blocks", "pairs",
    "points_at", "support_of", "trusted", "on_common_points", "of_members", "from_checked",
    "fit_checked", "assign_checked", "locate_in_engine", "restore", "check_restored",
    "of", "grid", "unordered", "get_metadata_routing", "set_params", "count", "index",
    "known_reference", "component", "get_params", "describe",
}  # fmt: skip
LONG = {
    "certify", "plan_budget", "summarise", "check_annotations", "agreement", "headroom", "compare",
    "calibration_error", "bernstein_estimator", "polynomial_estimator", "interval_width",
    "items_needed", "certified_set", "cell_statistics", "count_labels", "label_prior", "fit",
    "next_labels", "html", "markdown", "save", "load", "update", "partial_fit", "fit_statistics",
    "expand", "predict_set", "make_ambiguous_digits", "familiarity", "base_proba", "decompose",
    "predict_mixture", "predict_proba", "sample_size", "brier_sample_size", "wasserstein_interval",
    "predict", "score", "nearest_realisable", "to_frame", "projection_slack", "epsilon_bound",
    "make_binary_regression",
}  # fmt: skip

QUICKER: dict[str, dict[str, Any]] = {
    "plan_budget": {"k": 2, "n_simulations": 2, "method": "empirical"},
    "summarise": {"planning": False, "n_listed": 2, "n_gallery": 0},
    "make_ambiguous_digits": {"n_items": 10},
    "stand_in": {"probabilities": np.full((6, 2), 0.5), "annotator": "who"},
    "split_answers": {"answer": "label"},
}

# Sizes that one could mean, and sizes that nobody can.
NUMBERS = (
    0, 1, 2, 3, 10, 100, 1_000, 10_000, 10**5, 10**6, 10**9, 2**31, 2**53, 2**61, 2**63, 10**30,
    10**400, 1e-300, 1e-9, 1e-3, 0.999, 1.0, 2.0, 50.0, 1e9, 1e30, 1e308, np.inf, np.nan, -1, -1e30,
)  # fmt: skip

GENERATOR = np.random.default_rng(2)
P = GENERATOR.dirichlet(np.full(3, 0.7), size=12)
C = GENERATOR.multinomial(3, P)
TABLE = {
    "item": np.repeat(np.arange(6), 3),
    "label": np.tile(["a", "b", "a"], 6),
    "who": np.tile(["x", "y", "z"], 6),
}
PREDICTED = {"item": np.arange(6), "a": np.full(6, 0.5), "b": np.full(6, 0.5)}


class Refuses:
    """An object that does not want to be an array."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")

    def __len__(self) -> int:
        raise RuntimeError("no length")


class Target(NamedTuple):
    """Something public, and arguments that it takes."""

    name: str
    call: Callable[..., Any]
    arguments: dict[str, Any]
    weight: float


def make_hostile(mixtures: hocal.Mixtures, calibrator: Any) -> list[Any]:
    """Return values that nobody should pass."""
    return [
        None, True, False, -1, 0, 1, 2, 7, 1_000, 10**6, 2**31, 2**62, 2**63, 2**70, 10**400,
        -(10**400), 1e30, 1e300, 0.5, -0.5, 1.5, 1e-320, -0.0, np.nan, np.inf, -np.inf, 1j,
        np.float32(0.5), np.int8(3), np.bool_(True), np.datetime64("2020-01-01"), date(2020, 1, 1),
        "", "items", "shannon", "l1", "brier", "x" * 5_000, "\0", "\ud800", "/", ".", "nowhere/x",
        b"", b"abc", [], [[]], [[[]]], {}, set(), (), [1, 2], [[1, 2], [3]], [None], ["a"],
        [[0.5, 0.5]], [[0, 0]], [[1, 1]], [[-1, 2]], [[np.nan, 1]], [[np.inf, 0]], [[10**400, 1]],
        [[2**62, 2**62]], [[2**40, 1]], [0.5, 0.5], [0, 0, 0], [10**9], [-1, -1], [[True, False]],
        np.zeros((0, 2)), np.zeros((3, 0)), np.zeros((2, 2, 2)), np.full((3, 1), 1.0),
        np.full((2, 3), 1 / 3, dtype=np.float32), np.zeros(3), np.ones((12, 3), dtype=int),
        np.zeros((12, 3), dtype=int), np.full((12, 3), 10**6), np.full(12, 2**31), np.arange(12),
        np.ma.masked_array([[0.5, 0.5]], mask=[[True, False]]), np.array(["a", "b"]),
        np.array([[object()]]), np.array([1j]), np.array(5), np.array([date(2020, 1, 1)]),
        np.broadcast_to(np.float64(1e-12), (10**6, 3)), sparse.csr_array([[1, 0], [0, 1]]),
        sparse.csr_array((12, 3), dtype=int), sparse.coo_array([[0.5, 0.5]]), Refuses(), object(),
        int, print, lambda: None, lambda p: p, lambda p: np.zeros(len(p)), iter([1]), range(3),
        mixtures, calibrator, hocal.SnapshotCalibrator(), hocal.TopLabelPartition(2),
        hocal.TopLabelPartition(10**9), hocal.Interval(0.5, 0.2, 0.7), P, C, P.tolist(), C * 1.0,
        C.astype(np.uint8), P[:, :2], P[:5], TABLE, {"item": [1], "label": [None]}, Path("/"),
        {"item": [[1]], "label": [{}]}, hocal.decompose(mixtures), slice(None), Ellipsis,
    ]  # fmt: skip


@contextmanager
def limited() -> Iterator[None]:
    """Hold a call to its time and memory."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    old = signal.signal(signal.SIGPROF, stop), signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, before[1]))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of work, on a machine that others use
    signal.alarm(10 * SECONDS)  # also where it waits
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        signal.signal(signal.SIGPROF, old[0])
        signal.signal(signal.SIGALRM, old[1])
        resource.setrlimit(resource.RLIMIT_AS, before)


def judge(target: Target, arguments: dict[str, Any]) -> str:
    """Call, and return what went wrong; nothing if it ended as it may."""
    try:
        quiet = contextlib.redirect_stdout(io.StringIO())  # `print` is among the callables
        with warnings.catch_warnings(), np.errstate(all="ignore"), limited(), quiet:
            warnings.simplefilter("ignore")
            target.call(**arguments)
    except ALLOWED as error:
        return "" if str(error) and not isinstance(error, TimeoutError) else repr(error)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1].filename
        said = isinstance(error, ValueError) and "sklearn" in place
        if said and "Classifier" in target.name:
            return ""  # what an estimator has to say against its X
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


class World:
    """Honest objects whose methods are called, and honest values by the name of the argument."""

    def __init__(self) -> None:
        self.mixtures = hocal.Mixtures.from_ensemble(P.reshape(6, 2, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.calibrator = hocal.SnapshotCalibrator(method="empirical").fit(P, C)
            self.cells = hocal.SnapshotCalibrator(hocal.KMeansPartition(2), method="cells")
            self.cells.fit(P, C)
        self.parts = hocal.decompose(self.mixtures)
        self.statistics = self.calibrator.statistics_
        self.sets = hocal.predict_set(self.mixtures)

    def honest(self, name: str) -> Any:
        """Return a value that an argument of this name takes, or none."""
        values = {
            "probabilities": P, "counts": C, "features": None, "cells": None, "mixtures":
            self.mixtures, "mixture": self.mixtures, "predicted": self.mixtures, "truth":
            self.mixtures, "a": self.mixtures, "b": self.mixtures, "parts": self.parts, "sets":
            self.sets, "calibrator": self.calibrator, "world": self.calibrator, "estimator":
            self.calibrator, "statistics": self.statistics, "first": P, "second": P, "table": TABLE,
            "labels": TABLE, "item": "item", "label": "label", "classes": ["a", "b"],
            "probability_columns": ["a", "b"], "path": "model.hocal", "k": 2, "j": 1,
            "n_classes": 3, "n_items": 100,
            "delta": 0.05, "epsilon": 0.1, "order": 2, "degree": 3, "alpha": 2.0,
            "entropy": "shannon", "budget": 10, "exponents": [[1, 1, 0]], "distribution":
            np.full(6, 1 / 6), "moments": [0.5, 0.3], "values": [0.1, 0.5, 0.9], "centre": 0.5,
            "radius": 0.1, "plugin": 0.5, "mass": 0.9, "p": P, "q": P, "points": P, "weights": None,
            "tensor": np.full((2, 2), 0.25), "resolution": 4, "partition": None, "name":
            "TopLabelPartition", "layout": self.statistics.layout, "X": P, "y": C,
            "quantity": "aleatoric",
            "size": 2, "n_cells": 3, "n_samples": 2, "cell": 0, "class_names": ["a", "b", "c"],
            "function": lambda p: p[..., 0], "calibration": (self.mixtures, C[:6]),
        }  # fmt: skip
        value = values.get(name)
        if name in ("counts", "probabilities", "first", "second") and value is not None:
            return value
        return value


def collect(world: World) -> list[Target]:
    """Return every public function, constructor and method."""
    targets: dict[str, Target] = {}
    for room in ("", *ROOMS):
        module = import_module(f"hocal.{room}".rstrip("."))
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                continue
            if callable(thing) and not name.startswith(("load_", "fetch")):
                targets.setdefault(name, _target(world, name, thing))
    for owner in _instances(world):
        kind = type(owner).__name__
        for name in dir(owner):
            method = inspect.getattr_static(owner, name)
            plain = inspect.isfunction(method) or isinstance(method, classmethod)
            if plain and not name.startswith(("_", "set_")) and name not in UNCHECKED:
                full = f"{kind}.{name}"
                targets.setdefault(full, _target(world, full, _on_copy(owner, name)))
    for thing in _constructors():
        targets[thing.__name__] = _target(world, thing.__name__, thing)
    optional = [Target(*each) for each in (*displays(world, P, C), *networks())]
    return [*targets.values(), *optional]


def _on_copy(owner: Any, name: str) -> Callable[..., Any]:
    """Return a method that leaves its owner as it is."""

    def call(**arguments: Any) -> Any:
        return getattr(copy(owner), name)(**arguments)

    call.__signature__ = inspect.signature(getattr(owner, name))  # type: ignore[attr-defined]
    return call


def _target(world: World, name: str, call: Callable[..., Any]) -> Target:
    parameters = inspect.signature(call).parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    arguments = {
        p.name: world.honest(p.name) if p.default is inspect.Parameter.empty else p.default
        for p in named
    }
    short = name.rsplit(".", 1)[-1]
    if kind_of_entropy(name) and "truth" in arguments:
        arguments["truth"] = arguments["prediction"] = P
    if "mixtures" in arguments and "counts" in arguments:
        arguments["counts"] = C[:6]
    arguments |= QUICKER.get(name, {})
    weight = HEAVY if short in LONG else 1.0
    return Target(name, call, arguments, weight / 10 if short in QUICKER else weight)


def kind_of_entropy(name: str) -> bool:
    return name.split(".")[0] in ("Shannon", "Brier", "Tsallis")


def _constructors() -> list[Any]:
    from hocal import uncertainty

    partitions = [hocal.TopLabelPartition, hocal.QuantilePartition, hocal.KMeansPartition,
                  hocal.UniformPartition, hocal.LevelSetPartition]  # fmt: skip
    entropies = [uncertainty.Shannon, uncertainty.Tsallis, uncertainty.Brier, uncertainty.Custom]
    return [
        *entropies,
        hocal.Mixtures,
        hocal.Monitor,
        hocal.CellStatistics,
        *map(_fitted, partitions),
    ]


def _fitted(kind: Any) -> Any:
    def make_and_fit(**parameters: Any) -> Any:
        return kind(**parameters).fit(P[:, :2] / P[:, :2].sum(axis=1, keepdims=True))

    make_and_fit.__name__ = f"{kind.__name__}(...).fit"
    make_and_fit.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    return make_and_fit


def _instances(world: World) -> Iterator[Any]:
    from hocal import uncertainty

    yield from (world.mixtures, world.calibrator, world.cells, world.parts, world.sets)
    yield from (uncertainty.Shannon(), uncertainty.Brier(), uncertainty.Tsallis(2.0))
    yield from (hocal.SnapshotCalibrator(), world.statistics)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield world.calibrator.certify()
        yield hocal.Monitor(world.calibrator)
        yield hocal.decompose_loss(world.mixtures, world.mixtures)
        yield hocal.calibration_error(world.mixtures, C[:6], n_resamples=5)
        yield hocal.HigherOrderCalibratedClassifier(LogisticRegression())
    yield hocal.TopLabelPartition(2).fit(P)
    yield hocal.datasets.make_mixture_world(20, random_state=0)


def fuzz(n_calls: int, seed: int) -> dict[str, str]:
    """Return how calls went wrong, by what was called."""
    generator = np.random.default_rng(seed)
    world = World()
    targets = collect(world)
    hostile = make_hostile(world.mixtures, world.calibrator)
    weights = np.array([target.weight for target in targets])
    wrong: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for choice in generator.choice(len(targets), n_calls, p=weights / weights.sum()):
            target = targets[choice]
            arguments = dict(target.arguments)
            names = sorted(set(arguments) - {"check_input"})  # says itself that it skips checks
            for name in generator.permutation(names)[: generator.integers(1, 3)] if names else ():
                number = isinstance(arguments[str(name)], int | float) and generator.random() < 0.5
                pool = NUMBERS if number else hostile
                arguments[str(name)] = pool[generator.integers(len(pool))]
            message = judge(target, arguments)
            if message:
                changed = {k: v for k, v in arguments.items() if v is not target.arguments[k]}
                wrong.setdefault(f"{target.name}: {message}", repr(changed)[:300])
    return wrong


def main(n_calls: str, seed: str) -> int:
    """Print what went wrong, and say so."""
    wrong = fuzz(int(n_calls), int(seed))
    for message, arguments in wrong.items():
        print(f"{message}\n    {arguments}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
