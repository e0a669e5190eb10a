"""What a summary sounds like."""

import copy
from typing import Any, cast

import pytest

from hocal.guarantees.promises import OUTSIDE
from hocal.report import Report, Summary, summarise, words
from report.example import Example


@pytest.fixture
def changed(summary: Summary) -> Any:
    """Return a copy of the summary that a test may change."""
    return copy.deepcopy(cast("dict[str, Any]", summary))


def titles(summary: Summary) -> list[str]:
    return [finding.title for finding in words.about_trust(summary)]


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (0.8, "Most of it is the model not knowing"),
        (0.2, "Most of it is people disagreeing"),
        (0.5, "People disagreeing and the model not knowing weigh about the same"),
        (None, "The model is certain of every item"),
    ],
)
def test_the_verdict_follows_the_share(changed: Any, share: float | None, verdict: str) -> None:
    changed["parts"]["epistemic_share"] = share

    assert verdict in " ".join(words.about_parts(changed))


@pytest.mark.parametrize("share", [0.8, 0.2])
def test_one_label_per_item_gives_no_verdict(changed: Any, share: float) -> None:
    changed["parts"]["epistemic_share"] = share
    changed["data"] |= {"fewest_labels": 1, "most_labels": 1}
    text = " ".join(words.about_parts(changed))

    assert "Most of it" not in text
    assert "A second label for some of the items would tell." in text


@pytest.mark.parametrize(
    ("labels", "agreed", "said"),
    [
        ([("dog", 10)], True, "10 of 10 people agree: dog"),
        ([("dog", 7), ("cat", 3)], False, "dog (7), cat (3)"),
        (None, False, ""),
    ],
)
def test_agreement_is_said_in_words(changed: Any, labels: Any, agreed: bool, said: str) -> None:
    item = changed["items"][0] | {"labels": labels, "n_labels": 10, "agreed": agreed}

    assert words.about_labels(item) == said


def test_ragged_labels_are_given_as_a_range(changed: Any) -> None:
    changed["data"] |= {"fewest_labels": 2, "most_labels": 7}

    assert words.about_data(changed).endswith("2 to 7 each.")


def test_a_large_p_value_is_no_sign_of_miscalibration(changed: Any) -> None:
    changed["trust"]["calibration"]["p_value"] = 0.4

    assert titles(changed)[0] == "No sign of miscalibration"


def test_a_small_p_value_names_the_excess(changed: Any) -> None:
    changed["trust"]["calibration"] |= {"p_value": 0.01, "excess": 0.0123}

    assert titles(changed)[0] == "Off by 0.012 more than chance explains"


def test_disagreement_is_left_out_where_none_was_seen(changed: Any) -> None:
    before = len(titles(changed))
    changed["trust"]["calibration"]["observed_disagreement"] = None

    assert len(titles(changed)) == before - 1


def test_the_aleatoric_error_is_told_where_it_was_measured(changed: Any) -> None:
    changed["trust"]["calibration"] |= {"aleatoric_error": 0.0456, "median_labels": 50.0}

    assert (
        "0.046 nats from the mean entropy of histograms of about 50 labels"
        in words.about_trust(changed)[1].text
    )


def test_vacuous_cells_are_said_plainly(changed: Any) -> None:
    changed["trust"]["certificate"] |= {"n_vacuous": 3, "n_outside": 1}
    text = words.about_trust(changed)[2].text

    assert "In 3 cells there are too few labels to prove anything." in text
    assert "In 1 cell, marked with !, the estimate lies outside its limits." in text


def test_borrowed_labels_are_said_plainly(changed: Any) -> None:
    changed["trust"] |= {"borrowed_cells": 2, "borrowed_items": 100}

    assert "25% of the items use borrowed labels" in titles(changed)


def test_a_check_without_warning_is_no_proof(changed: Any) -> None:
    changed["trust"]["check"]["findings"] = changed["trust"]["check"]["findings"][1:]

    assert words.about_trust(changed)[-1].text.endswith("This is no proof that there is none.")


def test_repeated_judgements_alone_are_not_called_dependence(changed: Any) -> None:
    changed["trust"]["check"]["findings"][0] |= {"topic": "repeats", "message": "Bob judged twice."}
    finding = words.about_trust(changed)[-1]

    assert finding.title == "Some people judged an item twice"
    assert finding.text.endswith("With the repeats left out there is no sign of dependent labels.")


def test_the_card_on_independence_is_short_and_the_details_are_in_one_place(changed: Any) -> None:
    changed["trust"]["check"]["findings"][0]["message"] = "Bob copied Ann."
    card = words.about_trust(changed)[-1]
    markdown = Report(changed).markdown()
    page = Report(changed).html()

    assert card.text == (
        "1,600 judgements by 30 annotators were checked. 1 warning: order. "
        "What was found is said below."
    )
    assert markdown.count("Bob copied Ann.") == 1
    # once for people, and once among the numbers that can be saved
    assert page.count("Bob copied Ann.") == 2


def test_a_negative_zero_has_no_sign() -> None:
    assert words.fixed(-0.0) == words.fixed(-0.0001) == "0.000"


def test_remarks_warn_about_a_cell(changed: Any) -> None:
    row = changed["cells"][0]
    usual = {
        "source": "cell",
        "p_value": 0.5,
        "aleatoric_interval": [0.0, 0.1],
        "aleatoric_vacuous": False,
    }

    assert words.remarks(row | usual | {"aleatoric_inside": True}) == []
    assert words.remarks(row | usual | {"aleatoric_inside": False}) == [
        f"! estimate outside its limits. {OUTSIDE}"
    ]
    assert words.remarks(row | usual | {"aleatoric_vacuous": True}) == [
        "too few labels to prove anything"
    ]
    assert words.remarks(row | usual | {"aleatoric_inside": True, "p_value": 0.01}) == [
        "held-out labels unlike the prediction (p = 0.01)"
    ]
    assert words.remarks(row | usual | {"source": "pool", "aleatoric_interval": None}) == [
        "borrowed from all cells"
    ]


def test_intervals_that_prove_nothing_say_so() -> None:
    assert words.interval(None, True) == "no labels of its own"
    assert words.interval([0.0, 2.3], True) == "says nothing"
    assert words.interval([0.1, 0.25], False) == "0.100 to 0.250"


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, "-"), (0, "0%"), (0.004, "0.4%"), (0.0996, "10%"), (0.25, "25%"), (1, "100%")],
)
def test_shares_are_percentages(share: float | None, text: str) -> None:
    assert words.percent(share) == text


def test_a_budget_split_that_does_as_well_is_named(changed: Any) -> None:
    row = {"k": 2, "n_items": 50, "error": 0.1, "standard_error": 0.001}
    planning = changed["planning"] | {"best_k": 2, "splits": [row]}

    assert words.about_planning(planning | {"near_k": [5]}).endswith(
        "0.100 ± 0.001 nats. 5 labels each do as well within the noise of the simulation."
    )
    assert words.about_planning(planning | {"near_k": []}).endswith("0.001 nats.")


def test_nobody_who_stands_out_is_said_plainly(example: Example) -> None:
    summary = summarise(example.calibrator, example.probabilities, planning=False)
    summary["leaders"] = {"epistemic": [], "aleatoric": []}
    summary["confusions"] = []

    text = Report(summary).markdown()

    assert text.count("No group differs from the others: no lower limit exceeds") == 2
    assert "No two labels of a calibration item differ, or no item has two." in text
    assert Report(summary).html().count("No group differs from the others: no lower limit") == 2
