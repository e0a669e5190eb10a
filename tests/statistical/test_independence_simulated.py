"""The check of annotations on simulated panels: silent if labels are independent, loud if not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from hocal.annotations.independence import AnnotationCheck, check_annotations
from hocal.annotations.independence.annotator_table import AnnotatorEffects
from hocal.annotations.independence.design_effect import DesignEffect, design_effect
from hocal.annotations.independence.vote_layout import lay_out

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
N_WORLDS = 300
PANEL: dict[str, Any] = {
    "n_items": 300,
    "n_annotators": 30,
    "sizes": (4, 5, 6),
    "even": True,
}  # about 50 items each


def assign(
    generator: np.random.Generator,
    n_items: int,
    n_annotators: int,
    sizes: tuple[int, ...],
    *,
    even: bool,
) -> pl.DataFrame:
    """Draw who judges which item: ragged sizes and, unless even, a few much busier annotators."""
    activity = generator.pareto(1.5, n_annotators) + 0.2
    keys = (not even) * np.log(activity) + generator.gumbel(size=(n_items, n_annotators))
    ranks = np.argsort(np.argsort(-keys, axis=1), axis=1)
    item, annotator = np.nonzero(ranks < generator.choice(sizes, n_items)[:, None])
    return pl.DataFrame({"item": item, "annotator": annotator, "time": generator.random(len(item))})


def draw(generator: np.random.Generator, probabilities: Array) -> NDArray[np.int64]:
    """Draw a label from each row."""
    below = probabilities.cumsum(axis=1) < generator.random((len(probabilities), 1))
    return np.minimum(below.sum(axis=1), probabilities.shape[1] - 1)


def panel(
    seed: int,
    *,
    n_items: int = 80,
    n_annotators: int = 25,
    sizes: tuple[int, ...] = (1, 2, 3, 5, 8),
    even: bool = False,
    tilt: Callable[[pl.DataFrame, Array], Array] = lambda _table, probabilities: probabilities,
) -> pl.DataFrame:
    """Draw a table of judgements; `tilt` changes the label distribution of each judgement."""
    generator = np.random.default_rng(seed)
    table = assign(generator, n_items, n_annotators, sizes, even=even)
    truth = generator.dirichlet([0.9, 0.5, 0.2], n_items)[table["item"].to_numpy()]
    return table.with_columns(label=pl.Series(draw(generator, tilt(table, truth))))


def check(table: pl.DataFrame, seed: int = 0, **options: Any) -> AnnotationCheck:
    columns = {"item": "item", "label": "label", "annotator": "annotator", "time": "time"}
    return check_annotations(table, **columns, n_resamples=99, random_state=seed, **options)


def by_name(result: AnnotationCheck) -> AnnotatorEffects:
    """Return the annotators in the order of their numbers, in place of that of their effects."""
    return result.annotators.take(np.argsort(result.annotators.annotator))


def mix(probabilities: Array, chosen: NDArray[np.bool_], other: Any, weight: float) -> Array:
    """Move the chosen rows towards another distribution."""
    share = weight * chosen[:, None]
    return np.asarray((1 - share) * probabilities + share * np.asarray(other))


@pytest.fixture(scope="module")
def null_checks() -> list[AnnotationCheck]:
    """Check many panels of independent labels."""
    return [check(panel(seed), seed) for seed in range(N_WORLDS)]


def overall_p_values(result: AnnotationCheck) -> dict[str, float]:
    assert result.order is not None
    return {
        "class use": result.class_use.p_value,
        "dissent": result.dissent.p_value,
        "agreement": result.order.agreement_p_value,
        "shift": result.order.shift_p_value,
        "drift": result.order.drift_p_value,
    }


def most(rate: float, trials: int) -> float:
    """Return how many of the trials a rate allows, up to one in a thousand."""
    return float(binom.ppf(0.999, trials, rate))


TESTS = ["class use", "dissent", "agreement", "shift", "drift"]


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("level", [0.01, 0.05, 0.1, 0.25, 0.5])
def test_overall_p_values_are_valid_without_effects(
    name: str, level: float, null_checks: list[AnnotationCheck]
) -> None:
    p_values = np.array([overall_p_values(result)[name] for result in null_checks])

    assert np.count_nonzero(p_values <= level) <= most(level, N_WORLDS)


@pytest.mark.parametrize("name", ["class use", "dissent", "shift", "drift"])
def test_overall_p_values_are_uniform_without_effects(
    name: str, null_checks: list[AnnotationCheck]
) -> None:
    """Agreement is left out: twice the smaller tail of a coarse statistic is conservative."""
    p_values = np.array([overall_p_values(result)[name] for result in null_checks])

    assert np.mean(p_values) == pytest.approx(0.505, abs=3.5 * np.sqrt(1 / 12 / N_WORLDS))


@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_annotators_p_values_are_valid_without_effects(
    level: float, null_checks: list[AnnotationCheck]
) -> None:
    """The first annotator of each world, so that trials are independent."""
    p_values = np.array([by_name(result).p_value[0] for result in null_checks])

    assert np.count_nonzero(p_values <= level) <= most(level, N_WORLDS)


@pytest.mark.parametrize("name", ["p_value_holm", "drift_p_value"])
def test_family_wise_error_of_single_annotators_is_kept(
    name: str, null_checks: list[AnnotationCheck]
) -> None:
    smallest = np.array([np.nanmin(getattr(result.annotators, name)) for result in null_checks])

    assert np.count_nonzero(smallest <= 0.05) <= most(0.05, N_WORLDS)


@pytest.mark.parametrize("topic", ["annotators", "single annotators", "order", "drift", "sharing"])
def test_each_finding_warns_no_more_often_than_alpha_without_effects(
    topic: str, null_checks: list[AnnotationCheck]
) -> None:
    warned = sum(
        (f.topic, f.severity) == (topic, "warning")
        for result in null_checks
        for f in result.findings
    )

    assert warned <= most(0.05, N_WORLDS)


def biased(table: pl.DataFrame, probabilities: Array) -> Array:
    """Annotators 0 and 1 call half of what they see class 2."""
    return mix(probabilities, table["annotator"].to_numpy() < 2, [0, 0, 1], 0.5)


def careless(table: pl.DataFrame, probabilities: Array) -> Array:
    """Annotators 0 and 1 do not look at the item, but use classes as often as everybody does."""
    return mix(probabilities, table["annotator"].to_numpy() < 2, probabilities.mean(axis=0), 1.0)


@pytest.mark.parametrize(("effect", "n_items"), [(biased, 300), (careless, 600)])
def test_most_planted_annotators_are_found_and_hardly_anybody_else(
    effect: Any, n_items: int
) -> None:
    """A bias shows in 50 judgements; not looking shows in 100 (power .89), hardly in 50 (.4)."""
    tables = (panel(seed, tilt=effect, **(PANEL | {"n_items": n_items})) for seed in range(20))
    found = np.array([by_name(check(table)).p_value_holm <= 0.05 for table in tables])

    assert found[:, :2].mean() > 0.7
    assert found[:, 2:].mean() < 0.01


def test_the_class_a_biased_annotator_overuses_is_named() -> None:
    effects = by_name(check(panel(0, tilt=biased, **PANEL)))

    assert effects.overused[:2] == (2, 2)
    assert effects.overuse[:2] == pytest.approx(
        [0.45, 0.45], abs=0.2
    )  # half of what others call 0 or 1


def test_many_small_effects_are_found_together_though_hardly_any_alone() -> None:
    def tilt(table: pl.DataFrame, probabilities: Array) -> Array:
        taste = np.random.default_rng(5).normal(scale=0.5, size=(30, 3))[
            table["annotator"].to_numpy()
        ]
        tilted = probabilities * np.exp(taste)
        return np.asarray(tilted / tilted.sum(axis=1, keepdims=True))

    checks = [check(panel(seed, tilt=tilt, **PANEL)) for seed in range(20)]

    assert np.mean([result.class_use.p_value <= 0.05 for result in checks]) > 0.8
    assert np.mean([result.annotators.p_value_holm <= 0.05 for result in checks]) < 0.1


def copy_labels(
    table: pl.DataFrame, seed: int, *, back: Callable[[np.random.Generator, int], int]
) -> pl.DataFrame:
    """Let every third label copy one of the item's earlier labels; `back` chooses which."""
    generator, ordered = np.random.default_rng(seed), table.sort("item", "time")
    items, labels = ordered["item"].to_list(), ordered["label"].to_list()
    for row in range(len(labels)):
        earlier = row - items.index(items[row])
        if earlier and generator.random() < 1 / 3:
            labels[row] = labels[row - back(generator, earlier)]
    return ordered.with_columns(label=pl.Series(labels))


