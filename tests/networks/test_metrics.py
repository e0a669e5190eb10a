"""Metrics equal hocal's functions on all items, however these are cut into batches or processes."""

import json
import os
import pickle
import runpy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torchmetrics import MetricCollection

import hocal
import metric_worker
from hocal.torch import metrics
from hocal.torch.metrics import AleatoricError, CalibrationError, Resolution, SnapshotScore
from metric_worker import N_CELLS, N_ITEMS, feed, made_up_items, make_metrics, numbers_of

SPLITS = {
    "one batch": [slice(0, N_ITEMS)],
    "item by item": [slice(i, i + 1) for i in range(N_ITEMS)],
    "uneven": [slice(0, 1), slice(1, 47), slice(47, N_ITEMS)],
}
NAMES = ("score", "resolution", "aleatoric", "calibration")


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """Return what hocal's functions say about all items."""
    members, counts, cells = (tensor.numpy() for tensor in made_up_items())
    mixtures = hocal.Mixtures.from_ensemble(members)
    score = hocal.snapshot_score(mixtures, counts)
    explained = hocal.resolution(hocal.decompose(mixtures, "brier"), counts)
    parts = hocal.decompose(mixtures)
    error = hocal.calibration_error(mixtures, counts, cells=cells, n_resamples=10, random_state=0)
    return {
        "score": score.estimate,
        "resolution": explained.estimate,
        "aleatoric": hocal.aleatoric_error(parts, counts, cells=cells),
        "calibration": error.mean,
        "intervals": [score, explained],
        "per cell": hocal.aleatoric_error(parts, counts, cells=cells, average=None),
        "noise floor": error.noise_floor,
        "p-value": error.p_value,
    }


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return what each of two processes found, which meet over gloo on this machine."""
    folder = tmp_path_factory.mktemp("processes")
    script = str(metric_worker.__file__)
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, script, str(folder)], env=environment, check=True, timeout=120)
    return [json.loads((folder / f"{rank}.json").read_text("utf-8")) for rank in range(2)]


def assert_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        np.testing.assert_allclose(found[name], numbers, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("batches", SPLITS.values(), ids=SPLITS)
def test_batches_give_the_numbers_of_all_items(
    batches: list[slice], expected: dict[str, Any]
) -> None:
    measured = make_metrics()
    feed(measured, batches)

    assert_equal(numbers_of(measured), expected)


@pytest.mark.parametrize("rank", [0, 1])
def test_two_processes_give_the_numbers_of_all_items(
    rank: int, two_processes: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    assert_equal(two_processes[rank]["shared"], expected)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_without_items_takes_part(
    rank: int, two_processes: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    assert_equal(two_processes[rank]["alone"], expected)


def test_processes_keep_their_own_items_after_a_result(
    two_processes: list[dict[str, Any]],
) -> None:
    assert [found["items afterwards"] for found in two_processes] == [20 + 1, 40 + 1]


def test_mixtures_are_taken_as_well(expected: dict[str, Any]) -> None:
    members, counts, cells = made_up_items()
    mixtures = hocal.torch.as_mixtures(members, kind="members")
    metric = CalibrationError(n_resamples=10)

    metric.update(mixtures[:25], counts[:25], cells[:25])
    metric.update(mixtures[25:], counts[25:], cells[25:])

    assert metric.compute().item() == pytest.approx(expected["calibration"])


def test_mixtures_may_have_different_numbers_of_atoms() -> None:
    mixtures = hocal.Mixtures(
        [[0.5, 0.5], [1, 0], [0, 1]], [1, 0.5, 0.5], offsets=[0, 1, 3], index=[0, 1, 1]
    )
    counts = [[2, 1], [3, 0], [0, 3]]
    metric = CalibrationError(n_resamples=10)

    for item in range(3):
        metric.update(mixtures[[item]], counts[item : item + 1], [item % 2])

    error = hocal.calibration_error(
        mixtures, counts, cells=[0, 1, 0], n_resamples=10, random_state=0
    )
    np.testing.assert_allclose(metric.result().per_cell, error.per_cell)
    np.testing.assert_allclose(metric.result().null, error.null)


def test_every_cell_may_weigh_the_same() -> None:
    members, counts, cells = made_up_items()
    metric = AleatoricError(N_CELLS, entropy="brier", average="cells")
    metric.update(members, counts, cells)
    parts = hocal.decompose(hocal.Mixtures.from_ensemble(members.numpy()), "brier")

    expected = hocal.aleatoric_error(parts, counts.numpy(), cells=cells.numpy(), average="cells")

    assert metric.compute().item() == pytest.approx(expected)


def test_a_call_returns_the_number_of_its_batch_and_remembers_it() -> None:
    members, counts, _ = made_up_items()
    metric = SnapshotScore()

    first = metric(members[:30], counts[:30])
    metric(members[30:], counts[30:])

    mixtures = hocal.Mixtures.from_ensemble(members.numpy())
    assert first.item() == pytest.approx(
        hocal.snapshot_score(mixtures[:30], counts[:30].numpy()).estimate
    )
    assert metric.compute().item() == pytest.approx(
        hocal.snapshot_score(mixtures, counts.numpy()).estimate
    )


def test_a_collection_hands_cells_to_the_metrics_that_take_them(expected: dict[str, Any]) -> None:
    members, counts, cells = made_up_items()
    collection = MetricCollection(make_metrics())

    for place in SPLITS["uneven"]:
        collection.update(members[place], counts[place], cells=cells[place])

    found = {name: number.item() for name, number in collection.compute().items()}
    assert found == pytest.approx({name: expected[name] for name in NAMES})


@pytest.mark.parametrize("name", NAMES)
def test_a_pickled_metric_keeps_its_items(name: str) -> None:
    measured = make_metrics()
    feed(measured, [slice(0, 30)])

    copied = pickle.loads(pickle.dumps(measured[name]))

    assert copied.compute().item() == measured[name].compute().item()


@pytest.mark.parametrize("name", NAMES)
def test_a_reset_forgets_all_batches(name: str) -> None:
    used, fresh = make_metrics(), make_metrics()
    feed(used, [slice(0, 30)])
    used[name].reset()
    feed({name: used[name]}, [slice(30, N_ITEMS)])
    feed({name: fresh[name]}, [slice(30, N_ITEMS)])

    assert used[name].compute().item() == fresh[name].compute().item()


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_that_is_refused_changes_nothing(name: str) -> None:
    metric, untouched = make_metrics()[name], make_metrics()[name]
    members, counts, cells = made_up_items()
    feed({name: metric}, [slice(0, N_ITEMS)])
    feed({name: untouched}, [slice(0, N_ITEMS)])
    own = (cells,) if name in ("aleatoric", "calibration") else ()

    with pytest.raises(hocal.InputError, match="`counts` must be non-negative"):
        metric.update(members, counts - 5, *own)

    assert metric.compute().item() == untouched.compute().item()


def test_the_aleatoric_error_keeps_two_numbers_for_each_cell() -> None:
    measured = make_metrics()
    feed(measured, SPLITS["item by item"])

    assert measured["aleatoric"].gaps.shape == measured["aleatoric"].n_items.shape == (N_CELLS,)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_said_about_no_items(name: str) -> None:
    with pytest.raises(hocal.InputError, match="`counts` must have been given to `update`"):
        make_metrics()[name].result()


def test_gradients_are_left_behind() -> None:
    members, counts, _ = made_up_items()
    metric = SnapshotScore()

    metric.update(members.requires_grad_(), counts)

    assert not metric.compute().requires_grad


def test_counts_of_other_items_are_refused() -> None:
    members, counts, cells = made_up_items()

    with pytest.raises(hocal.InputError, match=r"`predictions` and `counts` .* 60 and 59"):
        CalibrationError().update(members, counts[1:], cells)


def test_logits_are_refused() -> None:
    _, counts, _ = made_up_items()

    with pytest.raises(hocal.InputError, match="`predictions` must be non-negative"):
        SnapshotScore().update(torch.log(made_up_items()[0]), counts)


def test_predictions_of_other_shapes_are_refused() -> None:
    with pytest.raises(hocal.InputError, match=r"`predictions` must be Mixtures .* shape \(4,\)"):
        SnapshotScore().update(torch.ones(4) / 4, torch.ones(1, 4))


def test_too_few_labels_for_a_resolution_are_refused() -> None:
    with pytest.raises(hocal.InputError, match="`counts` must have at least 4 labels"):
        Resolution().update(torch.tensor([[0.5, 0.5]]), torch.tensor([[2, 1]]))


def test_cells_beyond_their_number_are_refused() -> None:
    members, counts, cells = made_up_items()

    with pytest.raises(hocal.InputError, match="`cells`"):
        AleatoricError(1).update(members, counts, cells)


def test_batches_with_other_classes_are_refused() -> None:
    metric = CalibrationError()
    metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([[2, 1]]), [0])

    with pytest.raises(hocal.InputError, match="`predictions` must have the 2 classes of earlier"):
        metric.update(torch.ones(1, 4) / 4, torch.ones(1, 4), [0])


def test_without_torchmetrics_the_pip_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchmetrics", None)

    with pytest.raises(
        ImportError, match=r'torchmetrics\. Install it with: pip install "hocal\[tor'
    ):
        runpy.run_path(str(metrics.__file__))
