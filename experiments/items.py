"""Score the uncertainty of single items: mixtures per cell against mixtures per item.

    HOCAL_DATA=... python experiments/items.py [--resamplings 10] [--jobs 1] [--rows NAME]

Half of the items calibrate with k labels each, drawn without replacement; half test. A test item is
predicted from its prediction alone, and given k labels of its own; the labels that are left score
both. Resolution is the share of the differences in disagreement between items that is explained
(`hocal.resolution`), the snapshot score the log-probability per label of four held-out labels. The
columns "at least" were set before the method was written, from one pair of halves each, which moves
a figure by .02. "All labels" is what the same method reaches when the calibration half keeps all
its labels, six to a hundred per item: about what its predictions and its items allow. An hour on
one core.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from item_scores import calibrate, figures, predict, resolution, split
from protocol import digits, in_parallel, options, store, summarise
from real_data import load

METHODS = ("cells", "items")
ALL_LABELS = "all labels"
SLACK = 0.02  # by which a row may miss what was asked


class Row(NamedTuple):
    """A predictor, the labels per item, and the resolutions that were asked for."""

    name: str
    k: int
    before: float  # of cells, before there were items
    alone: float
    own: float

    @property
    def title(self) -> str:
        """What the row is called in the tables."""
        return f"{self.name}, k = {self.k}"


ROWS = (
    Row("CIFAR-10H resnet18", 2, 0.075, 0.111, 0.258),
    Row("CIFAR-10H resnet18", 3, 0.089, 0.123, 0.381),
    Row("CIFAR-10H resnet18", 5, 0.093, 0.145, 0.539),
    Row("CIFAR-10H features", 2, 0.089, 0.131, 0.242),
    Row("CIFAR-10H features", 3, 0.090, 0.156, 0.402),
    Row("CIFAR-10H features", 5, 0.091, 0.151, 0.501),
    Row("CIFAR-10H 14 nets", 2, 0.146, 0.178, 0.334),
    Row("CIFAR-10H 14 nets", 3, 0.147, 0.193, 0.415),
    Row("CIFAR-10H 14 nets", 5, 0.159, 0.213, 0.554),
    Row("ChaosNLI-S roberta_0", 2, 0.078, 0.136, 0.261),
    Row("ChaosNLI-S roberta_0", 3, 0.107, 0.188, 0.320),
    Row("ChaosNLI-S roberta_0", 5, 0.104, 0.196, 0.488),
    Row("ChaosNLI-S 5 models", 2, 0.151, 0.186, 0.269),
    Row("ChaosNLI-S 5 models", 3, 0.148, 0.238, 0.347),
    Row("ChaosNLI-S 5 models", 5, 0.183, 0.275, 0.531),
    Row("ImageNet-16H vgg19", 2, 0.424, 0.540, 0.704),
    Row("ImageNet-16H 3 nets", 2, 0.462, 0.590, 0.722),
    Row("FER+ own network", 2, 0.793, 0.836, 0.861),
    Row("FER+ own network", 3, 0.767, 0.796, 0.817),
    Row("FER+ own network", 5, 0.752, 0.774, 0.816),
)


def resample(name: str, k: int, seed: int) -> dict[str, Any]:
    """Return all scores, alone and with own labels, on one pair of halves."""
    parts = split(load(name), k, seed)
    whole = calibrate(parts.whole, "items")
    found = {
        ALL_LABELS: {
            "alone": resolution(whole, parts),
            "own": resolution(whole, parts, parts.own),
        }
    }
    for method in METHODS:
        calibrator = calibrate(parts.fit, method)
        found[method] = {
            "alone": figures(predict(calibrator, parts), parts),
            "own": figures(predict(calibrator, parts, parts.own), parts),
        }
    return found


def judge(row: Row, summary: dict[str, Any]) -> dict[str, Any]:
    """Return a row's figures with what was asked, and whether it is reached."""
    asked = {"alone": row.alone, "own": row.own}
    reached = {
        kind: summary["items"][kind]["resolution"]["mean"] >= least - SLACK
        for kind, least in asked.items()
    }
    return {"asked": {"cells before": row.before, **asked}, "reached": reached} | summary


def means(rows: dict[str, Any]) -> dict[str, Any]:
    """Return the mean resolution over the rows."""
    found: dict[str, Any] = {
        "asked": {
            kind: digits(np.mean([row["asked"][kind] for row in rows.values()]))
            for kind in ("cells before", "alone", "own")
        }
    }
    for method in (*METHODS, ALL_LABELS):
        found[method] = {
            kind: digits(
                np.mean([row[method][kind]["resolution"]["mean"] for row in rows.values()])
            )
            for kind in ("alone", "own")
        }
    return found


def resample_rows(
    description: str | None, resample: Callable[[str, int, int], dict[str, Any]]
) -> tuple[int, list[tuple[Row, Any]]]:
    """Return the number of resamplings that was asked for, and the summary of each row."""
    parser = options(description, resamplings=10)
    parser.add_argument("--rows", default="", help="only rows whose title contains this, unstored")
    chosen = parser.parse_args()
    rows = [row for row in ROWS if chosen.rows in row.title]
    if not rows:
        titles = "; ".join(row.title for row in ROWS)
        parser.error(f"--rows must be part of a title, got {chosen.rows!r}. The titles: {titles}")
    seeds = range(chosen.resamplings)
    tasks = [(row.name, row.k, seed) for row in rows for seed in seeds]
    runs = iter(in_parallel(resample, tasks, chosen.jobs))
    return len(seeds), [(row, summarise([next(runs) for _ in seeds])) for row in rows]


def main() -> None:
    """Compute, store and print."""
    resamplings, summaries = resample_rows(__doc__, resample)
    result = {row.title: judge(row, summary) for row, summary in summaries}
    if len(result) == len(ROWS):
        store("items", {"resamplings": resamplings, "mean": means(result), "rows": result})
    for title, found in result.items():
        line = f"{title:30}"
        for kind in ("alone", "own"):
            cells, items = (found[method][kind]["resolution"]["mean"] for method in METHODS)
            mark = " " if found["reached"][kind] else "*"
            line += f"  {kind} {cells:6.3f} {items:6.3f} ({found['asked'][kind]:.3f}){mark}"
        gap = found["items"]["alone"]["predictive less log loss"]["mean"]
        print(f"{line}  predictive less log loss {gap:+.3f}")
    print(means(result))


if __name__ == "__main__":
    main()