def test_copying_the_previous_label_is_found() -> None:
    checks = [
        check(copy_labels(panel(seed, **PANEL), seed, back=lambda _generator, _n: 1))
        for seed in range(10)
    ]

    assert all(
        result.order and result.order.agreement > result.order.expected_agreement
        for result in checks
    )
    assert np.mean([overall_p_values(result)["agreement"] <= 0.05 for result in checks]) > 0.8


def test_copying_a_random_earlier_label_leaves_no_trace_in_the_order() -> None:
    """As the finding says: such labels are exchangeable (an urn), though far from independent."""
    worlds = 60
    tables = (panel(seed, n_items=40, n_annotators=20, sizes=(4, 5, 6)) for seed in range(worlds))
    copied = (
        copy_labels(table, seed, back=lambda generator, n: int(generator.integers(1, n + 1)))
        for seed, table in enumerate(tables)
    )
    found = sum(overall_p_values(check(table))["agreement"] <= 0.1 for table in copied)

    assert found <= most(0.1, worlds)


def test_a_task_that_changes_shifts_labels_from_early_to_late() -> None:
    def tilt(table: pl.DataFrame, probabilities: Array) -> Array:
        return mix(probabilities, table["time"].to_numpy() > 0.5, [0, 0, 1], 0.2)

    checks = [check(panel(seed, tilt=tilt, **PANEL)) for seed in range(10)]

    assert all(result.order and result.order.shift[2] > 0 for result in checks)
    assert np.mean([overall_p_values(result)["shift"] <= 0.05 for result in checks]) > 0.8


