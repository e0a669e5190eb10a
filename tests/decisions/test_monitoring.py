"""A monitor: no alarm without a change, an alarm that says what, where and since when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hocal
from hocal.decisions import Finding
from hocal.decisions.watched import Watched

Array = NDArray[np.float64]


def draw_world(n_items: int, seed: int, *, blur: float = 0.0) -> tuple[Array, Array]:
    """Predictions, and label distributions; `blur` moves these towards .6 and twice .2."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet([0.4, 0.4, 0.4], n_items)
    noisy = truth * np.exp(generator.normal(0, 0.7, truth.shape)) + 0.01
    torn = 0.4 * np.eye(3)[truth.argmax(axis=1)] + 0.2
    return noisy / noisy.sum(axis=1, keepdims=True), (1 - blur) * truth + blur * torn


def draw_labels(truth: Array, k: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).multinomial(k, truth)


@pytest.fixture(scope="module", params=["cells", "items"])
def calibrator(request: pytest.FixtureRequest) -> Any:
    p, truth = draw_world(600, 0)
    fitted = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), method=request.param)
    return fitted.fit(p, draw_labels(truth, 4, 1))


@pytest.fixture(scope="module")
def cells() -> Any:
    p, truth = draw_world(600, 0)
    fitted = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), method="cells")
    return fitted.fit(p, draw_labels(truth, 4, 1))


def stream(n_items: int, seed: int, **options: float) -> tuple[Array, NDArray[np.int64]]:
    p, truth = draw_world(n_items, seed, **options)
    return p, draw_labels(truth, 4, seed + 1)


def alike(first: list[Finding], second: list[Finding]) -> bool:
    """Tell whether findings are the same but for rounding."""
    words, numbers = (
        [[each._replace(evidence=0.0, shift=0.0) for each in found] for found in (first, second)],
        [[(each.evidence, each.shift) for each in found] for found in (first, second)],
    )
    return words[0] == words[1] and np.allclose(*numbers, rtol=1e-9)


def test_nothing_seen_is_no_evidence(cells: Any) -> None:
    monitor = hocal.Monitor(cells)

    assert (monitor.n_items, monitor.alarm, monitor.evidence, monitor.since) == (
        0,
        False,
        1.0,
        None,
    )
    assert monitor.findings() == []


def test_items_like_those_of_the_calibration_raise_no_alarm(calibrator: Any) -> None:
    monitor = hocal.Monitor(calibrator).update(*stream(500, 10))

    assert not monitor.alarm
    assert monitor.evidence < 5
    assert monitor.n_items == 500


def test_people_who_disagree_more_raise_an_alarm_about_disagreement(calibrator: Any) -> None:
    monitor = hocal.Monitor(calibrator).update(*stream(300, 20, blur=0.8))
    first = monitor.findings()[0]

    assert monitor.alarm
    assert (first.kind, first.where, first.direction) == ("disagreement", "all items", "higher")
    assert first.shift > 0.1
    assert monitor.evidence_by_kind["disagreement"] > 20


def test_people_who_agree_more_raise_one_in_the_other_direction(calibrator: Any) -> None:
    p, truth = draw_world(400, 30)
    certain = 4 * np.eye(3, dtype=np.int64)[truth.argmax(axis=1)]

    first = hocal.Monitor(calibrator).update(p, certain).findings()[0]

    assert (first.kind, first.direction) == ("disagreement", "lower")
    assert first.shift < -0.1


def test_classes_that_swap_raise_an_alarm_about_the_mean(calibrator: Any) -> None:
    """Disagreement stays as it is: what people call the things has changed."""
    p, truth = draw_world(300, 40)
    labels = draw_labels(truth[:, [1, 0, 2]], 4, 41)

    monitor = hocal.Monitor(calibrator).update(p, labels)
    kinds = [each.kind for each in monitor.findings(least=20)]

    assert monitor.alarm
    assert set(kinds) == {"mean"}
    assert monitor.evidence_by_kind["disagreement"] < 20 < monitor.evidence_by_kind["mean"]


def test_a_change_in_one_cell_is_found_there(cells: Any) -> None:
    p, truth = draw_world(1500, 50)
    labels = draw_labels(truth, 4, 51)
    where = cells.locate(p).cells
    cell = int(np.bincount(where).argmax())
    torn = np.flatnonzero(where == cell)
    labels[torn] = [2, 1, 1]

    found = hocal.Monitor(cells).update(p, labels).findings(least=20)
    in_cells = {each.cell for each in found if each.kind == "disagreement"} - {None}

    assert in_cells == {cell}
    assert all(each.where == cells.partition_.describe(cell, "012") for each in found if each.cell)


