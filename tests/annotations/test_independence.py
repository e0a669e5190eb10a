"""The check of annotations: closed forms, slow references, every engine, and refusals."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hocal.annotations.independence import AnnotationCheck, check_annotations, poisson_binomial
from hocal.annotations.independence.annotator_effects import adjust_fdr, adjust_holm
from hocal.annotations.independence.poisson_binomial import poisson_binomial_tails

Row = tuple[Any, Any, Any]  # item, annotator, label


def frame(rows: list[Row], **columns: Any) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["item", "annotator", "label"]).assign(**columns)


def check(table: Any, **options: Any) -> AnnotationCheck:
    settings = {
        "item": "item",
        "label": "label",
        "annotator": "annotator",
        "n_resamples": 19,
        "random_state": 0,
    }
    return check_annotations(table, **(settings | options))


def matrix(labels: list[str]) -> list[Row]:
    """Return judgements of a panel: one string per item, a letter for each annotator."""
    return [
        (i, a, letter)
        for i, row in enumerate(labels)
        for a, letter in enumerate(row)
        if letter != "."
    ]


def severities(result: AnnotationCheck) -> dict[str, str]:
    return {finding.topic: finding.severity for finding in result.findings}


@st.composite
def judgements(draw: st.DrawFn) -> list[Row]:
    """Draw up to four items, each judged by up to four annotators."""
    letters = st.sampled_from("abc.")
    n_annotators = draw(st.integers(1, 4))
    rows = draw(
        st.lists(
            st.text(letters, min_size=n_annotators, max_size=n_annotators), min_size=1, max_size=4
        )
    )
    return matrix(rows) or [(0, 0, "a")]


# Closed forms and references


def test_an_odd_one_out_on_five_items_has_a_p_value_of_four_over_three_to_the_fifth() -> None:
    """The chance to hold all five yes of (yes, no, no) is 3^-5, times two sides and two counts."""
    effects = check(frame(matrix(["ynn"] * 5))).annotators

    assert effects.p_value[0] == pytest.approx(4 / 3**5)


def test_an_odd_one_out_uses_a_class_on_all_items_that_others_never_use() -> None:
    effects = check(frame(matrix(["ynn"] * 5))).annotators

    assert (effects.overused[0], effects.overuse[0], effects.underused[0], effects.underuse[0]) == (
        "y",
        1,
        "n",
        -1,
    )
    assert (effects.distance[0], effects.dissent[0], effects.expected_dissent[0]) == (
        1,
        1,
        pytest.approx(1 / 3),
    )


def reference_p_values(rows: list[Row]) -> dict[Any, float]:
    """Give an annotator every possible choice of labels and count those as extreme as theirs."""
    labels = defaultdict(list)
    for item, _, label in rows:
        labels[item].append(label)
    result = {}
    for who in {annotator for _, annotator, _ in rows}:
        own = {
            item: label
            for item, annotator, label in rows
            if annotator == who and len(set(labels[item])) > 1
        }
        deals = list(itertools.product(*(labels[item] for item in own)))
        scores = [[[x == c for x in deal] for deal in [tuple(own.values()), *deals]] for c in "abc"]
        scores += [
            [dissents(deal, [labels[i] for i in own]) for deal in [tuple(own.values()), *deals]]
        ]
        sides = [two_sided([sum(score) for score in counts]) for counts in scores]
        varied = [
            p for p, counts in zip(sides, scores, strict=True) if len({sum(s) for s in counts}) > 1
        ]
        classes = sum(len({sum(score) for score in counts}) > 1 for counts in scores[:3])
        n_tests = len(varied) - (classes == 2)
        result[who] = min(1.0, n_tests * min(varied)) if varied else math.nan
    return result


def dissents(deal: tuple[str, ...], pools: list[list[str]]) -> list[bool]:
    return [pool.count(x) < max(map(pool.count, pool)) for x, pool in zip(deal, pools, strict=True)]


def two_sided(sums: list[int]) -> float:
    """Return twice the smaller tail of the first sum among the others."""
    observed, null = sums[0], sums[1:]
    tails = (sum(x >= observed for x in null), sum(x <= observed for x in null))
    return min(1.0, 2 * min(tails) / len(null))


@given(judgements())
def test_p_values_are_those_of_all_possible_deals(rows: list[Row]) -> None:
    effects = check(frame(rows), classes=list("abc"), n_resamples=1).annotators
    expected = reference_p_values(rows)

    np.testing.assert_allclose(effects.p_value, [expected[who] for who in effects.annotator])


def deals_of(rows: list[Row]) -> list[list[Row]]:
    """Return the table under every order of each item's labels."""
    items = [list(group) for _, group in itertools.groupby(rows, key=lambda row: row[0])]
    orders = [itertools.permutations([label for *_, label in group]) for group in items]
    return [
        [
            (i, a, label)
            for group, labels in zip(items, deal, strict=True)
            for (i, a, _), label in zip(group, labels, strict=True)
        ]
        for deal in itertools.product(*orders)
    ]


