"""Data sets with named annotators are what their sources say, and damaged copies are refused."""

import gzip
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import hocal
from hocal import datasets
from hocal.datasets.judges import JUDGED_TASKS
from hocal.datasets.lewidi import EDITION, LEWIDI_CLASSES, SPLITS

needs_data = pytest.mark.skipif(
    "HOCAL_DATA" not in os.environ, reason="HOCAL_DATA does not name the data directory"
)


# the table holds all five tasks: read once for each
load_task = cache(datasets.load_judges)


def disagreement(counts: np.ndarray) -> float:
    """Share of the pairs of labels of the same item that differ, averaged over items."""
    totals = counts.sum(axis=1)
    return float(np.mean(1 - (counts * (counts - 1)).sum(axis=1) / (totals * (totals - 1))))


@needs_data
def test_people_disagree_more_about_noisier_images() -> None:
    images = datasets.load_imagenet16h([])
    found = [disagreement(images.counts[images.noise == level]) for level in (80, 95, 110, 125)]

    assert found == pytest.approx([0.147, 0.194, 0.304, 0.491], abs=5e-4)
    assert images.probabilities is None


@needs_data
def test_the_same_images_come_at_four_levels_of_noise() -> None:
    images = datasets.load_imagenet16h(["vgg19"])
    parts = [name.rsplit("@", 1) for name in images.items]

    assert [int(level) for _, level in parts] == images.noise.tolist()
    assert len({image for image, _ in parts}) == 1200
    assert set(images.counts.sum(axis=1)) == {6, 7}


@needs_data
def test_softmax_of_the_networks_sums_to_one() -> None:
    probabilities = datasets.load_imagenet16h(["vgg19", "googlenet"]).probabilities

    assert probabilities is not None
    assert probabilities.shape == (4800, 2, 16)
    np.testing.assert_allclose(probabilities.sum(axis=2), 1, atol=1e-5)


@needs_data
def test_counting_the_table_gives_the_counts() -> None:
    images = datasets.load_imagenet16h()

    labels = hocal.count_labels(
        images.to_frame(),
        item="item",
        label="label",
        annotator="annotator",
        classes=images.classes,
        duplicates="keep",
    )

    order = np.argsort(images.items)
    assert list(labels.items) == images.items[order].tolist()
    np.testing.assert_array_equal(labels.counts, images.counts[order])


@needs_data
@pytest.mark.parametrize(
    ("name", "n_items", "labels", "models"),
    [
        ("summeval", 6400, {3}, 6),
        ("framing", 2552, {3}, 6),
        ("cebab_aspects", 1008, {4}, 6),
        ("lesion", 500, {3, 4, 5, 6}, 4),
        ("mtbench", 120, {2, 3}, 6),
    ],
)
def test_judged_tasks_have_the_known_sizes(
    name: str, n_items: int, labels: set[int], models: int
) -> None:
    task = load_task(name)

    assert len(task) == len(task.items) == n_items
    assert set(task.counts.sum(axis=1)) <= labels
    assert len(task.models) == models


@needs_data
@pytest.mark.parametrize("name", JUDGED_TASKS)
def test_every_language_model_gives_every_item_one_vote(name: str) -> None:
    votes = load_task(name).probabilities

    assert votes is not None
    assert set(votes.sum(axis=2).ravel()) == {1}


@needs_data
def test_people_say_five_in_55_percent_of_the_summaries_and_models_seldom() -> None:
    task = load_task("summeval")

    assert task.probabilities is not None
    assert task.counts[:, 4].sum() / task.counts.sum() == pytest.approx(0.55, abs=0.01)
    assert task.probabilities[:, :, 4].mean() < 0.25


@needs_data
@pytest.mark.parametrize("name", LEWIDI_CLASSES)
def test_every_split_of_lewidi_has_at_least_two_labels_per_item(name: str) -> None:
    splits = [datasets.load_lewidi(name, split) for split in SPLITS[EDITION[name]]]

    assert min(split.counts.sum(axis=1).min() for split in splits) >= 2
    assert all(split.classes == LEWIDI_CLASSES[name] for split in splits)


