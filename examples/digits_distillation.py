"""Distil a teacher into a small student, and find out what the student's doubt is made of.

The teacher gives a few sampled answers an item, never its probabilities, as a large model behind an
interface would. The student, a logistic regression, learns from one answer an item. Answers to
other items calibrate it: where the teacher's answers differ the digit itself is ambiguous, where
they agree and the student doubts it has more to learn. Digits are scikit-learn's, some of them
noisy, blurred or blended, so that the truth is known here.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

import hocal
from hocal.datasets import make_ambiguous_digits

N_ITEMS = 4500
N_ANSWERS = 3
TRAINING = slice(0, 300)
CALIBRATION = slice(300, 2300)
TEST = slice(2300, None)


def main() -> None:
    """Print both parts of the student's uncertainty and the truth, for more and more training."""
    world = make_ambiguous_digits(N_ITEMS, random_state=0)
    answers = world.draw(N_ANSWERS, random_state=1)
    one_answer = world.draw(1, random_state=2).argmax(axis=1)
    truth = world.label_distributions[TEST]
    people = hocal.decompose(hocal.Mixtures.from_points(truth)).aleatoric.mean()

    print(f"The teacher's own uncertainty about the test digits is {people:.3f} nats.\n")
    print(
        f"{'trained on':>11}{'accuracy':>10}{'predictive':>12}"
        f"{'aleatoric':>11}{'epistemic':>11}{'error':>8}"
    )
    for n_training in (100, 200, 300):
        student = LogisticRegression(max_iter=1000).fit(
            world.features[:n_training], one_answer[:n_training]
        )
        probabilities = np.zeros((N_ITEMS, 10))
        probabilities[:, student.classes_] = student.predict_proba(world.features)
        calibrator = hocal.SnapshotCalibrator().fit(
            probabilities[CALIBRATION], answers[CALIBRATION]
        )
        parts = calibrator.decompose(probabilities[TEST])
        cells = calibrator.partition_.assign(probabilities[TEST])
        error = hocal.aleatoric_error(parts, label_distributions=truth, cells=cells)
        accuracy = (probabilities[TEST].argmax(axis=1) == truth.argmax(axis=1)).mean()
        means = (part.mean() for part in (parts.predictive, parts.aleatoric, parts.epistemic))
        print(
            f"{n_training:11}{accuracy:10.2f}"
            + "{:12.3f}{:11.3f}{:11.3f}".format(*means)
            + f"{error:8.3f}"
        )
    print(
        "\nTraining removes epistemic uncertainty. "
        "The aleatoric part stays, because it is in the digits."
    )


if __name__ == "__main__":
    main()
