"""Annotators: excess disagreement, three findings kept apart, gold questions, what is left."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import hocal
from hocal.annotations.independence.annotator_table import AnnotatorEffects
from hocal.annotations.independence.plain_values import p_text, short_p
from hocal.annotations.spellings import similar_classes

COLUMNS = {"item": "item", "label": "label", "annotator": "annotator"}


def matrix(labels: list[str]) -> pd.DataFrame:
    """Return judgements: one string per item, a letter for each annotator, a dot for none."""
    rows = [
        (i, a, letter)
        for i, row in enumerate(labels)
        for a, letter in enumerate(row)
        if letter != "."
    ]
    return pd.DataFrame(rows, columns=["item", "annotator", "label"])


def crowd(seed: int = 0, n_items: int = 300, n_people: int = 20, size: int = 5) -> pd.DataFrame:
    """Draw labels of ambiguous items by people handed out at random."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet([0.5, 0.3, 0.2], n_items)
    who = np.argsort(generator.random((n_items, n_people)), axis=1)[:, :size]
    draws = generator.random((n_items, size, 1)) > np.cumsum(truth, axis=1)[:, None, :]
    return pd.DataFrame(
        {
            "item": np.repeat(np.arange(n_items), size),
            "annotator": who.ravel(),
            "label": draws.sum(axis=2).ravel(),
        }
    )


def effects(table: Any, **options: Any) -> AnnotatorEffects:
    result = hocal.agreement(table, **COLUMNS, **options).annotators
    assert result is not None
    return result


# Excess


def slow_excess(labels: list[str], who: int) -> float:
    """Compare an annotator with the others, item by item."""
    values = []
    for row in labels:
        others = [x for a, x in enumerate(row) if a != who and x != "."]
        if row[who] == "." or len(others) < 2:
            continue
        pairs = list(combinations(others, 2))
        expected = sum(x != y for x, y in pairs) / len(pairs)
        values.append(sum(x != row[who] for x in others) / len(others) - expected)
    return float(np.mean(values))


def test_excess_is_disagreement_less_that_of_the_others() -> None:
    labels = ["abac", "bbb.", "abcc", ".aba", "cacb"]
    found = effects(matrix(labels))
    expected = [slow_excess(labels, who) for who in found.annotator]

    assert found.excess.tolist() == pytest.approx(expected)


def test_the_worst_dissent_comes_first() -> None:
    found = effects(crowd())

    assert (np.diff(found.shrunk) <= 0).all()


def test_excess_of_few_judgements_is_pulled_further() -> None:
    found = effects(crowd().query("annotator > 0 or item < 12"))
    pulled = np.abs(found.excess - found.shrunk)
    newcomer = found.annotator.index(0)

    assert pulled[newcomer] >= np.median(pulled)
    assert np.abs(found.shrunk).max() <= np.abs(found.excess).max()


def test_with_two_labels_per_item_disagreement_is_compared_with_that_of_all_pairs() -> None:
    """Annotator 0 differs from 1 on both items, 1 and 2 agree: two of three pairs differ."""
    found = effects(matrix(["ab.", "ba.", ".bb"]))
    excess = dict(zip(found.annotator, found.excess, strict=True))

    assert excess[0] == pytest.approx(1 - 2 / 3)
    assert excess[2] == pytest.approx(0 - 2 / 3)


def test_who_judged_alone_has_no_excess() -> None:
    found = effects(matrix(["aab.", "abb.", "...a"]))

    assert found.annotator[-1] == 3
    assert np.isnan(found.excess[-1])
    assert found.n_compared[-1] == 0


@pytest.mark.slow
def test_limits_of_excess_miss_no_more_often_than_promised() -> None:
    """Annotator 0 says anything; the truth is taken from a very large table."""

    def table(seed: int, n_items: int) -> pd.DataFrame:
        result = crowd(seed, n_items)
        careless = result["annotator"] == 0
        anything = np.random.default_rng(seed).integers(0, 3, len(result))
        return result.assign(label=result["label"].where(~careless, anything))

    def limits(found: AnnotatorEffects) -> tuple[float, float, float]:
        place = found.annotator.index(0)
        return found.excess_lower[place], found.excess[place], found.excess_upper[place]

    truth = limits(effects(table(1000, 30_000)))[1]
    results = [limits(effects(table(seed, 80), confidence=0.8)) for seed in range(100)]

    missed = sum(not low <= truth <= high for low, _, high in results)
    assert missed <= binom.ppf(0.999, 100, 0.2)