@pytest.fixture(scope="module")
def dealt() -> list[AnnotationCheck]:
    tables = (
        frame(rows, time=range(len(rows))) for rows in deals_of(matrix(["abb", "acc", ".ab"]))
    )
    return [check(table, time="time", n_resamples=1) for table in tables]


@pytest.mark.parametrize("name", ["class_use", "dissent"])
def test_spread_of_annotators_is_one_on_average_over_all_deals(
    name: str, dealt: list[AnnotationCheck]
) -> None:
    assert np.mean([getattr(result, name).ratio for result in dealt]) == pytest.approx(1)


def test_expected_agreement_is_the_average_over_all_deals(dealt: list[AnnotationCheck]) -> None:
    observed = np.mean([result.order.agreement for result in dealt if result.order])

    assert all(
        result.order and result.order.expected_agreement == pytest.approx(observed)
        for result in dealt
    )


def test_drift_ratio_is_one_on_average_over_all_orders_in_time() -> None:
    """One annotator's four judgements in all 24 orders; the others judged once."""
    rows = [(i, "x", label) for i, label in enumerate("aabc")] + [
        (i, f"y{i}", "d") for i in range(4)
    ]
    ratios = []
    for order in itertools.permutations(range(4)):
        result = check(frame(rows, time=[*order, 0, 0, 0, 0]), time="time", n_resamples=1)
        assert result.order is not None
        ratios.append(result.order.drift_ratio)

    assert np.mean(ratios) == pytest.approx(1)


def reference_design_effect(rows: list[str]) -> float:
    """Leave out each annotator of each item in turn; multiply the changes over pairs of items."""
    changes: dict[int, list[float]] = defaultdict(list)
    values = [disagreement([x for x in row if x != "."]) for row in rows]
    for row, value in zip(rows, values, strict=True):
        for a, letter in enumerate(row):
            if letter != ".":
                changes[a].append(
                    value - disagreement([x for b, x in enumerate(row) if b != a and x != "."])
                )
    pairs = sum(
        x * y
        for own in changes.values()
        for (i, x), (j, y) in itertools.product(enumerate(own), repeat=2)
        if i != j
    )
    return 1 + (len(changes) - 1) / len(changes) * pairs / (
        len(rows) * float(np.var(values, ddof=1))
    )


def disagreement(labels: list[str]) -> float:
    pairs = list(itertools.combinations(labels, 2))
    return sum(x != y for x, y in pairs) / len(pairs)


@pytest.mark.parametrize(
    "rows",
    [["aab", "abc", "aaa", "bba"], ["aab.", ".abc", "aaab", "b.ba", "aaaa"]],
    ids=["panel", "ragged"],
)
def test_design_effect_is_that_of_leaving_annotators_out(rows: list[str]) -> None:
    sharing = check(frame(matrix(rows))).sharing

    assert sharing.design_effect == pytest.approx(reference_design_effect(rows))
    assert sharing.disagreement == pytest.approx(
        np.mean([disagreement([x for x in row if x != "."]) for row in rows])
    )


