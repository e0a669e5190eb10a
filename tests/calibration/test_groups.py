"""Groups of items: `by=` crosses cells with them, and a model of items learns their differences."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

import hocal
from engines import IN_PROCESS
from hocal._base.typing import Array, IntArray
from hocal.cells import CrossedPartition
from hocal.cells.crossed import group_in_engine, group_texts
from hocal.datasets import load_judges
from hocal.decisions import familiarity
from hocal.report.study import Study
from hocal.uncertainty import draw_labels

N_ITEMS = 400
GROUPS = np.tile(["style", "truth"], N_ITEMS // 2)


@pytest.fixture(scope="module")
def judged() -> tuple[Array, IntArray]:
    """Draw the same predictions in two groups; people agree in one and toss coins in the other."""
    p = np.repeat(np.random.default_rng(0).dirichlet([2, 2], N_ITEMS // 2), 2, axis=0)
    torn = np.full_like(p, 0.5)
    clear = np.where(p == p.max(axis=1, keepdims=True), 0.98, 0.02)
    truth = np.where((GROUPS == "style")[:, None], torn, clear)
    return p, draw_labels(truth, 3, random_state=1)


@pytest.fixture(scope="module")
def fitted(judged: tuple[Array, IntArray]) -> hocal.SnapshotCalibrator:
    p, counts = judged
    return hocal.SnapshotCalibrator().fit(p, counts, by=pd.Series(GROUPS, name="aspect"))


def test_a_cell_is_named_after_its_group(fitted: hocal.SnapshotCalibrator) -> None:
    names = fitted.partition_.cell_names(["bad", "good"])

    assert len(names) == 40
    assert names[7] == "aspect style, bad, 70 to 80%"
    assert names[37] == "aspect truth, good, 70 to 80%"


def test_equal_predictions_of_two_groups_get_different_answers(
    fitted: hocal.SnapshotCalibrator,
) -> None:
    """People toss coins about style, ln 2 nats, and agree about truth."""
    parts = fitted.decompose([[0.8, 0.2]] * 2, by=["style", "truth"])

    assert parts.aleatoric[0] > 0.6
    assert parts.aleatoric[1] < 0.25


def test_the_paper_s_method_by_group_is_one_fit_for_each_group(
    judged: tuple[Array, IntArray],
) -> None:
    p, counts = judged
    crossed = hocal.SnapshotCalibrator(method="empirical").fit(p, counts, by=GROUPS)
    found = crossed.predict_proba(p, by=GROUPS)

    for group in ("style", "truth"):
        own = group == GROUPS
        alone = hocal.SnapshotCalibrator(method="empirical").fit(p[own], counts[own])
        np.testing.assert_allclose(found[own], alone.predict_proba(p[own]))


def test_batches_by_group_add_up(judged: tuple[Array, IntArray]) -> None:
    p, counts = judged
    whole = hocal.SnapshotCalibrator(method="cells").fit(p, counts, by=GROUPS)
    parts = hocal.SnapshotCalibrator(method="cells")
    for rows in (slice(0, 100), slice(100, None)):
        parts.partial_fit(p[rows], counts[rows], by=GROUPS[rows])

    assert np.array_equal(parts.predict_proba(p, by=GROUPS), whole.predict_proba(p, by=GROUPS))


@pytest.mark.parametrize(
    "partition", [hocal.TopLabelPartition(4), hocal.QuantilePartition(3), hocal.KMeansPartition(5)]
)
def test_a_file_remembers_groups(
    judged: tuple[Array, IntArray], tmp_path: Path, partition: Any
) -> None:
    p, counts = judged
    saved = hocal.SnapshotCalibrator(partition, method="cells").fit(p, counts, by=GROUPS)
    hocal.save(saved, tmp_path / "model.hocal")

    loaded = hocal.load(tmp_path / "model.hocal")

    assert loaded.partition_.cell_names(["a", "b"]) == saved.partition_.cell_names(["a", "b"])
    assert np.array_equal(loaded.predict_proba(p, by=GROUPS), saved.predict_proba(p, by=GROUPS))


def test_a_model_of_items_with_groups_comes_back_from_a_file(
    fitted: hocal.SnapshotCalibrator, judged: tuple[Array, IntArray], tmp_path: Path
) -> None:
    hocal.save(fitted, tmp_path / "model.hocal")

    found = hocal.load(tmp_path / "model.hocal").decompose(judged[0], by=GROUPS)

    assert np.array_equal(found.aleatoric, fitted.decompose(judged[0], by=GROUPS).aleatoric)


def test_an_engine_crosses_cells_as_python_does(judged: tuple[Array, IntArray]) -> None:
    p = judged[0]
    partition = CrossedPartition(["style", "truth"]).fit_classes(2)
    frame = nw.from_native(pa.table({"a": p[:, 0], "b": p[:, 1], "aspect": GROUPS})).lazy()

    found = partition.cross_in_engine(frame, ["a", "b"], "aspect").collect()["cell"].to_numpy()

    assert np.array_equal(found, partition.assign(p, cells=GROUPS))


@pytest.mark.parametrize("groups", [[1, 2], [1.0, 2.0], ["1", "2"], [1, "2"]])
def test_numbers_name_the_same_groups_however_they_are_written(groups: Any) -> None:
    partition = CrossedPartition(["1", "2"]).fit_classes(2)

    cells = partition.assign([[0.5, 0.5]] * 2, cells=np.array(groups, dtype=object))

    assert cells.tolist() == [5, 25]


NUMBERS = [1.0, 1.5, 1e20, 2e20, 1e-5]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_names_the_same_group_whatever_the_others_are(number: float) -> None:
    assert group_texts([number]).tolist() == [group_texts([number, *NUMBERS])[0]]


def test_large_numbers_that_differ_are_different_groups() -> None:
    assert len(set(group_texts(NUMBERS))) == len(NUMBERS)


@pytest.mark.parametrize("engine", [name for name in IN_PROCESS if name != "pandas of objects"])
@pytest.mark.parametrize("values", [NUMBERS, [True, False], [3, 7], ["1.0", "style"]])
def test_an_engine_names_groups_as_python_does(engine: str, values: list[Any]) -> None:
    frame = nw.from_native(IN_PROCESS[engine](pa.table({"by": values}))).lazy()

    found = frame.select(group_in_engine(frame, "by").alias("text")).collect()["text"]

    assert sorted(found.to_list()) == sorted(group_texts(values))


@pytest.mark.parametrize("gap", [None, np.nan, np.inf, pd.NA, pd.NaT])
def test_a_gap_of_any_kind_names_no_group(gap: Any) -> None:
    with pytest.raises(hocal.InputError, match="`by` must name the group of each item in row 1"):
        group_texts(pd.Series(["style", gap], dtype=object))


Fail = Callable[[hocal.SnapshotCalibrator], Any]
P = np.array([[0.4, 0.6], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        (lambda c: c.decompose(P), "`by` must name the group of each item, as in the fit: aspect"),
        (lambda c: c.predict_proba(P, by=["style", "wit"]), "got 'wit' in row 1. Nothing was"),
        (lambda c: c.predict_proba(P, by=["style", None]), "must name the group of each item in r"),
        (lambda c: c.predict_proba(P, by=["style"]), "must describe the same items, got 2 and 1"),
        (lambda c: c.decompose(P, by=["style"] * 2, cells=[0, 0]), "`cells` must be left out with"),
        (
            lambda _: hocal.SnapshotCalibrator().fit(P, [[1, 1]] * 2).decompose(P, by=["a", "b"]),
            "fitted without groups",
        ),
        (
            lambda _: hocal.SnapshotCalibrator().fit(
                np.tile(P, (60, 1)), [[1, 1]] * 120, by=np.arange(120)
            ),
            "must have at most 100 groups, got 120",
        ),
        (
            lambda _: hocal.SnapshotCalibrator().fit(P, [[1, 1]] * 2, by=[["a"], ["b", "c"]]),
            "`by` must be an array, got rows of different lengths",
        ),
        (
            lambda _: hocal.SnapshotCalibrator(hocal.PrecomputedPartition(2)).fit(
                P, [[1, 1]] * 2, by=["a", "b"]
            ),
            "must compute its cells to be crossed",
        ),
        (lambda _: CrossedPartition(["a", "a"]).fit(P), "`groups` must be different names"),
    ],
)
def test_groups_that_do_not_fit_are_refused(
    fitted: hocal.SnapshotCalibrator, fail: Fail, message: str
) -> None:
    with pytest.raises(hocal.InputError) as raised:
        fail(fitted)

    assert message in str(raised.value)


@pytest.mark.skipif(
    "HOCAL_DATA" not in os.environ, reason="HOCAL_DATA does not name the data directory"
)
@pytest.mark.slow
def test_the_aspect_of_a_summary_tells_where_experts_disagree() -> None:
    """SummEval: Spearman with held-out disagreement rises from .47 to .65 with the aspect."""
    study = load_judges("summeval")
    names = np.array([str(item).split("__") for item in study.items])
    aspect, document = names[:, -1], np.unique(names[:, 0], return_inverse=True)[1]
    p, counts = study.probabilities.mean(axis=1), study.counts
    fit, test = document % 2 == 0, document % 2 == 1
    pairs = counts.sum(axis=1) * (counts.sum(axis=1) - 1)
    disagreement = 1 - (counts * (counts - 1)).sum(axis=1) / pairs
    scores = {}
    for name, by in (("alone", None), ("aspect", aspect)):
        given = {} if by is None else {"by": by[fit]}
        calibrator = hocal.SnapshotCalibrator().fit(p[fit], counts[fit], **given)
        later = {} if by is None else {"by": by[test]}
        found = calibrator.decompose(p[test], "brier", **later).aleatoric
        scores[name] = spearmanr(found, disagreement[test]).statistic

    assert scores["alone"] < 0.5
    assert scores["aspect"] > 0.63


def test_a_monitor_and_familiarity_take_groups(
    fitted: hocal.SnapshotCalibrator, judged: tuple[Array, IntArray]
) -> None:
    p, counts = judged
    watch = hocal.Monitor(fitted).update(p, counts, by=GROUPS)

    assert watch.n_items == N_ITEMS
    assert not familiarity(fitted, p, by=GROUPS).warning


def test_a_report_knows_the_fitted_items_of_groups_again(
    fitted: hocal.SnapshotCalibrator, judged: tuple[Array, IntArray]
) -> None:
    study = Study.of(fitted, *judged, None, GROUPS, None, 0.95)

    assert study.fitted.all()
