"""Agreement: published values, slow references, and limits that hold in simulated worlds."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import binom

import hocal
from engines import IN_PROCESS, tables
from hocal.annotations import Agreement, count_labels
from hocal.annotations.independence.coefficients import kappa

# Fleiss (1971) as it is taught: ten items, fourteen labels each, five classes; kappa is .210.
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
# Krippendorff (2011), four coders and twelve units with gaps: nominal .743, ordinal .815.
CODERS = {
    "A": [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    "B": [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    "C": [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    "D": [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
}


def coders() -> pd.DataFrame:
    """Return Krippendorff's units with one row per judgement."""
    rows = [
        (unit, who, label)
        for who, labels in CODERS.items()
        for unit, label in enumerate(labels)
        if label is not None
    ]
    return pd.DataFrame(rows, columns=["unit", "coder", "value"])


def slow_alpha(counts: list[list[int]], ordinal: bool) -> float:
    """Compute Krippendorff's alpha from its coincidence matrix, entry by entry."""
    usable = [row for row in counts if sum(row) > 1]
    n_classes = len(counts[0])
    coincidences = np.zeros((n_classes, n_classes))
    for row in usable:
        labels = [c for c, number in enumerate(row) for _ in range(number)]
        for first, second in itertools.permutations(labels, 2):
            coincidences[first, second] += 1 / (len(labels) - 1)
    n_c = coincidences.sum(axis=1)
    n = n_c.sum() or np.nan
    observed = expected = 0.0
    for c, k in itertools.product(range(n_classes), repeat=2):
        low, high = sorted((c, k))
        rank = n_c[low : high + 1].sum() - (n_c[low] + n_c[high]) / 2
        distance = rank**2 if ordinal else float(c != k)
        observed += coincidences[c, k] * distance / n
        expected += n_c[c] * n_c[k] * distance / (n * (n - 1))
    return 1 - observed / expected if expected > 0 else np.nan


# Known values


def test_kappa_is_that_of_the_textbook() -> None:
    assert hocal.agreement(FLEISS).kappa.estimate == pytest.approx(0.20993, abs=1e-5)


@pytest.mark.parametrize(("ordinal", "alpha"), [(False, 0.743), (True, 0.815)])
def test_alpha_is_that_of_krippendorff(ordinal: bool, alpha: float) -> None:
    result = hocal.agreement(coders(), item="unit", label="value", ordinal=ordinal)

    assert result.alpha.estimate == pytest.approx(alpha, abs=5e-4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=6))
@pytest.mark.parametrize("ordinal", [False, True])
def test_alpha_is_that_of_the_coincidence_matrix(ordinal: bool, counts: list[list[int]]) -> None:
    result = hocal.agreement(counts, ordinal=ordinal).alpha.estimate

    assert result == pytest.approx(slow_alpha(counts, ordinal), nan_ok=True)


def test_pairs_are_counted_within_items_and_items_weigh_alike() -> None:
    """One of three pairs agrees on the first item, all on the second."""
    assert hocal.agreement([[2, 1], [5, 0]]).pairs.estimate == pytest.approx((1 / 3 + 1) / 2)


def test_an_item_with_one_label_does_not_enter_pairs() -> None:
    with_single = hocal.agreement([*FLEISS, [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]])

    assert with_single.alpha == hocal.agreement(FLEISS).alpha
    assert (with_single.n_items, with_single.n_single) == (10, 2)


def test_two_who_always_differ_have_an_alpha_near_minus_one() -> None:
    result = hocal.agreement(np.ones((500, 2)))

    assert result.kappa.estimate == -1
    assert result.kappa.upper < 0


def test_labels_of_one_class_leave_kappa_and_alpha_unknown() -> None:
    result = hocal.agreement([[3, 0], [2, 0]])

    assert np.isnan(result.kappa.estimate)
    assert (result.kappa.lower, result.kappa.upper) == (-1, 1)
    assert result.pairs.estimate == 1


def test_without_two_labels_of_an_item_nothing_is_known() -> None:
    result = hocal.agreement([[1, 0], [0, 1]])

    assert np.isnan(result.pairs.estimate)
    assert result.n_items == 0


# Shapes of input


def test_sparse_counts_are_measured_as_dense_ones() -> None:
    counts = np.array(FLEISS)

    assert hocal.agreement(sparse.csr_array(counts)).kappa == hocal.agreement(counts).kappa


@pytest.mark.parametrize("engine", list(IN_PROCESS))
def test_every_engine_gives_the_same_agreement(engine: str) -> None:
    long = coders()
    native = tables({name: long[name].tolist() for name in long})[engine]
    result = hocal.agreement(native, item="unit", label="value", annotator="coder")

    counts = count_labels(long, item="unit", label="value").counts
    assert result.alpha == hocal.agreement(counts).alpha


def test_a_column_for_each_annotator_is_a_table_of_judgements() -> None:
    wide = pd.DataFrame(CODERS).assign(unit=range(12))
    result = hocal.agreement(wide, item="unit", label=list("ABCD"))
    long = hocal.agreement(coders(), item="unit", label="value", annotator="coder")

    assert result.alpha == long.alpha
    assert result.annotators is not None
    assert long.annotators is not None
    assert result.annotators.annotator == long.annotators.annotator


def test_columns_of_counts_have_no_annotators() -> None:
    table = pd.DataFrame(FLEISS, columns=list("abcde")).assign(item=range(10))
    result = hocal.agreement(table, item="item", count_columns=list("abcde"))

    assert result.kappa == hocal.agreement(FLEISS).kappa
    assert result.annotators is None