def test_widening_never_narrows_intervals() -> None:
    """All three annotators dissent equally often, so the estimated covariance is negative."""
    sharing = check(frame(matrix(["baa", "aba", "aab", "aaa"] * 3))).sharing

    assert sharing.design_effect < 1
    assert (sharing.widening, sharing.n_effective_items) == (1, 12)


@pytest.mark.parametrize("scale", [0.02, 0.3, 0.9])
def test_saddlepoint_tails_agree_with_convolution(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    coins = np.random.default_rng(0).random(400) * scale
    center, deviation = coins.sum(), math.sqrt((coins * (1 - coins)).sum())
    observed = np.unique(np.clip(np.round(center + deviation * np.arange(-4, 6)), 0, 400)).astype(
        np.int64
    )
    arguments = (np.tile(coins, len(observed)), np.repeat(np.arange(len(observed)), 400), observed)
    approximate = poisson_binomial_tails(*arguments)
    monkeypatch.setattr(poisson_binomial, "EXACT_SIZE", 400)

    np.testing.assert_allclose(
        approximate.two_sided, poisson_binomial_tails(*arguments).two_sided, rtol=0.02
    )


@pytest.mark.parametrize("chance", [0.05, 0.5, 0.95])
def test_small_tails_of_long_sums_keep_their_digits(chance: float) -> None:
    """The formula is off by less than 3%, down to 1e-30."""
    sums = stats.binom(400, chance)
    observed = np.unique(sums.ppf(np.logspace(-30, -1, 30))).astype(np.int64)
    mirrored = 400 - observed
    coins = np.repeat([chance, 1 - chance], 400 * len(observed))

    tails = poisson_binomial_tails(
        coins, np.repeat(np.arange(2 * len(observed)), 400), np.concatenate([observed, mirrored])
    )

    np.testing.assert_allclose(tails.lower[: len(observed)], sums.cdf(observed), rtol=0.03)
    np.testing.assert_allclose(tails.upper[len(observed) :], sums.cdf(observed), rtol=0.03)


def test_saddlepoint_tails_are_certain_at_the_ends() -> None:
    tails = poisson_binomial_tails(np.full(600, 0.5), np.repeat([0, 1], 300), np.array([0, 300]))

    np.testing.assert_allclose(tails.upper, [1, 0], atol=1e-12)
    np.testing.assert_allclose(tails.lower, [0, 1], atol=1e-12)


def test_the_saddlepoint_tail_at_the_mean_is_one_half() -> None:
    """Of 301 fair coins, at least 151 are heads with probability 1/2; the formula has 0 / 0."""
    tails = poisson_binomial_tails(
        np.full(301, 0.5), np.zeros(301, dtype=np.int64), np.array([151])
    )

    assert tails.upper[0] == pytest.approx(0.5, abs=1e-6)


def test_holm_adjustment_multiplies_by_the_tests_left_and_never_falls() -> None:
    adjusted = adjust_holm(np.array([0.01, 0.04, np.nan, 0.03]))

    np.testing.assert_allclose(adjusted, [0.03, 0.06, np.nan, 0.06])


def test_false_discovery_adjustment_leaves_out_what_was_not_tested() -> None:
    adjusted = adjust_fdr(np.array([0.01, 0.04, np.nan, 0.03]))

    np.testing.assert_allclose(adjusted, [0.03, 0.04, np.nan, 0.04])


# Tables


TIMES = [datetime(2024, 1, 1) + timedelta(hours=7 * i % 16) for i in range(16)]
TABLE = frame(matrix(["abca", "aab.", "bb.a", "caba", "ab.."]), time=TIMES).assign(
    item=lambda table: "ä" + table["item"].astype(str)
)
ENGINES = {
    "polars": pl.from_pandas,
    "polars lazy": lambda t: pl.from_pandas(t).lazy(),
    "pyarrow": lambda t: pa.Table.from_pandas(t, preserve_index=False),
    "duckdb": lambda t: duckdb.connect().from_arrow(pa.Table.from_pandas(t, preserve_index=False)),
    "pandas categories": lambda t: t.astype({"label": "category", "item": "category"}),
    "pandas in other order": lambda t: t.sample(frac=1, random_state=1),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_and_every_order_of_rows_gives_the_same_check(engine: str) -> None:
    assert (
        check(ENGINES[engine](TABLE), time="time").as_dict() == check(TABLE, time="time").as_dict()
    )


@pytest.mark.parametrize(
    "convert",
    [
        lambda t: t.map(datetime.isoformat),
        lambda t: t.map(datetime.timestamp),
        lambda t: t.dt.tz_localize("Europe/Berlin"),
        lambda t: t.map(lambda x: f"{x - timedelta(hours=x.hour % 3)}{-(x.hour % 3):+03d}:00"),
    ],
    ids=["ISO text", "numbers", "with a time zone", "ISO text with time zones"],
)
def test_time_may_be_of_any_type_that_has_an_order(convert: Any) -> None:
    table = TABLE.assign(time=convert(TABLE["time"]))

    assert check(table, time="time").as_dict() == check(TABLE, time="time").as_dict()


def test_order_of_classes_may_be_declared() -> None:
    result = check(TABLE, classes=["c", "d", "b", "a"], time="time")

    assert result.classes == ("c", "d", "b", "a")
    assert result.order is not None
    assert result.order.shift[1] == 0


def test_names_of_classes_do_not_matter() -> None:
    renamed = TABLE.assign(label=TABLE["label"].map({"a": 3.5, "b": 1.5, "c": 2.5}))

    np.testing.assert_allclose(check(renamed).annotators.p_value, check(TABLE).annotators.p_value)


def test_items_of_mixed_types_are_told_apart() -> None:
    table = frame([(1, "x", "a"), (1, "y", "b"), ("1", "x", "a"), ((2, 3), "x", "b")])

    assert check(table).n_items == 3


@pytest.mark.parametrize("column", ["item", "label", "annotator", "time"])
def test_a_missing_value_is_refused_unless_dropping_is_asked_for(column: str) -> None:
    table = frame(matrix(["ab", "ba"]), time=[1.0, 2.0, 3.0, 4.0]).astype({column: object})
    table.loc[2, column] = None

    with pytest.raises(
        ValueError,
        match=rf"Column '{column}' of `table` must have a value in each row, got none in 1",
    ):
        check(table, time="time")
    result = check(table, time="time", missing="drop")
    assert result.n_missing == 1
    assert "1 row with missing values was left out." in result.table()


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"label": "choice"}, "`table` must have the column 'choice'"),
        ({}, {"classes": ["a"]}, "`label` must be one of the classes 'a', got 'b'"),
        ({}, {"classes": "ab"}, "`classes` must be distinct labels, got 'ab'"),
        ({}, {"classes": ["a", "b", "a"]}, "`classes` must be distinct labels"),
        ({}, {"missing": "ignore"}, "`missing` must be one of 'error', 'drop'"),
        ({}, {"alpha": 1}, "`alpha` must lie strictly between 0 and 1"),
        ({}, {"n_resamples": 0}, "`n_resamples` must be an integer of at least 1"),
        (
            {"time": ["31.12.2024"] * 4},
            {"time": "time"},
            "`time` must name a column of numbers, dates, or text in ISO",
        ),
        ({"time": [1, "2024-01-01", 2, 3]}, {"time": "time"}, "`time` must name a column"),
        (
            {"label": [["a"], ["b"], ["a"], ["b"]]},
            {},
            "Column .label. of `table` must hold plain values, such as text or numbers, got Object",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    changes: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check(frame(matrix(["ab", "ba"])).assign(**changes), **options)


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(ValueError, match="`table` must have at least one complete row, got 0 rows"):
        check(frame(matrix(["ab"])).head(0))


# What is counted


def test_work_of_annotators_is_summed_up() -> None:
    result = check(frame(matrix(["aab.", "ab..", "b..."])))

    assert result.labels_per_item == (1, 2, 2, 3)
    assert result.items_per_annotator == (1, 2, 2, 3)
    assert result.busiest_share == 0.5  # one of three annotators is the busiest tenth, rounded up
    assert result.n_effective_annotators == pytest.approx(36 / (9 + 4 + 1))


def test_repeated_judgements_are_counted_and_compared_with_themselves() -> None:
    rows = [*matrix(["ab", "ba"]), (0, 0, "a"), (0, 0, "a"), (1, 1, "b")]
    result = check(frame(rows))

    assert result.repeats == (3, 2, 1)
    assert (result.labels_per_item.maximum, result.annotators_per_item.maximum) == (4, 2)
    assert severities(result)["repeats"] == "warning"


def test_the_earliest_of_repeated_judgements_is_kept() -> None:
    """Whichever row comes first; with both labels b, the other item would say nothing."""
    rows = [(0, "x", "b"), (0, "x", "a"), (0, "y", "b"), (1, "x", "a"), (1, "y", "a")]
    result = check(frame(rows, time=[2, 1, 3, 4, 5]), time="time")

    assert result.annotators.overused == ("a", "b")


def test_judgements_at_the_same_time_are_counted_as_ties() -> None:
    result = check(frame(matrix(["aab", "ab."]), time=[1, 1, 2, 1, 2]), time="time")

    assert result.order is not None
    assert result.order.n_ties == 2
    assert "2 labels of equal time were put in random order" in next(
        f.message for f in result.findings if f.topic == "order"
    )


def test_agreement_with_the_previous_label_follows_time_and_not_rows() -> None:
    result = check(frame(matrix(["abab"]), time=[1, 3, 2, 4]), time="time")

    assert result.order is not None
    assert (result.order.agreement, result.order.expected_agreement) == pytest.approx(
        (2 / 3, 1 / 3)
    )
    assert result.order.shift == (-1, 1)


def test_without_time_nothing_is_said_about_order() -> None:
    result = check(TABLE)

    assert result.order is None
    assert not {"order", "drift"} & set(severities(result))
    assert np.isnan(result.annotators.drift_p_value).all()


@pytest.mark.parametrize(
    ("rows", "size"), [(["aab", "abb"], 3), (["aab", "ab."], None), (["a", "b"], None)]
)
def test_a_panel_is_the_same_annotators_on_every_item(rows: list[str], size: int | None) -> None:
    assert check(frame(matrix(rows))).panel_size == size


# What cannot be told


@pytest.mark.parametrize(
    "rows",
    [["a", "b"], ["a.", ".b"], ["aa", "aa"], ["aa", "bb"]],
    ids=["one annotator", "one label an item", "one class", "no disagreement"],
)
def test_what_cannot_be_tested_is_nan_and_never_one(rows: list[str]) -> None:
    result = check(
        frame(matrix(rows), time=range(sum(x != "." for row in rows for x in row))), time="time"
    )
    assert result.order is not None
    p_values = [result.class_use.p_value, result.dissent.p_value, result.order.agreement_p_value]
    p_values += [result.order.shift_p_value, result.order.drift_p_value, result.sharing.p_value]

    assert np.isnan([*p_values, *result.annotators.p_value, *result.annotators.p_value_holm]).all()
    assert set(severities(result).values()) <= {"note", "warning", "ok"}
    assert {
        severities(result)[topic]
        for topic in ("annotators", "single annotators", "order", "drift", "sharing")
    } == {"note"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a", "b"], "One annotator gave all labels"),
        (["a.", ".b"], "No item has labels of two annotators"),
        (["ab", "b."], "1 of 2 items has a label of one annotator only"),
    ],
)
def test_too_few_labels_are_said_in_words(rows: list[str], message: str) -> None:
    assert message in check(frame(matrix(rows))).findings[0].message


