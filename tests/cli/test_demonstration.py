"""The demonstration shows what it claims, against a truth that it knows."""

from typing import Any

import pytest

from hocal.cli.demonstration import Demonstration, demonstrate

# Where the shared demonstration has filled caches, others take half the time.
pytestmark = pytest.mark.xdist_group("shown")


def test_hocal_is_closer_to_the_truth_than_the_papers_method_at_every_number_of_labels(
    shown: Demonstration,
) -> None:
    paper, ours = shown.estimates[::2], shown.estimates[1::2]

    for theirs, mine in zip(paper, ours, strict=True):
        assert mine.error < 0.7 * theirs.error


def test_two_labels_of_hocal_are_worth_ten_of_the_papers_method(shown: Demonstration) -> None:
    errors = {(line.k, line.method): line.error for line in shown.estimates}

    assert errors[2, "hocal"] < errors[10, "the paper's method"]


def test_shown_intervals_hold_the_truth(shown: Demonstration) -> None:
    assert all(cell.interval[0] <= cell.truth <= cell.interval[1] for cell in shown.cells)


def test_the_report_shows_digits(shown: Demonstration) -> None:
    assert shown.report.html().count("data:image/png") > 20


def test_the_shown_digits_are_clear_and_torn_in_truth(shown: Demonstration) -> None:
    """The first is clear to the teacher, who stands for people; the second is not."""
    clear, torn = shown.digits

    assert clear.title == "People agree, the model does not"
    assert torn.title == "The model is sure, people are not"
    assert clear.truth < torn.truth / 2
    assert torn.truth > shown.truth.aleatoric.mean()


@pytest.mark.slow
def test_the_demonstration_repeats_itself_and_tells_what_it_does() -> None:
    told: list[str] = []
    first, second = (
        demonstrate(n_items=150, label_numbers=[3], progress=told.append) for _ in range(2)
    )

    assert first.estimates == second.estimates
    assert first.report.json() == second.report.json()
    assert told == 2 * [
        "drawing digits",
        "3 labels per item, the paper's method",
        "3 labels per item, hocal",
        "certifying, and writing the report",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"label_numbers": []},
            "`label_numbers` must hold at least one number of labels, got none",
        ),
        ({"label_numbers": [2, 0]}, "`label_numbers` must be an integer of at least 1, got 0"),
        ({"random_state": None}, "`random_state` must be an integer of at least 0, got None"),
    ],
    ids=["nothing", "no label", "no seed"],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        demonstrate(n_items=100, **options)
