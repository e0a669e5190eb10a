"""Handwritten digits made ambiguous, with the label distributions of a teacher as the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from hocal._base.typing import Array, IntArray
from hocal._base.validation import at_most, check_integer, check_random_state
from hocal.cells.partitions import TopLabelPartition
from hocal.datasets.worlds import World, cell_mixtures

__all__ = ["make_ambiguous_digits"]


# digits that the teacher knows by heart; the other 897 are degraded and never shown to it
N_EXEMPLARS = 900
# of the teacher's kernel: clean digits get .06 nats of entropy, blends about .6
TEACHER_WIDTH = 0.4
# clean digits that the student learns from: enough to be useful, too few to be sure
N_STUDENT = 150
# inverse of the student's ridge: it reads most clean digits, and seldom with full confidence
STUDENT_C = 0.3
# darkness of a full pixel in scikit-learn's digits
FULL = 16
# of the noise that is added, in shares of a full pixel: strokes can still be told
NOISE = 0.35
# of the blur, in pixels: strokes run into each other
BLUR = 0.9
# of the first digit in a blend: neither wins
SHARES = (0.35, 0.65)
MAX_IMAGES = 200_000  # of a few hundred digits: they take seconds, and 640 MB
TAUGHT_AT_ONCE = 10_000  # images: their distances to all exemplars take 72 MB


def make_ambiguous_digits(n_items: int = 6000, *, random_state: Any = None) -> World:
    """Make hard-to-read digits, a teacher who knows how people would read them, and a weak student.

    A quarter of the items each are scikit-learn's 8x8 digits as they are, with noise, blurred, and
    blends of two digits. The teacher compares an item with 900 other digits (a kernel classifier);
    its probabilities are the truth from which labels are drawn. The student is a logistic
    regression on 150 clean digits.

    Parameters
    ----------
    n_items : int, default=6000
        Images.
    random_state : int, Generator or None
        Seed or source of randomness.

    Returns
    -------
    World
        Features are the pixels from 0 to 1; ``features.reshape(-1, 8, 8)`` are images. Predictions
        are the student's; cells are those of ``TopLabelPartition(10)``.

    Examples
    --------
    >>> from hocal.datasets import make_ambiguous_digits
    >>> world = make_ambiguous_digits(100, random_state=0)
    >>> world.features.shape, world.label_distributions.shape
    ((100, 64), (100, 10))
    """
    from sklearn.datasets import load_digits

    n_items = at_most(check_integer(n_items, "n_items", minimum=1), "n_items", MAX_IMAGES)
    generator = check_random_state(random_state)
    darkness, digits = load_digits(return_X_y=True)
    pixels = darkness / FULL
    order = generator.permutation(len(pixels))
    known = order[:N_EXEMPLARS]
    unseen = order[N_EXEMPLARS:]
    images = _degrade(pixels[unseen], n_items, generator)
    truth = _teach(images, pixels[known], digits[known])
    shown = known[:N_STUDENT]
    predictions = _study(pixels[shown], digits[shown], images)
    partition = TopLabelPartition().fit(predictions)
    cells = partition.assign(predictions)
    mixtures = cell_mixtures(truth, cells, partition.n_cells_)
    return World(images, truth, predictions, cells, mixtures)


def _degrade(pixels: Array, n_items: int, generator: np.random.Generator) -> Array:
    """Leave, roughen, blur or blend random digits, a quarter each."""
    from scipy.ndimage import gaussian_filter

    first, second = pixels[generator.integers(len(pixels), size=(2, n_items))]  # (n_items, 64) each
    kind = generator.integers(4, size=n_items)[:, None]
    share = generator.uniform(*SHARES, size=(n_items, 1))
    rough = np.clip(first + generator.normal(scale=NOISE, size=first.shape), 0, 1)
    blurred = gaussian_filter(first.reshape(-1, 8, 8), (0, BLUR, BLUR)).reshape(first.shape)
    blended = share * first + (1 - share) * second
    return np.choose(kind, [first, rough, blurred, blended])


def _teach(images: Array, exemplars: Array, digits: IntArray) -> Array:
    """Return the class shares of a Gaussian kernel around each image."""
    starts = range(0, len(images), TAUGHT_AT_ONCE)
    blocks = [images[start : start + TAUGHT_AT_ONCE] for start in starts]
    return np.concatenate([_vote(block, exemplars, digits) for block in blocks])


def _vote(images: Array, exemplars: Array, digits: IntArray) -> Array:
    """Return what the exemplars around each image say, as shares of the classes."""
    from scipy.spatial.distance import cdist

    nearness = -cdist(images, exemplars, "sqeuclidean") / (2 * TEACHER_WIDTH**2)
    kernel = np.exp(nearness - nearness.max(axis=1, keepdims=True))
    votes = kernel @ np.eye(10)[digits]
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def _study(pixels: Array, digits: IntArray, images: Array) -> Array:
    """Return what a logistic regression that was shown a few digits says about the images."""
    from sklearn.linear_model import LogisticRegression

    student = LogisticRegression(C=STUDENT_C, max_iter=1000).fit(pixels, digits)
    return np.asarray(student.predict_proba(images))
