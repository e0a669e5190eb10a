"""Calibrate a scikit-learn pipeline by cross-validation, to higher order, and write a report.

    python examples/scikit_learn_pipeline.py [REPORT.html]

Labels are counts: how many of three people chose each class. A table of features with gaps and
words shows that preprocessing belongs inside the pipeline, where it is cross-validated too.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import hocal
from hocal.datasets import make_mixture_world
from hocal.report import Report, summarise

CLASSES = ["cat", "dog", "fox"]


def make_table(n_items: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features, some of them missing or words, and the labels of three people."""
    world = make_mixture_world(n_items, len(CLASSES), random_state=0)
    table = pd.DataFrame(world.features, columns=[f"x{j}" for j in range(world.features.shape[1])])
    table["size"] = np.where(table.pop("x0") > 0, "large", "small")
    table.loc[::7, "x1"] = np.nan
    return table, world.draw(3, random_state=1)


def main(path: Path) -> None:
    """Fit, print, and write a report on items that were held out."""
    table, counts = make_table(2000)
    model = make_pipeline(
        make_column_transformer((OrdinalEncoder(), ["size"]), remainder="passthrough"),
        HistGradientBoostingClassifier(max_iter=30),
    )
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(n_slices=5))
    classifier = hocal.HigherOrderCalibratedClassifier(model, calibrator, cv=3, random_state=0)
    classifier.fit(table[:1500], counts[:1500], classes=CLASSES)
    held_out = table[1500:]
    print(held_out.assign(prediction=classifier.predict(held_out)).head(3).to_string())
    print(classifier.decompose(held_out))
    print(
        f"accuracy against the most frequent label: {classifier.score(held_out, counts[1500:]):.2f}"
    )
    report = Report(
        summarise(classifier, held_out, counts[1500:], planning=False, title="Three people a photo")
    )
    print(report.save(path, overwrite=True).name)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary) / "report.html")
