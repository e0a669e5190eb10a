"""Answers in words: what becomes of them, and how they are split."""

import numpy as np
import pytest
from numpy.typing import NDArray

import hocal
from hocal.annotations import split_answers
from hocal.annotations.answers import normalise
from hocal.uncertainty import draw_labels

COLUMNS = {"item": "question", "answer": "said"}


def log_of(counts: NDArray[np.int64], seed: int | None = None) -> dict[str, NDArray[np.int64]]:
    """Return one row per answer, in the order of items or shuffled."""
    question, said = np.nonzero(counts)
    times = counts[question, said]
    rows = {"question": np.repeat(question, times), "said": np.repeat(said, times)}
    if seed is None:
        return rows
    order = np.random.default_rng(seed).permutation(len(rows["said"]))
    return {name: values[order] for name, values in rows.items()}


def test_halves_together_are_all_answers() -> None:
    counts = np.random.default_rng(0).multinomial(7, [0.5, 0.3, 0.2], size=40)

    halves = split_answers(log_of(counts), **COLUMNS, random_state=0)

    first = np.rint(3 * halves.probabilities).astype(int)
    np.testing.assert_array_equal(first + halves.counts, counts)
    assert (halves.counts.sum(axis=1) == 4).all()


def test_halves_do_not_depend_on_the_order_of_the_rows() -> None:
    counts = np.random.default_rng(1).multinomial(6, [0.5, 0.3, 0.2], size=40)

    one = split_answers(log_of(counts), **COLUMNS, random_state=5)
    other = split_answers(log_of(counts, seed=2), **COLUMNS, random_state=5)

    np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)


def test_which_answers_predict_is_drawn_by_chance() -> None:
    """One of two kinds of answers each: the first half has it in half of the items."""
    halves = split_answers(log_of(np.ones((2000, 2), dtype=np.int64)), **COLUMNS, random_state=0)

    assert halves.probabilities[:, 0].mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("answer", "plain"),
    [("Paris.", "paris"), ('  "New   York"!', "new york"), (3, "3")],
)
def test_normalised_answers_have_no_case_spaces_and_final_punctuation(
    answer: object, plain: str
) -> None:
    assert normalise(answer) == plain


def test_a_function_of_ones_own_maps_each_distinct_answer_once() -> None:
    asked: list[str] = []

    def first_letter(text: str) -> str:
        asked.append(text)
        return text[0]

    log = {"question": [1, 1, 2, 2], "said": ["yes", "yeah", "no", "yes"]}
    halves = split_answers(log, **COLUMNS, to_class=first_letter, random_state=0)

    assert halves.classes == ("n", "y")
    assert sorted(asked) == ["no", "yeah", "yes"]


def test_answers_without_a_class_are_left_out_if_asked_and_counted() -> None:
    log = {"question": [1, 1, 1, 2, 2, 2], "said": ["a", "b", "hm", "a", "a", "hm"]}
    known = {"a": "a", "b": "b"}.get

    halves = split_answers(log, **COLUMNS, to_class=known, unknown="drop", random_state=0)

    assert halves.n_left_out == 2
    with pytest.raises(hocal.InputError, match=r"must have a class in each row, got none for 'hm'"):
        split_answers(log, **COLUMNS, to_class=known)


def test_a_function_that_fails_is_refused_with_the_answer() -> None:
    log = {"question": [1, 1], "said": ["1", "two"]}

    with pytest.raises(hocal.InputError, match=r"`to_class` must return a class.*for 'two'"):
        split_answers(log, **COLUMNS, to_class=int)


def test_ranks_are_those_of_the_first_half() -> None:
    """The commonest answer of the predicting half comes first, whatever the labels are."""
    generator = np.random.default_rng(3)
    counts = np.zeros((50, 200), dtype=np.int64)
    for row in range(50):
        counts[row, 4 * row : 4 * row + 4] = generator.multinomial(9, [0.5, 0.3, 0.1, 0.1])

    halves = split_answers(log_of(counts), **COLUMNS, n_ranks=2, random_state=0)

    assert halves.classes == ("answer 1", "answer 2", "another answer")
    assert (halves.probabilities[:, 0] >= halves.probabilities[:, 1]).all()
    assert (halves.counts.sum(axis=1) == 5).all()
    assert halves.counts[:, 2].sum() > 0


def test_an_answer_that_only_the_labels_have_is_another_answer() -> None:
    log = {"question": [1, 1, 2, 2], "said": ["a", "b", "c", "d"]}

    halves = split_answers(log, **COLUMNS, n_ranks=1, random_state=0)

    assert halves.probabilities.tolist() == [[1, 0], [1, 0]]
    assert halves.counts.tolist() == [[0, 1], [0, 1]]


def test_an_item_with_one_answer_is_refused_or_left_out() -> None:
    log = {"question": [1, 1, 2], "said": ["a", "b", "a"]}

    with pytest.raises(hocal.InputError, match=r"two answers to each item.*fewer for 1 of 2: 2"):
        split_answers(log, **COLUMNS)
    assert split_answers(log, **COLUMNS, too_few="drop").items.tolist() == [1]


def test_gaps_are_refused_or_left_out() -> None:
    log = {"question": [1, 1, 1], "said": ["a", "b", None]}

    with pytest.raises(hocal.InputError, match=r"an item and an answer in each row.*missing"):
        split_answers(log, **COLUMNS)
    assert split_answers(log, **COLUMNS, missing="drop").n_left_out == 1


def test_classes_and_ranks_exclude_each_other() -> None:
    log = {"question": [1, 1], "said": ["a", "b"]}

    with pytest.raises(hocal.InputError, match="must not be given together"):
        split_answers(log, **COLUMNS, classes=["a", "b"], n_ranks=2)


def test_uncertainty_from_halves_is_the_models_own_indecision() -> None:
    """Aleatoric is the mean entropy of the model's answers; the same answers twice would lie."""
    generator = np.random.default_rng(4)
    p = generator.dirichlet([0.6, 0.6, 0.6], size=3000)
    truth = -(p * np.log(p)).sum(axis=1).mean()
    halves = split_answers(log_of(draw_labels(p, 8, random_state=0)), **COLUMNS, random_state=0)

    calibrator = hocal.SnapshotCalibrator().fit(halves.probabilities, halves.counts)

    parts = calibrator.decompose(halves.probabilities)
    assert parts.aleatoric.mean() == pytest.approx(truth, abs=0.03)
    assert parts.epistemic.mean() > 0.05