def test_a_change_is_dated(cells: Any) -> None:
    monitor = hocal.Monitor(cells).update(*stream(300, 60))
    assert not monitor.alarm

    monitor.update(*stream(200, 70, blur=0.9))

    assert monitor.alarmed_at is not None
    assert 300 < monitor.alarmed_at < 450
    assert monitor.since == pytest.approx(301, abs=40)


def test_an_alarm_stays(cells: Any) -> None:
    monitor = hocal.Monitor(cells).update(*stream(200, 80, blur=0.9))
    at = monitor.alarmed_at

    monitor.update(*stream(300, 90))

    assert monitor.alarm
    assert monitor.alarmed_at == at


def test_in_parts_and_at_once_is_the_same(calibrator: Any) -> None:
    p, labels = stream(300, 100, blur=0.5)
    whole = hocal.Monitor(calibrator).update(p, labels)
    parts = hocal.Monitor(calibrator)

    for start, stop in ((0, 1), (1, 7), (7, 130), (130, 300)):
        parts.update(p[start:stop], labels[start:stop])

    # predictions of items are computed in single precision, block by block
    for one, other in zip(whole.history, parts.history, strict=True):
        np.testing.assert_allclose(np.log(one), np.log(other), atol=1e-4)
    assert (whole.alarmed_at, whole.since) == (parts.alarmed_at, parts.since)


