"""Show that both heads approach the Bayes mixture as data grows, at equal data.

    python experiments/head_convergence.py

In a world of eight cells, each with three label distributions, items have five labels: enough to
identify three atoms. Both heads sit on the same small network. Reported, averaged over cells and
seeds: W1 to the Bayes mixture; W1 between the 5-label projections of prediction and truth, the
distance a SnapshotHead can bring to zero; and the excess of the expected cross-entropy over that of
the true snapshot distribution, its minimum. About a minute on one core.
"""

import numpy as np
import torch
from protocol import digits, row, store, summarise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import hocal
from hocal.datasets import World, make_mixture_world
from hocal.torch import MixtureHead, SnapshotHead, predict_mixture, train
from hocal.uncertainty.mixtures import Mixtures

K = 5
N_CLASSES = 3
N_CELLS = 8
N_ATOMS = 3
N_COMPONENTS = 6
SIZES = (125, 500, 2_000, 8_000, 32_000)
SEEDS = (0, 1, 2)
BATCH = 64
N_STEPS = 3_000
HEADS = {
    "SnapshotHead": lambda: SnapshotHead(K, N_CLASSES, 64),
    "MixtureHead": lambda: MixtureHead(N_COMPONENTS, N_CLASSES, 64),
}


def world_of(n_items: int, seed: int) -> World:
    """Return items of the same eight cells, whatever their number."""
    return make_mixture_world(
        n_items, N_CLASSES, n_cells=N_CELLS, n_atoms=N_ATOMS, ambiguity=0.6, random_state=seed
    )


def trained(head: SnapshotHead | MixtureHead, world: World, seed: int) -> nn.Module:
    """Train a network with one hidden layer for a fixed number of steps on most of a world."""
    data = TensorDataset(
        torch.from_numpy(world.features).float(), torch.from_numpy(world.draw(K, random_state=seed))
    )
    held_out, kept = torch.utils.data.random_split(
        data, [0.2, 0.8], torch.Generator().manual_seed(seed)
    )
    model = nn.Sequential(nn.Linear(world.features.shape[1], 64), nn.ReLU(), head)
    loader = DataLoader(kept, BATCH, shuffle=True)
    train(
        model,
        loader,
        loss=head.loss,
        epochs=max(2, N_STEPS // len(loader)),
        validation=DataLoader(held_out, 1024),
        learning_rate=5e-3,
        weight_decay=1e-4,
        device="cpu",
        random_state=seed,
    )
    return model


def measure(predicted: Mixtures, truth: Mixtures, head: str) -> dict[str, float]:
    """Compare a predicted mixture with the Bayes mixture of each cell."""
    # The atoms of a SnapshotHead are snapshots already: its weights are its prediction of them.
    snapshots = predicted if head == "SnapshotHead" else predicted.project(K)
    true = truth.snapshot_distribution(K)
    expected = truth.project(K)
    guessed = (
        snapshots.weights.reshape(true.shape)
        if head == "SnapshotHead"
        else predicted.snapshot_distribution(K)
    )
    return {
        "w1_to_bayes_mixture": float(hocal.wasserstein(predicted, truth).mean()),
        "w1_of_snapshots": float(hocal.wasserstein(snapshots, expected).mean()),
        "excess_cross_entropy": float((true * np.log(true / guessed)).sum(axis=1).mean()),
    }


def run(name: str, n_items: int, seed: int) -> dict[str, float]:
    """Train one head on one world and measure it."""
    torch.manual_seed(seed)
    world = world_of(n_items, seed)
    model = trained(HEADS[name](), world, seed)
    _, one_each = np.unique(world.cells, return_index=True)
    features = torch.from_numpy(world.features[one_each]).float()
    return measure(predict_mixture(model, features), world.mixtures[one_each], name)


def main() -> None:
    """Run every head, size and seed; store and print the curves."""
    torch.set_num_threads(1)
    curves: dict[str, dict] = {name: {} for name in HEADS}
    for name, curve in curves.items():
        for n_items in SIZES:
            curve[str(n_items)] = summarise([run(name, n_items, seed) for seed in SEEDS])
            figures = curve[str(n_items)]
            print(
                f"{name:14}{n_items:8} items  {', '.join(figures)}: {row(figures.values())}",
                flush=True,
            )
    slack = [world_of(1000, seed).mixtures for seed in SEEDS]
    floor = np.mean(
        [hocal.wasserstein(mix.stored().project(K), mix.stored()).mean() for mix in slack]
    )
    limit = {"w1_of_the_true_projection_to_the_bayes_mixture": digits(floor)}
    store("head_convergence", {"seeds": len(SEEDS), "k": K, "curves": curves, **limit})
    print(f"W1(proj_{K} of the truth, truth) = {floor:.4f}, the limit of SnapshotHead")


if __name__ == "__main__":
    main()
