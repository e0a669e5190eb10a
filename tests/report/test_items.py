"""Items speak for themselves: their own values, labels, limits and what one more label brings."""

from typing import Any

import numpy as np
import pytest

import hocal
from hocal.report import Report, Summary, summarise
from hocal.report.item_values import look_closer
from hocal.report.items import least_listed
from hocal.report.schema import ItemRow
from report.example import Example

LISTED_BY: dict[str, Any] = {
    "epistemic": lambda item: item["alone"]["epistemic"],
    "aleatoric": lambda item: item["aleatoric"],
    "gain": lambda item: item["gain"],
}


def quick(example: Example, **options: object) -> Summary:
    return summarise(example.calibrator, example.probabilities, planning=False, **options)


def in_list(summary: Summary, listing: str) -> list[ItemRow]:
    return [item for item in summary["items"] if listing in item["listed_as"]]


@pytest.fixture(scope="module")
def every(example: Example) -> Summary:
    """Return a summary that lists all items it may."""
    return quick(example, counts=example.counts, n_listed=1000)


@pytest.fixture(scope="module")
def few(example: Example) -> Summary:
    """Return a summary with ten items in each list."""
    return quick(example, counts=example.counts, n_listed=10, n_gallery=3)


@pytest.mark.parametrize("listing", LISTED_BY)
def test_a_list_holds_the_items_with_the_most_of_all(
    few: Summary, every: Summary, listing: str
) -> None:
    """Sorting the table by a column then shows the first of all items, not only of the listed."""
    values = [LISTED_BY[listing](item) for item in in_list(few, listing)]
    best = sorted(map(LISTED_BY[listing], in_list(every, listing)), reverse=True)[:10]
    assert sorted(values, reverse=True) == pytest.approx(best, rel=1e-4)


def test_lists_are_as_long_as_asked_for(few: Summary) -> None:
    assert [len(in_list(few, listing)) for listing in LISTED_BY] == [10, 10, 10]
    assert [len(gallery["cards"]) for gallery in few["galleries"]] == [3, 3]


def test_an_item_is_listed_once(every: Summary) -> None:
    rows = [item["row"] for item in every["items"]]

    assert sorted(rows) == list(range(400))


def test_items_with_next_to_nothing_are_not_listed_for_it(example: Example, every: Summary) -> None:
    parts = example.calibrator.decompose(example.probabilities)

    least = least_listed(4)
    assert {item["row"] for item in in_list(every, "epistemic")} == set(
        np.flatnonzero(parts.epistemic >= least).tolist()
    )
    assert all(item["aleatoric"] >= least for item in in_list(every, "aleatoric"))


def test_what_everybody_agrees_on_is_never_listed_as_ambiguous(example: Example) -> None:
    counts = example.counts.copy()
    counts[::2] = [4, 0, 0, 0]

    summary = quick(example, counts=counts, n_listed=1000, n_gallery=400)

    unanimous = set(np.flatnonzero((counts == 4).any(axis=1)).tolist())
    ambiguous = {item["row"] for item in in_list(summary, "aleatoric")}
    shown = {card["item"]["row"] for card in summary["galleries"][1]["cards"]}
    agreed = {item["row"] for item in summary["items"] if item["agreed"]}
    assert ambiguous == shown
    assert len(ambiguous) > 50
    assert not ambiguous & unanimous
    assert agreed == unanimous & {item["row"] for item in summary["items"]}


def test_two_equal_labels_are_agreement_unless_the_posterior_excludes_it() -> None:
    """About half of the items people are of one mind, about the others torn for certain."""
    rng = np.random.default_rng(0)
    torn = np.arange(600) % 2 == 0
    p = np.where(torn[:, None], [0.5, 0.5], [0.7, 0.3]) + rng.uniform(-1e-3, 1e-3, (600, 1)) * [
        1,
        -1,
    ]
    clear = np.eye(2)[(rng.random(600) > 0.7).astype(int)]
    truth = np.where(torn[:, None], 0.5, clear)
    calibrator = hocal.SnapshotCalibrator().fit(p, rng.multinomial(6, truth))
    own = np.tile([2, 0], (600, 1))

    summary = summarise(calibrator, p, own, planning=False, n_listed=600)

    agreed = {item["row"]: item["agreed"] for item in summary["items"]}
    assert np.mean([agreed[row] for row in agreed if torn[row]]) < 0.05
    assert all(agreed[row] for row in agreed if not torn[row])


def test_limits_hold_the_estimate(every: Summary) -> None:
    for item in every["items"]:
        lower, upper = item["aleatoric_interval"]
        assert lower <= item["aleatoric"] + 1e-6
        assert item["aleatoric"] <= upper + 1e-6


def test_a_gain_is_what_next_labels_counts(example: Example) -> None:
    calibrator, p, counts, _ = example
    rows = np.arange(50)

    look = look_closer(calibrator, lambda chosen: {"probabilities": p[chosen]}, counts, rows, 0.95)

    mixtures = calibrator.predict_mixture(p[rows], counts=counts[rows])
    bought = hocal.next_labels(mixtures, None, budget=50, limit=1)
    np.testing.assert_allclose(look.gain, bought.gain, rtol=1e-9)


def test_a_gain_of_many_classes_is_that_of_the_likely_ones(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibrator, p, counts, _ = example
    rows = np.arange(50)

    def gains() -> Any:
        given = {"probabilities": p[rows]}
        return look_closer(calibrator, lambda _: given, counts[rows], rows, 0.95).gain

    exact = gains()
    monkeypatch.setattr("hocal.report.item_values.MANY_CLASSES", 3)
    np.testing.assert_allclose(gains(), exact, rtol=0.2)
    assert (gains() <= exact + 1e-12).all()


def test_more_labels_leave_less_unknown_and_less_to_gain(example: Example, every: Summary) -> None:
    many = quick(example, counts=10 * example.counts, n_listed=400)

    def mean(summary: Summary, key: str) -> float:
        values = [item[key] for item in summary["items"]]  # type: ignore[literal-required]
        return float(np.mean(values))

    assert mean(many, "epistemic") < mean(every, "epistemic") / 2
    assert mean(many, "gain") < mean(every, "gain") / 10


def test_markdown_lists_items_with_what_people_said(example: Example) -> None:
    counts = example.counts.copy()
    counts[:] = [5, 0, 0, 0]

    text = Report(quick(example, counts=counts, classes=["cat", "dog", "fox", "owl"])).markdown()

    assert "What the model knows least:" in text
    assert "Where one more label would tell most:" in text
    assert "What people disagree about most:" not in text
    assert "5 of 5 people agree: cat" in text


@pytest.mark.slow
@pytest.mark.parametrize("k", [0, 2, 10])
def test_limits_of_items_hold_the_truth(k: int) -> None:
    """95% of items, by the known distribution of what people say."""
    rng = np.random.default_rng(k)
    p = rng.dirichlet([0.5] * 3, 2_000)
    truth = np.stack([rng.dirichlet(6 * row + 0.1) for row in p])
    calibrator = hocal.SnapshotCalibrator().fit(p[:1000], rng.multinomial(4, truth[:1000]))
    new = slice(1000, None)
    own = rng.multinomial(k, truth[new])

    look = look_closer(
        calibrator, lambda rows: {"probabilities": p[new][rows]}, own, np.arange(1000), 0.95
    )

    entropy = -(truth[new] * np.log(np.maximum(truth[new], 1e-300))).sum(axis=1)
    assert ((look.lower <= entropy) & (entropy <= look.upper)).mean() > 0.92
