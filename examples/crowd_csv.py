"""Find out from a CSV file of a crowd how much three workers tell about what twenty would say.

    python examples/crowd_csv.py [FILE]

The file has one row per judgement: worker, item, label, and two columns that are not needed here.
Without a file, tweets about the weather judged by 110 workers are loaded
(`hocal.datasets.load_crowd`). There is no classifier in it, so three judgements of each item serve
as the prediction; the others, independent of them, are the labels. What remains uncertain is split
into what the crowd disagrees about and what three workers cannot know.
"""

import sys

import numpy as np
import pandas as pd

import hocal
from hocal.datasets import load_crowd

N_PREDICT = 3


def read(path: str | None) -> pd.DataFrame:
    """Return a table with the columns worker, item and label."""
    if path is None:
        return load_crowd("CF_amt").to_frame()[["worker", "item", "label"]]
    return pd.read_csv(path, names=["worker", "item", "label", "gold", "seconds"])[
        ["worker", "item", "label"]
    ]


def main(path: str | None) -> None:
    """Check the labels, calibrate on all items, and print what is known and what is proved."""
    judgements = read(path)
    check = hocal.check_annotations(
        judgements, item="item", label="label", annotator="worker", random_state=0
    )
    print(check)
    for finding in check.findings:
        if finding.severity == "warning":
            print(f"  {finding.topic}: {finding.message}")

    # A second judgement by the same worker is no new label. Three random ones an item predict, the
    # others are labels.
    shuffled = judgements.drop_duplicates(["item", "worker"]).sample(frac=1, random_state=0)
    first = shuffled.groupby("item").cumcount() < N_PREDICT
    classes = sorted(judgements["label"].unique())
    columns = {"item": "item", "label": "label", "annotator": "worker", "classes": classes}
    seen = hocal.count_labels(shuffled[first], **columns)
    labels = hocal.count_labels(shuffled[~first], **columns)
    probabilities = (seen.counts + 0.5) / (seen.counts + 0.5).sum(axis=1, keepdims=True)

    # How many of the three agree, rather than on which class: 300 items do not fill more cells.
    agreement = np.clip(seen.counts.max(axis=1) - 1, 0, 2)
    calibrator = hocal.SnapshotCalibrator(hocal.PrecomputedPartition(3))
    calibrator.fit(probabilities, labels.counts, cells=agreement)
    parts = calibrator.decompose(probabilities, cells=agreement)
    lower, upper = calibrator.certify(confidence=0.95).interval("aleatoric")
    print(f"\n{'the three workers':20}{'items':>7}{'aleatoric':>11}{'95%':>15}{'epistemic':>12}")
    for cell, name in enumerate(("all differ", "two agree", "all agree")):
        of = agreement == cell
        if not of.any():
            continue
        means = parts.aleatoric[of].mean(), parts.epistemic[of].mean()
        print(
            f"{name:20}{of.sum():7}{means[0]:11.3f}   [{lower[cell]:.2f}, {upper[cell]:.2f}]{means[1]:12.3f}"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