# Findings


def planted(kind: str) -> pd.DataFrame:
    """Return a crowd in which annotator 3 does not do the task."""
    table = crowd(1, n_items=600)
    mine = table["annotator"] == 3
    generator = np.random.default_rng(5)
    if kind == "random":
        return table.assign(label=table["label"].where(~mine, generator.integers(0, 3, len(table))))
    if kind == "one class":
        return table.assign(label=table["label"].where(~mine, 2))
    if kind == "copies":
        source = table[table["annotator"] == 7].set_index("item")["label"]
        known = mine & table["item"].isin(source.index)
        copied = table["item"].map(source).fillna(0)  # of items that were not judged: not used
        return table.assign(label=np.where(known, copied, table["label"]).astype(int))
    most = table.groupby("item")["label"].transform(lambda labels: labels.mode()[0])
    return table.assign(label=table["label"].where(~mine, most)).astype({"label": int})


@pytest.mark.parametrize(
    ("kind", "finding"),
    [
        ("random", "dissents"),
        ("one class", "class use"),
        ("copies", "agrees"),
        ("majority", "agrees"),
    ],
)
def test_each_kind_of_carelessness_has_a_finding_of_its_own(kind: str, finding: str) -> None:
    assert 3 in effects(planted(kind)).with_finding(finding)


@pytest.mark.parametrize(("kind", "place"), [("random", 0), ("one class", 0), ("majority", -1)])
def test_the_order_of_effects_tells_dissent_from_agreement(kind: str, place: int) -> None:
    assert effects(planted(kind)).annotator[place] == 3


def test_who_copies_is_named_with_whom() -> None:
    found = effects(planted("copies"))
    copier = found.annotator.index(3)

    assert found.closest[copier] == 7
    assert found.closest_agreement[copier] > 0.95
    assert found.closest_expected[copier] < 0.7


def test_the_closest_annotator_has_an_exact_p_value() -> None:
    """On 6 items 0 and 1 hold the same two of three labels: 3^-6; 3 pairs, 2 tests, 3 findings."""
    found = effects(matrix(["aab"] * 6))
    place = found.annotator.index(0)

    assert found.p_agrees[place] == pytest.approx(3 * 2 * 3 / 3**6)


@pytest.mark.slow
def test_nothing_is_found_where_it_does_not_matter_who_labels() -> None:
    worlds = 40
    found = sum(any(effects(crowd(seed, 60)).finding) for seed in range(worlds))

    assert found <= binom.ppf(0.999, worlds, 0.05)


# Without the worst


def test_leaving_out_who_dissents_takes_disagreement_away() -> None:
    result = hocal.agreement(planted("random"), **COLUMNS).without_dissenters
    assert result is not None

    assert result.annotators == (3,)
    assert result.remaining < result.disagreement
    assert 0 < result.gone.lower < result.gone.estimate < result.gone.upper
    assert result.gone.estimate == pytest.approx(1 - result.remaining / result.disagreement)


def test_without_dissenters_nothing_is_gone() -> None:
    result = hocal.agreement(crowd(), **COLUMNS).without_dissenters
    assert result is not None

    assert (result.annotators, result.gone) == ((), (0, 0, 0))


def test_the_check_says_what_is_not_identified() -> None:
    findings = hocal.check_annotations(planted("random"), **COLUMNS, random_state=0).findings
    told = next(finding for finding in findings if finding.topic == "items or people")

    assert "labels alone cannot tell these two apart" in told.message


# Gold questions


def test_gold_questions_give_each_annotator_a_share_of_right_answers() -> None:
    """Of three right answers of three, the lower limit is .025^(1/3) (Clopper and Pearson)."""
    table = matrix(["ab", "ab", "ab", "ab"])
    table["gold"] = table["item"].map({0: "a", 1: "a", 2: "a"})
    found = effects(table, gold="gold")
    place = found.annotator.index(0)

    assert found.n_gold.tolist() == [3, 3]
    assert (found.gold[place], found.gold_upper[place]) == (1, 1)
    assert found.gold_lower[place] == pytest.approx(0.025 ** (1 / 3))
    assert found.gold[1 - place] == 0


def test_a_gold_label_that_is_no_class_is_refused() -> None:
    table = matrix(["ab", "ab"]).assign(gold="c")

    with pytest.raises(hocal.InputError, match="`gold` must hold classes or gaps"):
        effects(table, gold="gold")