def test_repeated_judgements_are_refused_unless_something_is_said_about_them() -> None:
    twice = pd.concat([coders(), coders().head(1)])
    columns = {"item": "unit", "label": "value", "annotator": "coder"}

    with pytest.raises(hocal.InputError, match="must have one label for each item and annotator"):
        hocal.agreement(twice, **columns)
    assert hocal.agreement(twice, **columns, duplicates="keep").n_labels == 41
    assert hocal.agreement(twice, **columns, duplicates="drop").n_labels == 39


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ([[1, -1], [2, 0]], {}, "must be non-negative"),
        ([[1, 1]], {"item": "x"}, "`item` must be left out for counts"),
        ([[1, 1]], {"confidence": 2}, "`confidence`"),
        ([[1, 1]], {"ordinal": "yes"}, "`ordinal` must be True or False, got 'yes'"),
        (coders(), {"label": "value"}, "`item` must name the column"),
        (coders(), {"item": "unit", "label": "value", "gold": "value"}, "`gold` must be left out"),
        (
            coders().astype({"value": str}),
            {"item": "unit", "label": "value", "ordinal": True},
            "`classes` must be given in their order",
        ),
        (
            coders(),
            {"item": "unit", "label": "value", "annotator": "coder", "classes": ["1", 2, 3, 4, 5]},
            "1 is probably the class '1'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(table: Any, options: Any, message: str) -> None:
    with pytest.raises(hocal.InputError, match=message):
        hocal.agreement(table, **options)


# Limits


def simulate(seed: int, n_items: int, spread: float, sizes: tuple[int, int]) -> np.ndarray:
    """Draw counts of three ordered classes, of items with as many labels as it happens."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet(np.array([0.6, 0.3, 0.1]) * spread, n_items)
    return generator.multinomial(generator.integers(sizes[0], sizes[1] + 1, n_items), truth)


def true_agreement(spread: float) -> float:
    """Return the share of the variance that is between items, 1 / (1 + spread) of a Dirichlet.

    It is the same for all scores of the classes, so for alpha of ranks as well.
    """
    return 1 / (1 + spread)


WORLDS = [
    (20, 0.2, (2, 3), False),
    (60, 1.0, (3, 3), False),
    (150, 0.1, (2, 6), False),
    (400, 3.0, (5, 5), True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("n_items", "spread", "sizes", "ordinal"), WORLDS)
def test_limits_miss_no_more_often_than_promised(
    n_items: int, spread: float, sizes: tuple[int, int], ordinal: bool
) -> None:
    n_worlds = 60
    truth = true_agreement(spread)
    results = [
        hocal.agreement(simulate(seed, n_items, spread, sizes), ordinal=ordinal, confidence=0.8)
        for seed in range(n_worlds)
    ]
    allowed = binom.ppf(0.999, n_worlds, 0.2)

    for name in ("kappa", "alpha"):
        limits = [getattr(result, name) for result in results]
        assert sum(not (x.lower <= truth <= x.upper) for x in limits) <= allowed


def test_limits_narrow_with_the_number_of_items() -> None:
    few, many = (hocal.agreement(simulate(0, n, 0.5, (3, 5))).kappa.width for n in (100, 10_000))

    assert many < few / 8


def test_limits_of_many_items_are_less_than_twice_as_wide_as_the_bootstrap() -> None:
    counts = simulate(0, 1000, 0.5, (4, 4))
    generator = np.random.default_rng(0)
    draws = [counts[generator.integers(0, 1000, 1000)] for _ in range(100)]
    values = [kappa(x, x.sum(axis=1)) for x in draws]
    bootstrap = np.diff(np.quantile(values, [0.025, 0.975]))

    assert hocal.agreement(counts).kappa.width < 2 * bootstrap


# What people see


def test_the_text_has_a_line_for_each_measure() -> None:
    lines = hocal.agreement(FLEISS).table().splitlines()

    assert [line.split()[0] for line in lines] == [
        "agreement",
        "pairs",
        "Fleiss'",
        "Krippendorff's",
    ]
    assert max(map(len, lines)) <= 80


def test_the_dictionary_is_ready_for_json() -> None:
    result = hocal.agreement(coders(), item="unit", label="value", annotator="coder")
    content = json.loads(json.dumps(result.as_dict(), allow_nan=False))

    assert set(content["alpha"]) == {"estimate", "lower", "upper"}
    assert content["annotators"]["annotator"][0] in CODERS


def test_the_frame_has_a_row_for_each_measure() -> None:
    frame = hocal.agreement(FLEISS).to_frame("polars")

    assert frame["measure"].to_list() == ["pairs", "kappa", "alpha"]


def test_a_result_is_frozen() -> None:
    assert isinstance(hocal.agreement(FLEISS), Agreement)
    with pytest.raises(AttributeError):
        hocal.agreement(FLEISS).n_items = 3  # type: ignore[misc]


@pytest.mark.skipif("HOCAL_DATA" not in os.environ, reason="HOCAL_DATA does not name the data")
def test_real_judgements_have_the_alpha_of_another_package() -> None:
    """The values are those of krippendorff 0.9."""
    path = Path(os.environ["HOCAL_DATA"]) / "crowd" / "CF_amt.csv"
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").split()]
    items = {item: place for place, item in enumerate(sorted({row[1] for row in rows}))}
    counts = np.zeros((len(items), 5), dtype=np.int64)
    for _, item, label, *_ in rows:
        counts[items[item], int(label)] += 1

    assert hocal.agreement(counts).alpha.estimate == pytest.approx(0.5212445431183048, abs=1e-12)
    ordinal = hocal.agreement(counts, ordinal=True).alpha.estimate
    assert ordinal == pytest.approx(0.49457269318959696, abs=1e-12)
