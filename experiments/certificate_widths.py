"""Widths of per-cell certificates on CIFAR-10H next to the paper's bound, several resamplings.

    HOCAL_DATA=/path/to/data python experiments/certificate_widths.py [N_RESAMPLINGS]

resnet18, ten slices for each top label, half of the items for calibration, k labels drawn with replacement; cells
with at least 200 calibration items. A miss is an interval without the value of all items of the cell, calibration
and test, with all their labels as the truth. The result goes to experiments/results/certificate_widths.json.
"""

import json
import sys
from time import perf_counter

import numpy as np
from real_data import RESULTS, cifar10h

from hocal import Mixtures, TopLabelPartition, decompose
from hocal.bounds import aleatoric_bound, epsilon_bound
from hocal.certificates import ENTROPIES, QUANTITIES, certify
from hocal.entropy import get_entropy
from hocal.statistics import CellStatistics, align_counts

CONFIDENCE, FEWEST, LABELS = 0.95, 200, (2, 3, 5, 10)
KEYS = [(entropy, quantity) for entropy in ENTROPIES for quantity in QUANTITIES]


def truths(p: np.ndarray, counts: np.ndarray, cells: np.ndarray, n_cells: int) -> dict[tuple[str, str], np.ndarray]:
    """Uncertainty of each cell from all items and labels, classes in order of falling prediction."""
    mixtures = Mixtures.from_snapshots(align_counts(p, counts), cells, n_cells=n_cells).stored()
    return {(entropy, quantity): decompose(mixtures, entropy).as_dict()[quantity] for entropy, quantity in KEYS}


def paper_width(n_items: int, k: int, n_classes: int, entropy: str) -> float:
    """Width of plug-in -+ omega(epsilon + slack), cut to the possible range."""
    error = min(epsilon_bound(n_items, 1 - CONFIDENCE, k, n_classes, method="paper").value, 2.0)
    largest = get_entropy(entropy).maximum(n_classes)
    return min(2 * aleatoric_bound(error, k, n_classes, entropy=entropy, method="paper").value, largest)


def resample(p: np.ndarray, counts: np.ndarray, k: int, seed: int) -> dict[str, object]:
    """Certify one calibration half."""
    generator = np.random.default_rng([seed, k])
    partition = TopLabelPartition(n_slices=10).fit(p)
    cells = partition.assign(p)
    known = truths(p, counts, cells, partition.n_cells_)
    half = generator.permutation(len(p))[: len(p) // 2]
    labels = generator.multinomial(k, counts[half] / counts[half].sum(axis=1, keepdims=True))
    statistics = CellStatistics.from_items(p[half], labels, cells[half], partition.layout_)
    mixtures = Mixtures.from_snapshots(align_counts(p[half], labels), cells[half], n_cells=partition.n_cells_).stored()
    start = perf_counter()
    certificate = certify(statistics, mixtures, confidence=CONFIDENCE, aligned=True)
    large = statistics.n_items >= FEWEST
    result: dict[str, object] = {"seconds": perf_counter() - start, "intervals": int(large.sum())}
    result["paper"] = {e: [paper_width(int(n), k, 10, e) for n in statistics.n_items[large]] for e in ENTROPIES}
    result["epsilon"] = certificate.epsilon[large].tolist()
    for entropy, quantity in KEYS:
        lower, upper = (end[large] for end in certificate.interval(quantity, entropy))
        value = known[entropy, quantity][large]
        missed = int(((value < lower) | (value > upper)).sum())
        result[f"{entropy} {quantity}"] = {"width": (upper - lower).tolist(), "missed": missed}
    return result


def summarise(runs: list[dict]) -> dict[str, object]:
    """Mean widths and total misses over the resamplings."""
    summary: dict[str, object] = {
        "intervals": sum(run["intervals"] for run in runs),
        "epsilon": round(float(np.mean(np.concatenate([run["epsilon"] for run in runs]))), 4),
        "seconds": round(float(np.median([run["seconds"] for run in runs])), 2),
        "paper": {e: round(float(np.mean(np.concatenate([run["paper"][e] for run in runs]))), 4) for e in ENTROPIES},
    }
    for entropy, quantity in KEYS:
        parts = [run[f"{entropy} {quantity}"] for run in runs]
        widths = np.concatenate([part["width"] for part in parts])
        summary[f"{entropy} {quantity}"] = {
            "mean_width": round(float(widths.mean()), 4),
            "missed": sum(part["missed"] for part in parts),
        }
    return summary


def main(n_resamplings: int) -> None:
    """Run all, print a line a setting, write the JSON."""
    p, counts = cifar10h()
    results = {}
    for k in LABELS:
        results[str(k)] = summarise([resample(p, counts, k, seed) for seed in range(n_resamplings)])
        print(f"k={k}", json.dumps(results[str(k)]))
    setting = {"data": "CIFAR-10H", "model": "resnet18", "confidence": CONFIDENCE, "fewest_items": FEWEST}
    path = RESULTS / "certificate_widths.json"
    document = setting | {"resamplings": n_resamplings, "by_labels": results}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