@needs_data
def test_nobody_uses_class_0_of_csc_though_it_is_predicted() -> None:
    task = datasets.load_lewidi("CSC")

    assert task.probabilities is not None
    assert task.counts[:, 0].sum() == 0
    assert task.probabilities[:, 0, 0].min() > 0


@needs_data
def test_only_test_items_of_2025_have_predictions() -> None:
    assert datasets.load_lewidi("MP", "dev").probabilities is None
    assert datasets.load_lewidi("ArMIS", "test").models == ()


@needs_data
def test_features_belong_to_the_counts_of_the_same_row() -> None:
    known, people = datasets.load_cifar10_features(), datasets.load_cifar10h().counts

    assert known.features.shape == (10_000, 64)
    accuracy = np.mean(known.probabilities.argmax(axis=1) == people.argmax(axis=1))
    assert accuracy == pytest.approx(0.892, abs=0.005)


def test_unknown_names_are_refused_before_any_file_is_looked_for() -> None:
    with pytest.raises(ValueError, match=r"`models` must be one of 'googlenet', .*, got 'alexnet'"):
        datasets.load_imagenet16h(["alexnet"])
    with pytest.raises(ValueError, match=r"`name` must be one of 'summeval', .*, got 'toast'"):
        datasets.load_judges("toast")
    with pytest.raises(ValueError, match=r"`name` must be one of 'MP', .*, got 'toast'"):
        datasets.load_lewidi("toast")
    with pytest.raises(ValueError, match="`split` must be one of 'dev', 'test', got 'train'"):
        datasets.load_lewidi("MP", "train")


@pytest.mark.parametrize("name", ["imagenet16h", "judges", "lewidi", "cifar10_features"])
def test_an_absent_file_says_how_to_make_it(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot be downloaded\. .* Put it at"):
        getattr(datasets, f"load_{name}")(data_home=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dataset,kind\nsummeval,human\n", "must have a column 'annotator', got 'dataset', 'kind'"),
        ("dataset,kind\nsummeval\n", "must be a whole CSV file packed with gzip"),
    ],
    ids=["column", "ragged"],
)
def test_a_table_of_another_shape_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "alttest.csv.gz").write_bytes(gzip.compress(text.encode()))

    with pytest.raises(hocal.InputError, match=message):
        datasets.load_judges(data_home=tmp_path)


@pytest.mark.parametrize("keep", [0, 30])
def test_a_torn_table_is_refused(tmp_path: Path, keep: int) -> None:
    (tmp_path / "judges").mkdir()
    packed = gzip.compress(b"dataset,kind,annotator,item,label\nsummeval,human,a,b,c\n")
    (tmp_path / "judges" / "alttest.csv.gz").write_bytes(packed[:keep])

    with pytest.raises(hocal.InputError, match="must be a whole CSV file packed with gzip"):
        datasets.load_judges(data_home=tmp_path)


def test_a_label_that_is_no_class_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lewidi").mkdir()
    rows = "dataset,split,item,annotator,label\nArMIS,dev,1,a,0\nArMIS,dev,1,b,7\n"
    (tmp_path / "lewidi" / "lewidi2023-labels.csv.gz").write_bytes(gzip.compress(rows.encode()))

    with pytest.raises(hocal.InputError, match="known names in the column 'label', got '7'"):
        datasets.load_lewidi("ArMIS", "dev", data_home=tmp_path)


def test_a_judgement_of_an_item_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "imagenet16h").mkdir()
    arrays = {
        "items": np.zeros(4800, str),
        "classes": np.zeros(16, str),
        "noise": np.zeros(4800, int),
        "label_item": np.array([0, 4800]),
        "label_annotator": np.zeros(2, int),
        "label_class": np.zeros(2, int),
    }
    np.savez(tmp_path / "imagenet16h" / "imagenet16h.npz", allow_pickle=True, **arrays)

    with pytest.raises(
        hocal.InputError, match="`label_item` with numbers from 0 to 4799, got 4800"
    ):
        datasets.load_imagenet16h([], data_home=tmp_path)
