"""Score every method on single items: calibrated mixtures, heads, ensembles, evidential, plug-in.

    HOCAL_DATA=... python experiments/item_methods.py [--resamplings 5] [--jobs 1] [--data NAME]

The protocol and the scores are those of `items.py`, with three labels per item, two where people
gave few. The predictor is all networks of the data set; cells and the point mass see their mean.
On CIFAR-10H the networks of `cifar_networks.py`, which had one label per training image, are scored
as they are and calibrated; the heads are trained on 64 features of the calibration half, with the
same labels as the calibrators. A probability below one in a million counts as one in a million.
Twenty minutes on one core.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from item_scores import Split, calibrate, figures, floored, predict, read, split
from protocol import in_parallel, options, store, summarise
from real_data import Known, cifar10_trained, load

import hocal

# labels per item: six people judged an image of ImageNet-16H, three a text of SummEval
DATA = {
    "CIFAR-10H 14 nets": 3,
    "ChaosNLI-S 5 models": 3,
    "FER+ own network": 3,
    "ImageNet-16H 3 nets": 2,
    "SummEval 6 models": 2,
}
FEATURES = "CIFAR-10H features"
N_ATOMS = 64  # of a Dirichlet distribution
HIDDEN = 128
EPOCHS = 30
BATCH = 128
RATE = 2e-3
DECAY = 1e-2
N_COMPONENTS = 8

Figures = dict[str, dict[str, float]]


def resample(name: str, seed: int) -> Figures:
    """Return the scores of every method on one pair of halves."""
    parts = split(load(name), DATA[name], seed)
    found = plain(parts) | calibrated(parts)
    if name == "CIFAR-10H 14 nets":
        found |= networks(seed) | from_features(seed)
    return found


def plain(parts: Split) -> Figures:
    """Return the scores of what needs no calibration."""
    members = floored(parts.test.members)
    shares = parts.own / parts.own.sum(axis=1, keepdims=True)
    mixtures = {"the model as a point mass": hocal.Mixtures.from_points(members.mean(axis=1))}
    if members.shape[1] > 1:
        mixtures["the ensemble as a mixture"] = hocal.Mixtures.from_ensemble(members)
    mixtures["frequencies of own labels"] = hocal.Mixtures.from_points(floored(shares))
    return {name: scored(each, parts) for name, each in mixtures.items()}


def scored(mixtures: hocal.Mixtures, parts: Split) -> dict[str, float]:
    """Return the scores of mixtures of the test items."""
    return figures(read(mixtures, parts.scored), parts)


def calibrated(parts: Split) -> Figures:
    """Return the scores of both calibrators, alone and with own labels."""
    found = {}
    for method in ("cells", "items"):
        calibrator = calibrate(parts.fit, method)
        found[method] = figures(predict(calibrator, parts), parts)
        own = predict(calibrator, parts, parts.own)
        found[f"{method}, own labels"] = figures(own, parts)
    return found


# CIFAR-10H: networks that were trained on single labels


def networks(seed: int) -> Figures:
    """Return the scores of trained networks as they are, and calibrated item by item."""
    counts = load("CIFAR-10H 14 nets").counts
    found = {}
    for name, outputs in cifar10_trained().items():
        if outputs.ndim == 2:  # concentrations: how sure the network is comes as a feature
            total = outputs.sum(axis=1, keepdims=True)
            known = Known((outputs / total)[:, None], np.log(total), counts)
            make: Callable[..., hocal.Mixtures] = _from_dirichlet
        else:
            known = Known(outputs, None, counts)
            make = _from_members
        parts = split(known, DATA["CIFAR-10H 14 nets"], seed)
        found[name] = scored(make(parts.test), parts)
        calibrator = calibrate(parts.fit, "items")
        found[f"{name}, items"] = figures(predict(calibrator, parts), parts)
    return found


def _from_members(known: Known) -> hocal.Mixtures:
    return hocal.Mixtures.from_ensemble(floored(known.members))


def _from_dirichlet(known: Known) -> hocal.Mixtures:
    assert known.features is not None
    concentrations = known.mean * np.exp(known.features)
    return hocal.Mixtures.from_dirichlet(concentrations, n_atoms=N_ATOMS)


# CIFAR-10H: from 64 features of a network


def from_features(seed: int) -> Figures:
    """Return the scores of heads on 64 features, and of the calibrator with the same features."""
    parts = split(load(FEATURES), DATA["CIFAR-10H 14 nets"], seed)
    calibrator = calibrate(parts.fit, "items")
    found = {"features, items": figures(predict(calibrator, parts), parts)}
    for name, mixtures in heads(parts, seed).items():
        found[f"features, {name}"] = scored(mixtures, parts)
    return found


def heads(parts: Split, seed: int) -> dict[str, hocal.Mixtures]:
    """Return what heads predict that were trained on the features of the calibration half."""
    from hocal import torch as ht

    k = DATA["CIFAR-10H 14 nets"]
    n_classes = parts.own.shape[1]
    makers: dict[str, Callable[[], Any]] = {
        "SoftmaxHead": lambda: ht.SoftmaxHead(n_classes, HIDDEN),
        "EvidentialHead": lambda: ht.EvidentialHead(n_classes, HIDDEN),
        "SnapshotHead": lambda: ht.SnapshotHead(k, n_classes, HIDDEN),
        "MixtureHead": lambda: ht.MixtureHead(N_COMPONENTS, n_classes, HIDDEN),
    }
    return {name: _train(make, parts, seed) for name, make in makers.items()}


def _train(make: Callable[[], Any], parts: Split, seed: int) -> hocal.Mixtures:
    """Train a network with one hidden layer, stopping by a fifth of its items; predict the test."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset, random_split

    from hocal.torch import predict_mixture, train

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    assert parts.fit.features is not None
    middle = parts.fit.features.mean(axis=0)
    scale = parts.fit.features.std(axis=0)
    inputs, unseen = (
        torch.from_numpy((known.features - middle) / scale).float()
        for known in (parts.fit, parts.test)
    )
    data = TensorDataset(inputs, torch.from_numpy(parts.fit.counts))
    held_out, kept = random_split(data, [0.2, 0.8], torch.Generator().manual_seed(seed))
    head = make()
    model = torch.nn.Sequential(torch.nn.Linear(inputs.shape[1], HIDDEN), torch.nn.ReLU(), head)
    train(
        model,
        DataLoader(kept, BATCH, shuffle=True),
        loss=head.loss,
        epochs=EPOCHS,
        validation=DataLoader(held_out, 1024),
        learning_rate=RATE,
        weight_decay=DECAY,
        device="cpu",
        random_state=seed,
    )
    return _floored_atoms(predict_mixture(model, unseen))


def _floored_atoms(mixtures: hocal.Mixtures) -> hocal.Mixtures:
    """Return mixtures whose atoms call nothing impossible."""
    points = floored(mixtures.points)
    return hocal.Mixtures(points, mixtures.weights, mixtures.offsets, mixtures.index)


def main() -> None:
    """Compute, store and print."""
    parser = options(__doc__, resamplings=5)
    parser.add_argument("--data", default="", help="only data sets whose name contains this")
    chosen = parser.parse_args()
    names = [name for name in DATA if chosen.data in name]
    seeds = range(chosen.resamplings)
    runs = iter(in_parallel(resample, [(name, s) for name in names for s in seeds], chosen.jobs))
    result = {
        name: {"k": DATA[name], "methods": summarise([next(runs) for _ in seeds])} for name in names
    }
    store("item_methods", {"resamplings": chosen.resamplings, "data": result})
    for name, found in result.items():
        print(f"{name}, k = {found['k']}")
        for method, scores in found["methods"].items():
            means = ", ".join(f"{key} {cell['mean']:.3f}" for key, cell in scores.items())
            print(f"  {method:28}{means}")


if __name__ == "__main__":
    main()