def test_annotators_with_one_judgement_are_tested_without_alarm() -> None:
    """Twenty items with one dissenter each, all of them different people."""
    rows = [(i, f"w{i}-{j}", "b" if j == 0 else "a") for i in range(20) for j in range(20)]
    result = check(frame(rows))

    assert np.nanmin(result.annotators.p_value) == pytest.approx(4 / 20)
    assert severities(result)["single annotators"] == "ok"


def test_equally_frequent_classes_leave_dissent_untested() -> None:
    result = check(frame(matrix(["ab", "ba", "ab"])))

    assert np.isnan([result.dissent.ratio, result.dissent.p_value]).all()
    assert not math.isnan(result.class_use.p_value)


def test_two_labels_per_item_do_not_tell_the_design_effect() -> None:
    result = check(frame(matrix(["ab", "aa", "ba", "bb"])))

    assert (result.sharing.n_items, result.panel_size) == (0, 2)
    assert "pass panel_size=2" in result.findings[-1].action


def test_three_different_labels_per_item_give_nobody_an_influence_on_disagreement() -> None:
    sharing = check(frame(matrix(["abc", "aaa", "bca", "bbb"]))).sharing

    assert math.isnan(sharing.p_value)
    assert (sharing.design_effect, sharing.widening) == pytest.approx((1, 1))