def test_annotators_who_change_with_time_are_found() -> None:
    """Annotators 0 to 4 start to overuse class 2 half-way; a constant bias is no drift."""

    def tilt(table: pl.DataFrame, probabilities: Array) -> Array:
        who, time = table["annotator"].to_numpy(), table["time"].to_numpy()
        drifting = mix(probabilities, (who < 5) & (time > 0.5), [0, 0, 1], 0.8)
        return mix(drifting, (who >= 5) & (who < 10), [0, 1, 0], 0.5)

    checks = [check(panel(seed, tilt=tilt, **PANEL)) for seed in range(20)]
    found = np.array([by_name(result).drift_p_value <= 0.05 for result in checks])

    assert np.mean(["drift" in repr(result) for result in checks]) > 0.9
    assert found[:, :5].mean() > 0.4
    assert found[:, 5:].mean() < 0.01


def simulate_design_effect(
    seed: int, n_annotators: int, size: int, *, carelessness: float, even: bool
) -> DesignEffect:
    """Draw 300 items and annotators anew, each with a share of judgements made without looking."""
    generator = np.random.default_rng(seed)
    table = assign(generator, 300, n_annotators, (size,), even=even)
    item, annotator = table["item"].to_numpy(), table["annotator"].to_numpy()
    share = carelessness * generator.beta(1, 3, n_annotators)[annotator, None]
    label = draw(
        generator, (1 - share) * generator.dirichlet([0.9, 0.5, 0.2], 300)[item] + share / 3
    )
    return design_effect(
        item,
        annotator,
        lay_out(item, annotator, label, n_annotators=n_annotators, n_classes=3),
        0.5,
    )


@pytest.mark.parametrize(
    ("n_annotators", "size", "carelessness", "even"),
    [
        (30, 5, 0.0, True),
        (30, 5, 1.0, True),
        (30, 3, 1.0, True),
        (30, 5, 1.0, False),
        (6, 6, 1.0, True),
    ],
    ids=["no effect", "effect", "three labels", "uneven activity", "fixed panel"],
)
def test_the_design_effect_is_the_true_ratio_of_variances(
    n_annotators: int, size: int, carelessness: float, even: bool
) -> None:
    """Variance of mean disagreement over 500 panels, relative to independent items; within 6%."""
    results = [
        simulate_design_effect(seed, n_annotators, size, carelessness=carelessness, even=even)
        for seed in range(500)
    ]
    independent = np.mean([result.independent_standard_error**2 for result in results])
    truth = np.var([result.disagreement for result in results], ddof=1) / independent

    estimated = np.mean([result.standard_error**2 for result in results]) / independent
    assert estimated == pytest.approx(truth, rel=0.2)
    assert (truth > 1.5) == (carelessness > 0)
