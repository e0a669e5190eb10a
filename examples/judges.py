"""Hold language models that judge against the people whose judgement they should predict.

Up to six students rated a sign on each of 500 photographs of skin, from 0 to 6, and so did four
language models (from the alternative annotator test). The votes of the models are the prediction,
the ratings of the students are the labels. The data are read from the folder named by HOCAL_DATA;
`hocal data list` says where they come from. Other tasks: `python examples/judges.py summeval`.
"""

import sys

import numpy as np

import hocal
from hocal.datasets import load_judges
from hocal.decisions import class_bias, stand_in

ORDERED = ("summeval", "lesion")  # tasks whose classes are in order


def main(task: str = "lesion") -> None:
    """Print what people would ask about a judge, and the answers."""
    data = load_judges(task)
    print(f"{task}: {data}\n")
    votes = data.probabilities  # (n_items, n_models, n_classes), 1 for the class a model named
    order = np.random.default_rng(0).permutation(len(data))
    calibration, test = np.split(order, [len(order) // 2])

    # How well do the models together predict a new person, and what is left to gain?
    calibrator = hocal.SnapshotCalibrator().fit(votes[calibration], data.counts[calibration])
    calibrated = calibrator.predict_proba(votes[test])
    print("All models, calibrated.", hocal.headroom(calibrated, data.counts[test]))

    # Which of two judges is better, as they are?
    first, second = data.models[:2]
    print(f"\n{first} and {second}.", end=" ")
    print(hocal.compare(votes[:, 0], votes[:, 1], data.counts, loss="accuracy"))

    # Where is the first biased, and may it replace a person?
    print(f"\n{first}: share of each class less that of people")
    for name, (estimate, lower, upper) in zip(
        data.classes, class_bias(votes[:, 0], data.counts), strict=True
    ):
        print(f"{name:>26}  {estimate:+.3f} [{lower:+.3f}, {upper:+.3f}]")
    table = {"item": data.item, "who": data.annotator, "rating": data.label}
    columns = {"item": "item", "label": "rating", "annotator": "who"}
    ordinal = task in ORDERED
    classes = range(len(data.classes))
    found = stand_in(
        votes[:, 0], table, **columns, classes=classes, ordinal=ordinal, tolerance=0.05
    )
    print(f"\n{first}: {found}\n{found.table()}")

    # Which items should people look at?
    parts = calibrator.decompose(votes[test])
    wanted = hocal.next_labels(calibrator.predict_mixture(votes[test]), None, budget=50)
    print(f"\n{wanted}")
    print(f"{'item':26}{'models say':32}{'aleatoric':>10}{'epistemic':>10}")
    for row in wanted.order[:5]:
        named = votes[test[row]].argmax(axis=1)
        said = ", ".join(data.classes[number] for number in named)
        uncertainty = f"{parts.aleatoric[row]:10.2f}{parts.epistemic[row]:10.2f}"
        print(f"{data.items[test[row]][:24]:26}{said[:30]:32}{uncertainty}")


if __name__ == "__main__":
    main(*sys.argv[1:])
