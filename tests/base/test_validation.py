"""Bad input is refused with a message that names the argument, the rule and the value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from hocal import InputError, Mixtures
from hocal._base.validation import (
    check_array,
    check_cells,
    check_choice,
    check_counts,
    check_dense_counts,
    check_finite_matrix,
    check_fraction,
    check_integer,
    check_names,
    check_number,
    check_random_state,
    check_same_length,
    check_simplex,
    check_weights,
    label_totals,
)

OBJECTS = np.array([[1, None]], dtype=object)


def refused(text: str) -> Any:
    """Expect an InputError with exactly these words."""
    return pytest.raises(InputError, match=re.escape(text))


def fields(check: Callable[..., Any], *data: Any, **options: Any) -> dict[str, Any]:
    """Return the fields of the InputError that a check raises, without the empty ones."""
    with pytest.raises(InputError) as caught:
        check(*data, **options)
    names = ("argument", "rule", "value", "where", "row", "remedy")
    found = {name: getattr(caught.value, name) for name in names}
    return {name: value for name, value in found.items() if value not in ("", None)}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param([], "`a` must not be empty, got shape (0,).", id="empty"),
        pytest.param(OBJECTS, "`a` must be an array of numbers, got dtype object.", id="objects"),
        pytest.param(["x", "y"], "`a` must be an array of numbers, got dtype <U1.", id="strings"),
        pytest.param([1j], "`a` must be an array of numbers, got dtype complex128.", id="complex"),
        pytest.param(None, "`a` must be an array of numbers, got dtype object.", id="none"),
    ],
)
def test_an_array_of_no_numbers_is_refused(values: Any, message: str) -> None:
    with refused(message):
        check_array(values, "a")


def test_wrong_number_of_dimensions_is_refused() -> None:
    with refused("`a` must have 2 dimensions, got shape (3,)."):
        check_array([1, 2, 3], "a", ndim=2)


def test_one_dimension_is_written_in_the_singular() -> None:
    with refused("`a` must have 1 dimension, got shape (1, 2)."):
        check_array([[1, 2]], "a", ndim=1)


def test_rows_of_different_length_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"`probabilities` must .* rows of different lengths"):
        Mixtures.from_points([[0.5, 0.5], [1.0]])


def test_counts_with_rows_of_different_length_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"`counts` must .* rows of different lengths"):
        Mixtures.from_snapshots([[1, 2], [3]])


def test_integers_become_floats() -> None:
    assert check_array([1, 0], "a").dtype == np.float64


@pytest.mark.parametrize(
    ("p", "message"),
    [
        pytest.param(
            [[0.5, 0.5], [1.5, -0.5]],
            "`p` must be non-negative numbers, got -0.5 in row 1.",
            id="negative",
        ),
        pytest.param(
            [[0.5, 0.5], [np.nan, 1]],
            "`p` must be non-negative numbers, got nan in row 1.",
            id="nan",
        ),
        pytest.param(
            [[np.inf, 0.5]], "`p` must sum to 1 over the classes, got inf in row 0.", id="infinite"
        ),
        pytest.param(
            [[0.5, 0.5], [0.2, 0.3]],
            "`p` must sum to 1 over the classes, got 0.5 in row 1.",
            id="sum",
        ),
        pytest.param(
            [[1.0]],
            "`p` must have at least two classes on its last axis, got shape (1, 1).",
            id="one class",
        ),
        pytest.param(
            1.0, "`p` must have at least two classes on its last axis, got shape ().", id="scalar"
        ),
        pytest.param(
            np.full((1, 2, 2), -1.0),
            "`p` must be non-negative numbers, got -1 at index (0, 0, 0).",
            id="3d",
        ),
    ],
)
def test_what_is_no_label_distribution_is_refused(p: Any, message: str) -> None:
    with refused(message):
        check_simplex(p, "p")


def test_a_single_distribution_with_a_wrong_sum_is_refused() -> None:
    with refused("`p` must sum to 1 over the classes, got 0.9. Normalise it first."):
        check_simplex([0.5, 0.4], "p")


def test_a_distribution_over_other_classes_is_refused() -> None:
    with refused("`p` must have 3 classes on its last axis, got 2."):
        check_simplex([0.5, 0.5], "p", n_classes=3)


def test_float32_probabilities_of_many_classes_are_summed_exactly() -> None:
    """In float32 their sum strays by 1.7e-5."""
    check_simplex(np.full((2, 100_000), 1e-5, dtype=np.float32), keep_single=True)


@pytest.mark.parametrize(
    ("value", "rule"), [(-0.5, "be non-negative numbers"), (0.25, "sum to 1 over the classes")]
)
def test_what_is_wrong_far_down_is_found(value: float, rule: str) -> None:
    p = np.full((200_000, 2), 0.5)
    p[150_000, 1] = value
    with refused(f"`p` must {rule}, got {-0.5 if value < 0 else 0.75} in row 150000."):
        check_simplex(p, "p")


def test_float32_softmax_over_a_thousand_classes_is_accepted() -> None:
    logits = np.random.default_rng(0).normal(scale=5, size=(200, 1000)).astype(np.float32)
    exponentials = np.exp(logits)
    softmax = exponentials / exponentials.sum(axis=1, keepdims=True)

    assert check_simplex(softmax).dtype == np.float64


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        pytest.param(
            [0.5, -0.5],
            "`weights` must be finite and non-negative, got -0.5 in row 1.",
            id="negative",
        ),
        pytest.param(
            [np.nan, 1], "`weights` must be finite and non-negative, got nan in row 0.", id="nan"
        ),
        pytest.param(
            [1, np.inf],
            "`weights` must be finite and non-negative, got inf in row 1.",
            id="infinite",
        ),
        pytest.param([[1.0]], "`weights` must have 1 dimension, got shape (1, 1).", id="matrix"),
    ],
)
def test_bad_weights_are_refused(weights: Any, message: str) -> None:
    with refused(message):
        check_weights(weights)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        pytest.param(
            [[1, 1], [3, -2]], "`counts` must be non-negative, got -2 in row 1.", id="negative"
        ),
        pytest.param(
            [[1, 1], [1, 0.5]], "`counts` must be whole numbers, got 0.5 in row 1.", id="fraction"
        ),
        pytest.param([[1, np.nan]], "`counts` must be whole numbers, got nan in row 0.", id="nan"),
        pytest.param(
            [[1, np.inf]], "`counts` must be whole numbers, got inf in row 0.", id="infinite"
        ),
        pytest.param(
            OBJECTS, "`counts` must be an array of numbers, got dtype object.", id="objects"
        ),
        pytest.param(
            [["a", "b"]], "`counts` must be an array of numbers, got dtype <U1.", id="strings"
        ),
        pytest.param(
            [1, 2],
            "`counts` must have shape (n_items, n_classes) with at least two classes, got (2,).",
            id="1d",
        ),
        pytest.param(
            [[1], [2]],
            "`counts` must have shape (n_items, n_classes) with at least two",
            id="one class",
        ),
        pytest.param(
            [],
            "`counts` must have shape (n_items, n_classes) with at least two classes, got (0,).",
            id="empty",
        ),
        pytest.param(
            np.zeros((0, 3)),
            "`counts` must hold at least one item, got shape (0, 3).",
            id="no items",
        ),
        pytest.param(
            [[1, 1], [0, 0]],
            "`counts` must have at least 1 label in each row, got 0 in row 1.",
            id="no label",
        ),
    ],
)
def test_what_is_no_count_matrix_is_refused(counts: Any, message: str) -> None:
    with refused(message):
        Mixtures.from_snapshots(counts)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        pytest.param(
            np.zeros((0, 3)),
            "`counts` must hold at least one item, got shape (0, 3).",
            id="no items",
        ),
        pytest.param(
            [[1, 0, 0], [0, 0, 0]], "at least 1 label in each row, got 0 in row 1.", id="no label"
        ),
        pytest.param(
            [[-1, 0, 0], [0, 0, 1]],
            "`counts` must be non-negative, got -1 in row 0.",
            id="negative",
        ),
    ],
)
def test_sparse_counts_meet_the_same_rules(counts: Any, message: str) -> None:
    with refused(message):
        check_counts(sparse.csr_array(np.asarray(counts)))


def test_the_row_of_a_bad_sparse_count_is_named() -> None:
    with refused("`counts` must be whole numbers, got 0.5 in row 2."):
        check_counts(sparse.csr_array(np.array([[0, 1, 0], [1, 1, 0], [1, 0, 0.5]])))


def test_counts_beyond_int64_are_refused() -> None:
    with pytest.raises(ValueError, match="`counts` must"):
        check_counts(np.array([[1, 2**64 - 1]], dtype=np.uint64), minimum_total=0)


def test_floats_beyond_int64_are_refused() -> None:
    with pytest.raises(ValueError, match="`counts` must"):
        check_counts([[1, 2e30]])


def test_too_few_labels_name_the_row_and_the_remedy() -> None:
    with refused(
        "at least 3 labels in each row, got 2 in row 1. Drop such items, or ask for fewer labels."
    ):
        check_counts([[2, 1], [1, 1]], minimum_total=3)


def test_counts_of_other_classes_are_refused() -> None:
    with refused("`votes` must have 3 classes (columns), got 2."):
        check_counts([[1, 1]], "votes", n_classes=3)


def test_whole_floats_are_counts() -> None:
    assert check_counts([[1.0, 2.0]]).dtype == np.int64


def test_booleans_are_counts() -> None:
    assert check_dense_counts([[True, False]]).tolist() == [[1, 0]]


def test_repeated_sparse_entries_are_added() -> None:
    votes = sparse.coo_array(([1, 1, 1], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))

    assert check_dense_counts(votes).tolist() == [[0, 2], [1, 0]]


def test_adding_repeated_entries_leaves_the_input_alone() -> None:
    votes = sparse.csr_array((np.array([1, 1]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    check_counts(votes)

    assert votes.nnz == 2


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int16])
@pytest.mark.parametrize("layout", [sparse.coo_array, sparse.csr_array])
def test_repeated_sparse_entries_of_small_integers_are_all_counted(
    layout: Any, dtype: type
) -> None:
    n_votes = 50_000
    rows = np.zeros(n_votes, dtype=np.int32)
    label = (np.arange(n_votes) < 290).astype(np.int32)
    votes = sparse.coo_array((np.ones(n_votes, dtype), (rows, label)), shape=(1, 2))
    if layout is sparse.csr_array:
        votes = layout((votes.data, label, np.array([0, n_votes])), shape=(1, 2))

    assert check_counts(votes).toarray().tolist() == [[n_votes - 290, 290]]


def test_totals_of_sparse_counts_equal_those_of_dense_counts() -> None:
    counts = np.random.default_rng(0).integers(1, 5, (7, 3))

    assert label_totals(sparse.csr_array(counts)).tolist() == counts.sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        pytest.param(
            [0], "`cells` must hold one number for each of 2 items, got shape (1,).", id="short"
        ),
        pytest.param([0, -1], "`cells` must be non-negative, got -1 in row 1.", id="negative"),
        pytest.param([0, 0.5], "`cells` must be whole numbers, got 0.5 in row 1.", id="fraction"),
        pytest.param([0, 3], "`cells` must be below 3, got 3 in row 1.", id="too large"),
        pytest.param(
            ["a", "b"], "`cells` must be an array of numbers, got dtype <U1.", id="strings"
        ),
    ],
)
def test_bad_cells_are_refused(cells: Any, message: str) -> None:
    with refused(message):
        check_cells(cells, 2, n_cells=3)


@pytest.mark.parametrize("value", [0, -3, 2.0, True, np.True_, "2", None, np.nan])
def test_only_integers_in_range_are_integers(value: Any) -> None:
    with refused(f"`k` must be an integer of at least 1, got {value!r}."):
        check_integer(value, "k", minimum=1)


def test_an_integer_above_its_maximum_is_refused_with_the_reason() -> None:
    with refused("`j` must be an integer from 1 to 2, got 3. Labels can be removed, not added."):
        check_integer(3, "j", minimum=1, maximum=2, why="Labels can be removed, not added.")


def test_numpy_integers_are_integers() -> None:
    assert check_integer(np.uint8(3), "k", minimum=1) == 3


@pytest.mark.parametrize("value", [0, 1, -0.1, np.nan, np.inf, "0.5", None])
def test_only_numbers_between_zero_and_one_are_fractions(value: Any) -> None:
    with refused(f"`delta` must lie strictly between 0 and 1, got {value!r}."):
        check_fraction(value, "delta")


def test_numpy_floats_are_fractions() -> None:
    assert check_fraction(np.float32(0.5), "delta") == 0.5


@pytest.mark.parametrize("value", [-0.5, np.nan, True, "1", None])
def test_only_numbers_in_range_are_numbers(value: Any) -> None:
    with refused(f"`x` must be a number at least 0, got {value!r}."):
        check_number(value, "x", minimum=0)


def test_a_strict_minimum_is_excluded() -> None:
    with refused("`x` must be a number greater than 0, got 0."):
        check_number(0, "x", minimum=0, strict=True)


def test_a_number_above_its_maximum_is_refused() -> None:
    with refused("`x` must be a number at least 0 and at most 2, got 3."):
        check_number(3, "x", minimum=0, maximum=2)


def test_a_number_at_its_bounds_is_accepted() -> None:
    assert [check_number(x, "x", minimum=0, maximum=2) for x in (0, 2)] == [0.0, 2.0]


@pytest.mark.parametrize("value", ["c", 3, None, ["a"]])
def test_a_wrong_choice_lists_the_options(value: Any) -> None:
    with refused(f"`kind` must be one of 'a', 'b', got {value!r}."):
        check_choice(value, "kind", ("a", "b"))


def test_arguments_about_different_items_are_refused() -> None:
    with refused("`p` and `counts` must describe the same items, got 2 and 3 rows."):
        check_same_length(np.ones((2, 2)), sparse.csr_array(np.ones((3, 2))), ("p", "counts"))


@pytest.mark.parametrize("seed", ["a", -1, 1.5])
def test_a_bad_seed_is_refused(seed: Any) -> None:
    with refused(
        f"`random_state` must be None, a non-negative integer or a numpy Generator, got {seed!r}."
    ):
        check_random_state(seed)


def test_a_generator_is_used_as_it_is() -> None:
    generator = np.random.default_rng(3)

    assert check_random_state(generator) is generator


def test_a_finite_matrix_is_returned_as_floats() -> None:
    assert check_finite_matrix([[1, 2], [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_missing_feature_is_named_by_row_and_column(value: float) -> None:
    features = np.ones((4, 3))
    features[2, 1] = value
    with refused(f"`features` must be finite numbers, got {value} in row 2, column 1."):
        check_finite_matrix(features)


def test_a_vector_of_features_is_refused() -> None:
    with refused("`features` must have 2 dimensions, got shape (3,)."):
        check_finite_matrix([1.0, 2.0, 3.0])


def test_a_bad_entry_is_carried_as_data() -> None:
    assert fields(check_counts, [[1, 1], [3, -2]]) == {
        "argument": "counts",
        "rule": "must be non-negative",
        "value": -2,
        "where": "in row 1",
        "row": 1,
    }


def test_a_bad_sparse_entry_carries_its_row() -> None:
    counts = sparse.csr_array(np.array([[0, 1, 0], [1, 1, 0], [1, 0, 0.5]]))
    found = fields(check_counts, counts)

    assert (found["value"], found["row"]) == (0.5, 2)


def test_a_bad_sum_carries_its_remedy() -> None:
    assert fields(check_simplex, [[0.5, 0.5], [0.2, 0.3]]) == {
        "argument": "probabilities",
        "rule": "must sum to 1 over the classes",
        "value": 0.5,
        "where": "in row 1",
        "row": 1,
        "remedy": "Normalise it first.",
    }


def test_an_entry_of_many_axes_carries_its_index_and_its_row() -> None:
    ensemble = np.full((2, 2, 2), 0.5)
    ensemble[1, 0, 1] = -1
    found = fields(check_simplex, ensemble, "p")

    assert (found["where"], found["row"]) == ("at index (1, 0, 1)", 1)


def test_a_lone_distribution_has_no_row() -> None:
    assert "row" not in fields(check_simplex, [0.5, 0.6], "p")


def test_too_few_labels_carry_their_number_and_row() -> None:
    assert fields(check_counts, [[2, 1], [1, 1]], minimum_total=3) == {
        "argument": "counts",
        "rule": "must have at least 3 labels in each row",
        "value": 2,
        "where": "in row 1",
        "row": 1,
        "remedy": "Drop such items, or ask for fewer labels.",
    }


@pytest.mark.parametrize(
    "options", [{"minimum_total": 1}, {"minimum_total": 2}, {"minimum_total": 4, "asked": False}]
)
def test_nobody_is_told_to_ask_for_fewer_labels_where_that_cannot_be_done(
    options: dict[str, int],
) -> None:
    assert fields(check_counts, [[2, 2], [0, 0]], **options)["remedy"] == "Drop such items."


def test_a_missing_feature_carries_row_and_column() -> None:
    found = fields(check_finite_matrix, [[1.0, np.inf]], "x")

    assert (found["argument"], found["where"], found["row"]) == ("x", "in row 0, column 1", 0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, 0), (2.5, 2.5), ("2", "'2'"), (None, "None")],
)
def test_a_bad_integer_is_carried_as_it_was_given(value: Any, shown: Any) -> None:
    found = fields(check_integer, value, "k", minimum=1, why="Because.")

    assert found["argument"] == "k"
    assert found["value"] == shown


@pytest.mark.parametrize(("value", "remedy"), [(0, "Because."), (2.5, None), ("2", None)])
def test_the_reason_for_a_range_is_given_for_integers_outside_it(
    value: Any, remedy: str | None
) -> None:
    found = fields(check_integer, value, "k", minimum=1, why="Because.")

    assert found.get("remedy") == remedy


def test_arguments_about_different_items_are_both_named() -> None:
    found = fields(check_same_length, [1, 2], [1, 2, 3], ("p", "counts"))

    assert found == {
        "argument": "p and counts",
        "rule": "must describe the same items",
        "value": "2 and 3 rows",
    }


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Index, pd.Series])
def test_names_are_a_list_or_a_column(kind: Callable[[list[str]], Any]) -> None:
    assert check_names(kind(["a", "b"]), "classes", 2) == ["a", "b"]


@pytest.mark.parametrize(
    ("check", "argument"),
    [
        pytest.param(lambda: check_array([], "a"), "a", id="array"),
        pytest.param(lambda: check_array([[1], [1, 2]], "a"), "a", id="ragged"),
        pytest.param(lambda: check_simplex([[1.0]], "p"), "p", id="simplex"),
        pytest.param(lambda: check_weights([-1]), "weights", id="weights"),
        pytest.param(lambda: check_counts([1]), "counts", id="counts"),
        pytest.param(lambda: check_cells([0], 2), "cells", id="cells"),
        pytest.param(lambda: check_fraction(2, "delta"), "delta", id="fraction"),
        pytest.param(lambda: check_number(np.inf, "x"), "x", id="number"),
        pytest.param(lambda: check_choice("c", "kind", "ab"), "kind", id="choice"),
        pytest.param(lambda: check_random_state("a"), "random_state", id="seed"),
    ],
)
def test_every_check_names_its_argument(check: Callable[[], Any], argument: str) -> None:
    assert fields(check)["argument"] == argument


@pytest.mark.parametrize("constructor", [Mixtures.from_points, Mixtures.from_vertices])
def test_constructors_name_the_argument_they_refuse(constructor: Callable[[Any], Mixtures]) -> None:
    with refused(
        "`probabilities` must sum to 1 over the classes, got 1.1 in row 0. Normalise it first."
    ):
        constructor([[0.5, 0.6]])