def test_an_annotator_who_always_differs_in_the_same_way_does_not_drift() -> None:
    """Residuals do not vary, so there is nothing to compare, rather than 0 / 0."""
    result = check(frame(matrix(["ba"] * 6), time=range(12)), time="time")

    assert result.order is not None
    assert math.isnan(result.order.drift_p_value)


# Words and results


def planted(n_items: int = 200) -> pd.DataFrame:
    """Six annotators on every item; the first never looks, the last two copy who came before."""
    generator = np.random.default_rng(3)
    labels = np.where(
        generator.random((n_items, 6)) < generator.beta(1, 1, (n_items, 1)), "cat", "dog"
    )
    labels[:, 0] = "a very long name of a class"
    labels[:, 4], labels[:, 5] = labels[:, 3], labels[:, 3]
    rows = [(i, f"annotator number {a}", labels[i, a]) for i in range(n_items) for a in range(6)]
    return frame(rows, time=np.arange(len(rows)))


def test_planted_effects_become_warnings() -> None:
    result = check(planted(), time="time", n_resamples=199)

    warned = {topic for topic, severity in severities(result).items() if severity == "warning"}
    assert {"annotators", "single annotators", "order"} <= warned
    assert "6 annotators" in repr(result)
    assert "order" in repr(result)


