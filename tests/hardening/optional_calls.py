"""What hostile calls try of the rooms that are optional: displays, and networks where torch is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib.util import find_spec
from typing import Any

import numpy as np

import hocal
from hocal import plot

# A drawing takes a tenth of a second, a training run more.
DRAWN, TRAINED = 0.15, 0.05
MOST_EPOCHS = 100  # of a training that is tried: a longer one takes as long as it was asked to


def displays(world: Any, probabilities: Any, counts: Any) -> Iterator[tuple[str, Any, Any, float]]:
    """Give the name of each maker and drawing of a display, what to call, its arguments, weight."""
    certificate = world.calibrator.certify()
    monitor = hocal.Monitor(world.calibrator).update(probabilities[::-1, ::-1], counts)
    honest: dict[str, Any] = {
        "certificate": certificate, "estimator": world.calibrator, "calibrator": world.calibrator,
        "calibrators": world.calibrator, "X": probabilities, "probabilities": probabilities,
        "counts": counts, "mixtures": world.mixtures, "monitor": monitor, "parts": world.parts,
        "errors": {"a": {2: [0.1, 0.2], 5: [0.1, 0.1]}}, "scores": {"a": np.arange(12.0)},
        "losses": np.arange(12.0), "cell": int(np.flatnonzero(world.statistics.n_items)[0]),
        "n_resamples": 5, "min_items": 1, "k": (2,), "n_splits": 2,
    }  # fmt: skip
    for name in plot.__all__:
        kind = getattr(plot, name)
        for maker in dir(kind):
            if not maker.startswith("from_"):
                continue
            call = getattr(kind, maker)
            arguments = with_defaults(call, honest)
            if "mixtures" in arguments and "counts" in arguments:
                arguments["counts"] = counts[:6]
            if maker == "from_estimator" and name == "EntropyDistributionDisplay":
                arguments["min_items"] = 1
            yield f"{name}.{maker}", call, arguments, DRAWN
            if maker != "from_estimator":  # one drawing of each is enough
                yield f"{name}.{maker}.plot", *drawing(call, arguments), DRAWN / 3


def drawing(make: Callable[..., Any], arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return what draws a display, made once, and its arguments."""
    display = make(**arguments)
    return display.plot, with_defaults(display.plot, {})


def with_defaults(call: Callable[..., Any], honest: dict[str, Any]) -> dict[str, Any]:
    """Return the honest value of each argument, else its default."""
    parameters = inspect.signature(call).parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {p.name: honest.get(p.name, p.default) for p in named}


def networks() -> Iterator[tuple[str, Any, Any, float]]:
    """Give the same for functions and constructors of `hocal.torch`, where torch is installed."""
    if find_spec("torch") is None:
        return
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    import hocal.torch as room

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = room.MixtureHead(2, 2, in_features=1)
    inputs = torch.zeros(8, 1)
    loader = DataLoader(TensorDataset(inputs, torch.tensor([[2, 0], [1, 1]]).repeat(4, 1)), 4)
    members = torch.full((4, 3, 2), 0.5)
    honest: dict[str, Any] = {
        "members": members, "model": model, "inputs": inputs, "loader": loader, "loss": model.loss,
        "epochs": 1, "device": "cpu", "outputs": members, "kind": "members", "n_classes": 2,
        "n_components": 2, "in_features": 3, "k": 2, "probabilities": torch.full((4, 4), 0.25),
    }  # fmt: skip
    for name in room.__all__:
        thing = getattr(room, name)
        result = inspect.isclass(thing) and not hasattr(thing, "forward")
        if result:  # holds what a function returned
            continue
        arguments = with_defaults(thing, honest)
        if name == "DeepEnsemble":
            arguments["members"] = [model, model]
        if name == "decompose_members":
            arguments["kind"] = "mutual-information"
        if name == "train":
            yield "torch.train", train_copy, arguments, TRAINED
        else:
            yield f"torch.{name}", thing, arguments, 1.0


def train_copy(model: Any, loader: Any, *, epochs: Any, **options: Any) -> Any:
    """Train a model that stays as it is: a diverged one would be good for no other call."""
    from hocal.torch import train

    tried = min(epochs, MOST_EPOCHS) if type(epochs) is int else epochs
    return train(deepcopy(model), loader, epochs=tried, **options)
