"""Real data sets are what their makers and papers say they are."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hocal import datasets
from hocal.datasets.real import CHAOSNLI_MODELS, CIFAR10_MODELS
from hocal.uncertainty.entropy import get_entropy

needs_data = pytest.mark.skipif(
    "HOCAL_DATA" not in os.environ, reason="HOCAL_DATA does not name the data directory"
)


def mean_entropy(counts: np.ndarray) -> float:
    """Mean Shannon entropy of the label distributions, in nats."""
    return float(get_entropy("shannon").value(counts / counts.sum(axis=1, keepdims=True)).mean())


LOADERS = {
    "cifar10h": datasets.load_cifar10h,
    "cifar10_softmax": datasets.load_cifar10_softmax,
    "cifar10_images": datasets.load_cifar10_images,
    "ferplus": datasets.load_ferplus,
    "chaosnli": datasets.load_chaosnli,
    "crowd": datasets.load_crowd,
    "cifar10_features": datasets.load_cifar10_features,
    "imagenet16h": datasets.load_imagenet16h,
    "judges": datasets.load_judges,
    "lewidi": datasets.load_lewidi,
}


@needs_data
@pytest.mark.parametrize("name", LOADERS)
def test_a_result_says_where_it_comes_from_and_on_which_terms(name: str) -> None:
    source = LOADERS[name]().source

    assert source.name == name
    assert source.url.startswith("https://")
    assert source.licence
    assert source.citation


@needs_data
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cifar10h", "LabelledItems(10000 items, 10 classes, 511000 labels)"),
        ("cifar10_softmax", "Predictions(resnet18, 10000 items, 10 classes)"),
        ("cifar10_images", "JPEGImages(10000 items, 10 classes)"),
        ("ferplus", "FERPlus(3574 items, 10 classes, 35740 labels)"),
        ("chaosnli", "ChaosNLI(1514 items, 3 classes, 151400 labels)"),
        ("crowd", "CrowdLabels(6030 judgements, 300 items, 110 workers, 5 classes)"),
        ("cifar10_features", "Features(residual network, 10000 items, 10 classes)"),
        (
            "imagenet16h",
            "ImageNet16H(4800 items, 16 classes, 28997 labels, 145 people, 3 models)",
        ),
        ("judges", "JudgedItems(6400 items, 5 classes, 19200 labels, 3 people, 6 models)"),
        ("lewidi", "JudgedItems(3756 items, 2 classes, 18693 labels, 506 people, 1 model)"),
    ],
)
def test_a_result_prints_its_size(name: str, text: str) -> None:
    assert repr(LOADERS[name]()) == text


@needs_data
def test_cifar10h_has_47_to_63_labels_per_image_and_the_known_entropy() -> None:
    images = datasets.load_cifar10h()
    totals = images.counts.sum(axis=1)

    assert (totals.min(), totals.max()) == (47, 63)
    assert images.counts.dtype == np.int64
    assert mean_entropy(images.counts) == pytest.approx(0.154, abs=5e-4)


@needs_data
def test_resnet18_agrees_with_the_majority_for_nearly_92_percent() -> None:
    predictions, people = datasets.load_cifar10_softmax("resnet18"), datasets.load_cifar10h().counts

    assert predictions.probabilities.dtype == np.float64
    assert np.mean(
        predictions.probabilities.argmax(axis=1) == people.argmax(axis=1)
    ) == pytest.approx(0.917, abs=5e-4)


@needs_data
def test_every_network_is_as_accurate_as_known() -> None:
    people = datasets.load_cifar10h().counts.argmax(axis=1)
    models = CIFAR10_MODELS
    accuracies = [
        np.mean(datasets.load_cifar10_softmax(m).probabilities.argmax(axis=1) == people)
        for m in models
    ]

    assert len(models) == 14
    assert (min(accuracies), max(accuracies)) == pytest.approx((0.885, 0.935), abs=1e-3)


def test_an_unknown_network_is_refused_before_any_file_is_looked_for() -> None:
    with pytest.raises(
        ValueError, match=r"`model` must be one of 'densenet121', .*, got 'alexnet'"
    ):
        datasets.load_cifar10_softmax("alexnet")
    with pytest.raises(
        ValueError, match=r"`model` must be one of 'roberta-base_0', .*, got 'alexnet'"
    ):
        datasets.load_chaosnli("alexnet")


@needs_data
def test_images_belong_to_the_counts_of_the_same_row() -> None:
    images, people = datasets.load_cifar10_images("test"), datasets.load_cifar10h()

    assert images.classes == people.classes
    assert np.mean(images.labels == people.counts.argmax(axis=1)) == pytest.approx(0.992, abs=5e-4)


@needs_data
def test_an_image_decodes_to_its_pixels_when_asked_for() -> None:
    images = datasets.load_cifar10_images("test")

    assert images[0].shape == (32, 32, 3)
    assert images[0].dtype == np.uint8
    np.testing.assert_array_equal(images[-1], images[9999])
    with pytest.raises(IndexError, match="range"):
        images[10_000]


@needs_data
def test_decoding_without_pillow_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    images = datasets.load_cifar10_images("test")
    monkeypatch.setitem(sys.modules, "PIL", None)

    with pytest.raises(ImportError, match="pip install pillow"):
        images[0]


@needs_data
@pytest.mark.parametrize(
    ("split", "n_items"), [("train", 28_561), ("valid", 3_579), ("test", 3_574)]
)
def test_ferplus_splits_have_the_known_sizes(split: str, n_items: int) -> None:
    faces = datasets.load_ferplus(split)

    assert len(faces) == len(faces.names) == len(faces.rows) == n_items
    assert faces.images is None
    assert all(faces.names)


@needs_data
def test_ferplus_has_ten_votes_per_image_but_for_one_and_the_known_entropy() -> None:
    """The 173 rows without an image are unanimous: with them the mean falls from .628 to .625."""
    splits = [datasets.load_ferplus(split) for split in ("train", "valid", "test")]
    counts = np.concatenate([split.counts for split in splits])
    rows = np.concatenate([split.rows for split in splits])

    assert rows[counts.sum(axis=1) != 10].tolist() == [10435]
    assert mean_entropy(splits[2].counts) == pytest.approx(0.633, abs=5e-4)
    assert mean_entropy(counts) * len(counts) / 35_887 == pytest.approx(0.625, abs=5e-4)


@needs_data
@pytest.mark.parametrize(("split", "repeated"), [("train", 3), ("valid", 0), ("test", 1)])
def test_four_names_of_ferplus_occur_twice(split: str, repeated: int) -> None:
    names = datasets.load_ferplus(split).names

    assert len(names) - len(set(names)) == repeated


@needs_data
@pytest.mark.parametrize("split", ["test", "train"])
def test_ferplus_images_come_with_the_votes_of_their_own_file(split: str) -> None:
    faces = datasets.load_ferplus(split, images=True)
    folder = Path(os.environ["HOCAL_DATA"]) / "ferplus"
    parts = ["train-a", "train-b"] if split == "train" else [split]
    votes = [np.load(folder / f"ferplus-{part}.npz")["votes"] for part in parts]

    assert faces.images is not None
    assert faces.images.shape == (len(faces), 48, 48)
    np.testing.assert_array_equal(faces.counts, np.concatenate(votes))


@needs_data
def test_ferplus_images_of_other_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ferplus").mkdir()
    votes = "ferplus/fer2013new.csv"
    (tmp_path / votes).write_bytes((Path(os.environ["HOCAL_DATA"]) / votes).read_bytes())
    np.savez(
        tmp_path / "ferplus" / "ferplus-test.npz",
        images=np.zeros((2, 48, 48), np.uint8),
        row=[0, 1],
    )

    with pytest.raises(
        ValueError,
        match=r"`row` of .*ferplus-test\.npz must be the rows .* 3574 rows, 32298 to 35886",
    ):
        datasets.load_ferplus("test", images=True, data_home=tmp_path)


@needs_data
def test_chaosnli_has_100_labels_per_pair_and_the_known_entropy() -> None:
    pairs = datasets.load_chaosnli()

    assert set(pairs.counts.sum(axis=1)) == {100}
    assert pairs.counts.dtype == np.int64
    assert mean_entropy(pairs.counts) == pytest.approx(0.553, abs=5e-4)
    assert len(set(pairs.items)) == 1514


@needs_data
@pytest.mark.parametrize("model", CHAOSNLI_MODELS)
def test_chaosnli_networks_are_as_accurate_as_known(model: str) -> None:
    pairs = datasets.load_chaosnli(model)
    accuracy = np.mean(pairs.probabilities.argmax(axis=1) == pairs.counts.argmax(axis=1))

    assert 0.72 <= accuracy <= 0.755
    np.testing.assert_allclose(pairs.probabilities.sum(axis=1), 1, rtol=1e-12)


@needs_data
@pytest.mark.parametrize(
    ("name", "rows", "items", "workers"), [("CF_amt", 6030, 300, 110), ("SP_amt", 10_000, 500, 143)]
)
def test_crowd_tables_have_the_known_sizes(name: str, rows: int, items: int, workers: int) -> None:
    crowd = datasets.load_crowd(name)

    assert (len(crowd), len(np.unique(crowd.item)), len(np.unique(crowd.worker))) == (
        rows,
        items,
        workers,
    )
    assert set(crowd.label) == set(crowd.gold) == set(range(len(crowd.classes)))
    assert crowd.seconds.min() == 1


@needs_data
def test_five_judgements_of_the_tweets_repeat_a_worker_and_an_item() -> None:
    crowd = datasets.load_crowd("CF_amt")

    assert len(crowd) - len(set(zip(crowd.worker, crowd.item, strict=True))) == 5


@needs_data
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_crowd_table_goes_to_any_dataframe_unchanged(backend: str) -> None:
    pytest.importorskip(backend)
    crowd = datasets.load_crowd("SP_amt")

    frame: Any = crowd.to_frame(backend)

    for name in ("worker", "item", "label", "gold", "seconds"):
        np.testing.assert_array_equal(np.asarray(frame[name]), getattr(crowd, name))


@pytest.mark.parametrize(
    ("load", "text"),
    [
        (
            lambda: datasets.load_ferplus("dev"),
            "`split` must be one of 'train', 'valid', 'test', got 'dev'",
        ),
        (
            lambda: datasets.load_cifar10_images("dev"),
            "`split` must be one of 'test', 'train', got 'dev'",
        ),
        (lambda: datasets.load_crowd("MS"), "`name` must be one of 'CF_amt', 'SP_amt', got 'MS'"),
    ],
    ids=["ferplus", "images", "crowd"],
)
def test_an_unknown_part_is_refused(load: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        load()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "chaosnli").mkdir()
    return tmp_path


def test_a_packed_file_without_an_array_is_refused(home: Path) -> None:
    np.savez(home / "chaosnli" / "chaosnli-snli.npz", uid=np.zeros(1514, str))

    with pytest.raises(
        ValueError, match=r"chaosnli-snli\.npz` must hold an array 'counts', got 'uid'\."
    ):
        datasets.load_chaosnli(data_home=home)


def test_a_packed_file_with_an_array_of_another_shape_is_refused(home: Path) -> None:
    arrays = {
        "uid": np.zeros(1514, str),
        "counts": np.ones((1514, 2)),
        "logits_roberta-base_0": np.ones((1514, 3)),
    }
    np.savez(home / "chaosnli" / "chaosnli-snli.npz", **arrays)  # type: ignore[arg-type]

    with pytest.raises(
        ValueError, match=r"must hold `counts` with shape \(1514, 3\), got \(1514, 2\)"
    ):
        datasets.load_chaosnli(data_home=home)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 half of a file", b"text"], ids=["empty", "torn", "text"]
)
def test_a_packed_file_that_is_not_whole_is_refused(home: Path, content: bytes) -> None:
    (home / "chaosnli" / "chaosnli-snli.npz").write_bytes(content)

    with pytest.raises(ValueError, match=r"chaosnli-snli\.npz` must be a whole \.npz file"):
        datasets.load_chaosnli(data_home=home)


def test_a_packed_file_of_python_objects_is_refused(home: Path) -> None:
    """Unpickling would run whatever code the file holds."""
    np.savez(home / "chaosnli" / "chaosnli-snli.npz", uid=np.array([{}], dtype=object))

    with pytest.raises(
        ValueError, match=r"chaosnli-snli\.npz` must be an \.npz file of plain arrays"
    ):
        datasets.load_chaosnli(data_home=home)