def test_an_annotator_who_turns_round_is_a_warning_about_drift() -> None:
    """With three others who toss coins, annotator 0 says a at first and b later."""
    coins = np.where(np.random.default_rng(0).random((60, 3)) < 0.5, "a", "b")
    rows = matrix([("a" if i < 30 else "b") + "".join(row) for i, row in enumerate(coins)])
    result = check(frame(rows, time=range(len(rows))), time="time", n_resamples=199)

    assert severities(result)["drift"] == "warning"
    turned = result.annotators.annotator.index(0)
    assert result.annotators.drift_p_value[turned] == pytest.approx(1 / 200)
    assert result.annotators.drift[turned] == pytest.approx(1, abs=0.2)


def test_every_warning_says_what_to_do() -> None:
    findings = check(planted(), time="time").findings

    assert all(finding.action for finding in findings if finding.severity == "warning")


def test_the_text_counts_the_items_that_others_judged_too() -> None:
    result = check(frame(matrix(["aab", "aaa", "bba", "aba", "a.."])))
    heads, *rows = result.table().split("\n\n")[2].splitlines()

    assert heads.split()[:3] == ["annotator", "items", "excess"]
    assert [row.split()[1] for row in rows[:3]] == ["4", "4", "4"]
    assert sorted(result.annotators.n_items.tolist()) == [4, 4, 5]


def test_no_line_of_the_text_is_wider_than_a_terminal() -> None:
    text = check(planted(), time="time").table()

    assert max(map(len, text.splitlines())) <= 80
    assert text.endswith("they can never prove independence.")


