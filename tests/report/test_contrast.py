"""An item that people agree on and the model does not, and one the other way round."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import entr

from hocal import SnapshotCalibrator
from hocal.datasets import World, make_ambiguous_digits
from hocal.report import Report, Summary, summarise
from hocal.report.contrast import SURE
from hocal.report.contrast_words import tell_contrast
from hocal.report.schema import Contrast

N_LABELS = 10
HALF = 200


class Judged(NamedTuple):
    """A summary of the second half of a world, and what it was made of."""

    world: World
    counts: np.ndarray
    calibrator: SnapshotCalibrator
    summary: Summary


@pytest.fixture(scope="module")
def judged() -> Judged:
    world = make_ambiguous_digits(2 * HALF, random_state=4)
    counts = world.draw(N_LABELS, random_state=14)
    calibrator = SnapshotCalibrator().fit(world.predictions[:HALF], counts[:HALF])
    images = np.rint(255 * (1 - world.features[HALF:])).astype(np.uint8).reshape(-1, 8, 8)
    summary = summarise(
        calibrator, world.predictions[HALF:], counts[HALF:], images=images, planning=False
    )
    return Judged(world, counts[HALF:], calibrator, summary)


def of(judged: Judged, who: str) -> Contrast:
    return next(found for found in judged.summary["contrast"] if found["agree"] == who)


def slow_choice(judged: Judged, who: str) -> int:
    """Look at one item after the other."""
    p = judged.world.predictions[HALF:]
    alone = judged.calibrator.decompose(p)
    known = judged.calibrator.decompose(p, counts=judged.counts)
    calibrated = judged.calibrator.predict_proba(p)
    best, chosen = -np.inf, -1
    for row, labels in enumerate(judged.counts):
        agreed = labels.max() == N_LABELS
        if who == "people":
            fits = agreed and calibrated[row].argmax() != labels.argmax()
            score = alone.epistemic[row] - known.aleatoric[row]
        else:
            fits = not agreed and calibrated[row].max() >= SURE
            score = known.aleatoric[row] - alone.predictive[row]
        if fits and score > best:
            best, chosen = score, row
    return chosen


@pytest.mark.parametrize("who", ["people", "model"])
def test_the_item_is_the_one_that_a_search_finds(judged: Judged, who: str) -> None:
    assert of(judged, who)["card"]["item"]["row"] == slow_choice(judged, who)


def test_people_agree_where_the_model_says_something_else(judged: Judged) -> None:
    item = of(judged, "people")["card"]["item"]

    assert item["agreed"]
    assert item["labels"] is not None
    assert item["labels"][0][0] != item["calibrated"][0][0]


def test_the_model_is_sure_where_people_differ(judged: Judged) -> None:
    item = of(judged, "model")["card"]["item"]

    assert not item["agreed"]
    assert item["calibrated"][0][1] >= SURE


def test_the_truth_is_on_the_side_of_the_words(judged: Judged) -> None:
    """The teacher, whom the labels come from, finds the first clearer than the second."""
    truth = entr(judged.world.label_distributions[HALF:]).sum(axis=1)
    clear, torn = (truth[of(judged, who)["card"]["item"]["row"]] for who in ("people", "model"))

    assert clear < truth.mean() < torn


def test_no_labels_make_no_contrast(judged: Judged) -> None:
    p = judged.world.predictions[HALF:]

    assert summarise(judged.calibrator, p, planning=False)["contrast"] == []


def test_two_labels_that_agree_are_not_people_who_agree(judged: Judged) -> None:
    two = np.minimum(judged.counts, 1)
    two[two.sum(axis=1) > 1] = 0
    found = summarise(judged.calibrator, judged.world.predictions[HALF:], 2 * two, planning=False)[
        "contrast"
    ]

    assert found == []


def test_the_page_shows_both_pictures_with_the_words(judged: Judged) -> None:
    page = Report(judged.summary).html()

    assert "The difference in two items" in page
    for contrast in judged.summary["contrast"]:
        told = tell_contrast(contrast)
        assert f"<h4>{told.title}</h4>" in page
        assert told.text in page
        assert contrast["card"]["image"] is not None
        assert contrast["card"]["image"]["source"] in page


def test_markdown_says_the_same(judged: Judged) -> None:
    text = Report(judged.summary).markdown()

    assert "### People agree, the model does not" in text
    assert "### The model is sure, people are not" in text


def test_labels_beyond_the_third_class_are_something_else(judged: Judged) -> None:
    contrast = of(judged, "model")
    item = contrast["card"]["item"] | {"labels": [("a", 5), ("b", 3), ("c", 1)], "n_labels": 11}
    card = contrast["card"] | {"item": item}
    told = tell_contrast({"agree": "model", "card": card})  # type: ignore[typeddict-item]

    assert told.text.endswith("Of 11 people 5 say a, 3 say b, 1 says c, 2 something else.")