# Numbers of labels, spellings, p-values


def asked_until_two_agree() -> pd.DataFrame:
    """Return judgements of items that get two labels if these agree, else five."""
    table = crowd(2, n_items=200)
    first_two = table.groupby("item")["label"].transform(lambda labels: labels.iloc[:2].nunique())
    place = table.groupby("item").cumcount()
    return table[(place < 2) | (first_two == 2)]


def first_labels(table: pd.DataFrame, **options: Any) -> Any:
    check = hocal.check_annotations(table, **COLUMNS, n_resamples=9, random_state=0, **options)
    topic = "numbers of labels"
    return check.first_labels, next(x for x in check.findings if x.topic == topic)


def test_asking_until_people_agree_is_found() -> None:
    numbers, finding = first_labels(asked_until_two_agree(), in_order=True)

    assert (numbers.few, numbers.many) == (0, 1)
    assert finding.severity == "warning"


def test_numbers_of_labels_that_are_fixed_beforehand_are_no_warning() -> None:
    table = crowd(2)
    table = table[(table.groupby("item").cumcount() < 2) | (table["item"] % 3 == 0)]

    assert first_labels(table, in_order=True)[1].severity == "ok"


def test_without_an_order_numbers_of_labels_cannot_be_checked() -> None:
    assert first_labels(asked_until_two_agree())[1].severity == "note"


def test_rows_in_order_and_a_time_contradict_each_other() -> None:
    with pytest.raises(hocal.InputError, match="`in_order` must be left out with `time`"):
        first_labels(crowd().assign(time=0), in_order=True, time="time")


@pytest.mark.parametrize(
    ("classes", "groups"),
    [
        (["happy", " Happy", "sad"], (("happy", " Happy"),)),
        (["1", "1.0", "2"], (("1", "1.0"),)),
        ([1, 2, 3], ()),
        (["not sure", "not  sure", "NOT SURE"], (("not sure", "not  sure", "NOT SURE"),)),
    ],
)
def test_classes_in_two_spellings_are_found(classes: list[Any], groups: Any) -> None:
    assert similar_classes(classes) == groups


def test_classes_in_two_spellings_are_a_warning_with_a_remedy() -> None:
    table = matrix(["aA", "ab", "ba"])
    check = hocal.check_annotations(table, **COLUMNS, random_state=0)
    told = next(finding for finding in check.findings if finding.topic == "classes")

    assert told.severity == "warning"
    assert "'A' and 'a'" in told.message
    assert "one spelling" in told.action


def test_an_unknown_label_that_equals_a_class_as_a_number_is_named() -> None:
    table = pd.DataFrame({"item": [1, 1, 2], "label": ["1.0", "1", "2"]})

    with pytest.raises(hocal.InputError, match=r"'1.0' is probably the class '1'"):
        hocal.count_labels(table, item="item", label="label", classes=["1", "2"])


@pytest.mark.parametrize(
    ("p_value", "text"), [(0.0, "p < 1e-99"), (3e-10, "p < 1e-9"), (0.03, "p = 0.03")]
)
def test_a_p_value_is_never_printed_as_zero(p_value: float, text: str) -> None:
    assert p_text(p_value) == text


def test_a_p_value_in_a_table_is_short() -> None:
    assert (short_p(1e-12), short_p(0.5)) == ("<1e-12", "0.5")


def test_a_check_takes_a_column_for_each_annotator() -> None:
    labels = ["abac", "bbb.", "abcc", ".aba", "cacb"]
    long = matrix(labels).astype({"annotator": str})
    wide = long.pivot(index="item", columns="annotator", values="label").reset_index()
    options = {"item": "item", "random_state": 0, "n_resamples": 9}
    check = hocal.check_annotations(wide, label=list("0123"), **options)
    expected = hocal.check_annotations(long, label="label", annotator="annotator", **options)

    assert check.as_dict() == expected.as_dict()


def test_effects_of_annotators_are_shown_in_one_line() -> None:
    labels = matrix(["aaaa", "bbbb", "aaab", "bbba"])
    check = hocal.check_annotations(
        labels, item="item", label="label", annotator="annotator", n_resamples=9, random_state=0
    )

    assert repr(check.annotators) == "AnnotatorEffects(4 annotators, 0 findings)"