def test_one_by_one_is_the_same(cells: Any) -> None:
    p, labels = stream(60, 110, blur=0.8)
    whole = hocal.Monitor(cells).update(p, labels)
    single = hocal.Monitor(cells)

    for item in range(60):
        single.update(p[item : item + 1], labels[item : item + 1])

    for one, other in zip(whole.history, single.history, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert alike(whole.findings(), single.findings())


def test_items_with_one_label_count_for_the_mean_only(cells: Any) -> None:
    p, truth = draw_world(200, 120)

    monitor = hocal.Monitor(cells).update(p, draw_labels(truth, 1, 121))
    seen = {(each.kind, each.cell): each.n_items for each in monitor.findings(least=0)}

    assert seen["mean", None] == 200
    assert ("disagreement", None) not in seen


def test_numbers_of_labels_may_differ_from_those_of_the_calibration(cells: Any) -> None:
    p, truth = draw_world(600, 130)
    totals = np.random.default_rng(131).integers(1, 9, 600)
    labels = np.random.default_rng(132).multinomial(totals, truth)

    assert not hocal.Monitor(cells).update(p, labels).alarm


def test_pooled_evidence_is_the_average_of_all_rows_by_their_weights(cells: Any) -> None:
    monitor = hocal.Monitor(cells).update(*stream(200, 140, blur=0.3))
    watched = Watched(3, cells.statistics_.n_cells)
    weights = np.exp(watched.log_weights(cells.reference_.means.n_values))
    evidence = np.exp(monitor._state.log_evidence).mean(axis=1)
    kinds = [watched.of_kind(kind) for kind in ("disagreement", "mean")]

    assert [weights[kind].sum() for kind in kinds] == pytest.approx([1, 1])
    pooled = np.mean([weights[kind] @ evidence[kind] for kind in kinds])
    assert monitor.evidence == pytest.approx(pooled)


def test_sparse_counts_give_the_same_evidence(cells: Any) -> None:
    from scipy import sparse

    p, labels = stream(50, 150)
    dense = hocal.Monitor(cells).update(p, labels)
    packed = hocal.Monitor(cells).update(p, sparse.csr_array(labels))

    np.testing.assert_array_equal(dense.history.pooled, packed.history.pooled)


def test_features_and_cells_are_passed_on() -> None:
    p, truth = draw_world(200, 160)
    features = np.random.default_rng(0).normal(size=(200, 2))
    fitted = hocal.SnapshotCalibrator().fit(p, draw_labels(truth, 3, 1), features=features)
    own = hocal.SnapshotCalibrator(hocal.PrecomputedPartition(2), method="cells")
    own.fit(p, draw_labels(truth, 3, 1), cells=np.arange(200) % 2)

    assert hocal.Monitor(fitted).update(p, truth.round() + 1, features=features).n_items == 200
    assert hocal.Monitor(own).update(p, truth.round() + 1, cells=np.arange(200) % 2).n_items == 200
    with pytest.raises(hocal.InputError, match="`features` must have 2 columns"):
        hocal.Monitor(fitted).update(p, truth.round() + 1)


def test_an_item_without_labels_is_refused(cells: Any) -> None:
    monitor = hocal.Monitor(cells)
    with pytest.raises(hocal.InputError, match=r"`counts` must .* row 1"):
        monitor.update([[0.2, 0.3, 0.5]] * 2, [[1, 0, 0], [0, 0, 0]])
    assert monitor.n_items == 0


def test_only_fitted_calibrators_are_watched() -> None:
    with pytest.raises(hocal.InputError, match="`calibrator` must be a fitted SnapshotCalibrator"):
        hocal.Monitor("model")  # type: ignore[arg-type]


def test_findings_can_be_a_dataframe(cells: Any) -> None:
    monitor = hocal.Monitor(cells).update(*stream(200, 20, blur=0.8))
    frame = monitor.to_frame(classes=["ant", "bee", "cat"])

    assert frame["kind"][0] == "disagreement"
    assert set(frame["label"].dropna()) <= {"ant", "bee", "cat", "top class"}
    with pytest.raises(hocal.InputError, match="`classes` must be a list of 3 names, got 2"):
        monitor.findings(classes=["a", "b"])


def test_a_notebook_shows_the_findings(cells: Any) -> None:
    monitor = hocal.Monitor(cells).update(*stream(200, 20, blur=0.8))

    assert "disagreement" in monitor._repr_html_()
    assert f"alarm at item {monitor.alarmed_at}" in repr(monitor)


def test_a_saved_monitor_goes_on_as_if_nothing_had_happened(cells: Any, tmp_path: Path) -> None:
    p, labels = stream(300, 170, blur=0.4)
    whole = hocal.Monitor(cells, confidence=0.9).update(p, labels)

    hocal.Monitor(cells, confidence=0.9).update(p[:111], labels[:111]).save(tmp_path / "state")
    resumed = hocal.Monitor.load(tmp_path / "state", cells).update(p[111:], labels[111:])

    np.testing.assert_allclose(resumed.history.pooled, whole.history.pooled)
    assert resumed.confidence == 0.9
    assert alike(resumed.findings(), whole.findings())


def test_a_monitor_that_has_seen_nothing_can_be_saved(cells: Any, tmp_path: Path) -> None:
    hocal.Monitor(cells).save(tmp_path / "state")

    assert hocal.Monitor.load(tmp_path / "state", cells).n_items == 0


def test_the_state_of_another_model_is_refused(cells: Any, tmp_path: Path) -> None:
    p, truth = draw_world(200, 7)
    other = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), method="cells")
    other.fit(p, draw_labels(truth, 4, 1))
    hocal.Monitor(other).save(tmp_path / "state")

    with pytest.raises(hocal.InputError, match="state of a monitor of this model"):
        hocal.Monitor.load(tmp_path / "state", cells)


@pytest.mark.parametrize("damage", ["torn", "changed", "calibrator", "text"])
def test_a_damaged_state_is_refused(cells: Any, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "state"
    hocal.Monitor(cells).update(*stream(20, 180)).save(path)
    content = path.read_bytes()
    if damage == "calibrator":
        hocal.save(cells, path)
    else:
        changed = content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
        forms = {"torn": content[:-9], "changed": changed, "text": b"no state"}
        path.write_bytes(forms[damage])

    with pytest.raises(hocal.InputError, match="`path` must name"):
        hocal.Monitor.load(path, cells)


def test_a_forged_state_is_refused(cells: Any, tmp_path: Path) -> None:
    """Its checksum is right, but no monitor can have seen such rows."""
    from hocal.decisions import monitor_state

    monitor = hocal.Monitor(cells).update(*stream(20, 180))
    forged = monitor_state.MonitorState.start(1000)._replace(path=monitor._state.path)
    forged.wealth.put(np.array([999]), monitor._state.wealth.take(np.array([0])))
    means = cells.reference_.means
    monitor_state.write_state(tmp_path / "state", forged, means, 0.95)

    with pytest.raises(hocal.InputError, match="must hold what a monitor has seen"):
        hocal.Monitor.load(tmp_path / "state", cells)


def test_a_missing_state_is_said_to_be(cells: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No monitor at"):
        hocal.Monitor.load(tmp_path / "none", cells)