def test_the_text_says_when_nobody_could_be_compared() -> None:
    assert "No annotator could be compared with others." in check(frame(matrix(["a", "b"]))).table()


def test_the_dictionary_is_ready_for_json() -> None:
    table = frame(
        [
            (0, datetime(2024, 1, 1), True),
            (0, datetime(2024, 1, 2), False),
            (1, datetime(2024, 1, 2), True),
        ]
    )
    result = json.loads(json.dumps(check(table).as_dict(), allow_nan=False))

    assert result["annotators"]["annotator"] == ["2024-01-01 00:00:00", "2024-01-02 00:00:00"]
    assert result["annotators"]["drift"] == [None, None]
    assert (result["classes"], result["order"]) == ([False, True], None)
    assert set(result["findings"][0]) == {"topic", "severity", "message", "action"}


def test_the_frame_has_a_row_an_annotator() -> None:
    result = check(TABLE).to_frame("polars")

    assert result.columns[:3] == ["annotator", "n_items", "n_compared"]
    assert sorted(result["annotator"].to_list()) == [0, 1, 2, 3]


def test_the_same_seed_gives_the_same_check() -> None:
    assert check(TABLE, time="time").as_dict() == check(TABLE, time="time").as_dict()


# Real crowds


def crowd(name: str) -> AnnotationCheck:
    folder = os.environ.get("HOCAL_DATA")
    if folder is None or not (Path(folder) / "crowd").is_dir():
        pytest.skip("HOCAL_DATA does not name a folder with crowd/*.csv")
    columns = ["annotator", "item", "label", "gold", "seconds"]
    return check(
        pd.read_csv(Path(folder) / "crowd" / name, header=None, names=columns), n_resamples=199
    )


def test_two_workers_of_the_weather_crowd_gave_one_label_nearly_always() -> None:
    """They chose class 2 on 106 of 107 and 61 of 64 items; the five repeats agree."""
    result = crowd("CF_amt.csv")
    found = np.argsort(result.annotators.p_value)[:2]

    assert {result.annotators.annotator[i] for i in found} == {"A510NKLV727GZ", "A49XY0E6KFP15"}
    assert all(
        result.annotators.overused[i] == 2 and result.annotators.overuse[i] > 0.6 for i in found
    )
    assert result.repeats == (5, 5, 5)


@pytest.mark.parametrize(("name", "effect"), [("CF_amt.csv", 3.6), ("SP_amt.csv", 3.5)])
def test_shared_workers_of_real_crowds_widen_intervals_almost_twofold(
    name: str, effect: float
) -> None:
    result = crowd(name)

    assert result.sharing.design_effect == pytest.approx(effect, abs=0.1)
    assert {"annotators", "single annotators", "sharing"} <= {
        f.topic for f in result.findings if f.severity == "warning"
    }


@pytest.mark.parametrize("names", ["same", "new"])
def test_duplicated_items_are_found(names: str) -> None:
    """Under their own names people judged twice; under others items share too much with others."""
    generator = np.random.default_rng(0)
    q = generator.dirichlet(np.full(3, 0.7), size=300)
    who = np.argsort(generator.random((300, 40)), axis=1)[:, :3]
    labels = (q.cumsum(axis=1)[:, None, :] < generator.random((300, 3, 1))).sum(axis=2)
    item = np.repeat(np.arange(300), 3)
    once = pd.DataFrame({"item": item, "label": labels.ravel(), "who": who.ravel()})
    twice = pd.concat([once, once.assign(item=once["item"] + (300 if names == "new" else 0))])
    columns = {"item": "item", "label": "label", "annotator": "who", "random_state": 0}

    checks = [check_annotations(table, **columns) for table in (once, twice)]
    before, after = ({found.topic: found.severity for found in each.findings} for each in checks)

    topic = "repeats" if names == "same" else "sharing"
    assert before[topic] != "warning"
    assert after[topic] == "warning"
