"""Pictures and texts that travel inside the page."""

import base64
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import hocal
from hocal.report import summarise
from hocal.report.media import Images
from hocal.report.schema import Card
from report.example import Example


def cards(example: Example, **media: Any) -> list[Card]:
    summary = summarise(
        example.calibrator, example.probabilities, planning=False, n_listed=0, n_gallery=2, **media
    )
    return [card for gallery in summary["galleries"] for card in gallery["cards"]]


def picture(card: Card) -> Image.Image:
    assert card["image"] is not None
    return Image.open(
        io.BytesIO(base64.b64decode(card["image"]["source"].removeprefix("data:image/png;base64,")))
    )


def as_bytes(pixels: np.ndarray, form: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form, **options)
    return file.getvalue()


def test_small_arrays_are_kept_pixel_by_pixel(example: Example) -> None:
    card = cards(example, images=example.images)[0]

    assert card["image"] is not None
    assert card["image"]["pixelated"]
    assert np.array_equal(np.asarray(picture(card)), example.images[card["item"]["row"]])


@pytest.mark.parametrize("channels", [3, 4])
def test_colours_are_kept(example: Example, channels: int) -> None:
    images = np.arange(400 * 4 * channels, dtype=np.uint8).reshape(400, 2, 2, channels)
    card = cards(example, images=images)[0]

    assert np.array_equal(np.asarray(picture(card)), images[card["item"]["row"]])


def test_large_pictures_are_scaled_down_in_proportion(example: Example) -> None:
    card = cards(example, images=np.zeros((400, 300, 150), dtype=np.uint8))[0]

    assert card["image"] is not None
    assert (card["image"]["width"], card["image"]["height"]) == (64, 128)
    assert not card["image"]["pixelated"]


def test_pictures_come_from_bytes_paths_arrays_or_nowhere(example: Example, tmp_path: Path) -> None:
    pixels = np.full((4, 4, 3), 7, dtype=np.uint8)
    path = tmp_path / "one.png"
    path.write_bytes(as_bytes(pixels))
    kinds: list[Any] = [as_bytes(pixels), path, str(path), pixels]
    for kind in kinds:
        assert np.array_equal(np.asarray(picture(cards(example, images=[kind] * 400)[0])), pixels)

    assert cards(example, images=[None] * 400)[0]["image"] is None


def test_a_photograph_stands_upright(example: Example) -> None:
    lying = Image.Exif()
    lying[0x0112] = 6  # turn by a quarter
    card = cards(
        example, images=[as_bytes(np.zeros((20, 40, 3), dtype=np.uint8), "JPEG", exif=lying)] * 400
    )[0]

    assert picture(card).size == (20, 40)


def test_transparent_pixels_stay_transparent(example: Example) -> None:
    pixels = np.zeros((4, 4, 4), dtype=np.uint8)
    card = cards(example, images=[as_bytes(pixels)] * 400)[0]

    assert picture(card).mode == "RGBA"


def test_long_texts_are_cut_and_say_so(example: Example) -> None:
    text = cards(example, texts=["x" * 1000] * 400)[0]["text"]

    assert text == {"text": "x" * 600, "n_cut": 400}


def test_a_series_is_read_by_position(example: Example) -> None:
    series = pd.Series([f"text {row}" for row in range(400)], index=range(1000, 1400))
    card = cards(example, texts=series, items=series)[0]

    assert card["text"] is not None
    assert card["text"]["text"] == f"text {card['item']['row']}" == card["item"]["item"]


def test_an_item_without_text_has_none(example: Example) -> None:
    assert cards(example, texts=[None] * 400)[0]["text"] is None


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (
            np.zeros((400, 8, 8)),
            r"`images` must be uint8 arrays .* got float64 of shape \(8, 8\). Scale the values",
        ),
        (
            np.zeros((400, 8, 8, 2), dtype=np.uint8),
            r"`images` must be uint8 arrays .* got uint8 of shape \(8, 8, 2\)",
        ),
        (
            np.zeros((3, 8, 8), dtype=np.uint8),
            "`images` must be a sequence with an entry for each of 400 items, got 3",
        ),
        ([b"nonsense"] * 400, r"`images\[\d+\]` must be a readable picture .*, got 8 bytes"),
        (
            ["missing.png"] * 400,
            r"`images\[\d+\]` must be a readable picture .*, got 'missing.png': .*No such file",
        ),
        ([3] * 400, r"`images\[\d+\]` must be a path, bytes or an array, got int"),
        ([np.zeros(3)] * 400, r"`images\[\d+\]` must be uint8 arrays"),
    ],
    ids=["floats", "two-channels", "too-few", "no-picture", "no-file", "number", "vector"],
)
def test_bad_pictures_are_refused(example: Example, images: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cards(example, images=images)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_the_formats_that_people_use_are_opened(example: Example, form: str) -> None:
    content = as_bytes(np.full((4, 4, 3), 7, dtype=np.uint8), form)

    assert picture(cards(example, images=[content] * 400)[0]).size == (4, 4)


@pytest.mark.parametrize("form", ["EPS", "PDF", "PPM", "ICO", "TGA", "PCX"])
def test_any_other_format_is_refused(example: Example, form: str) -> None:
    """EPS most of all: its content is a program that another program would run."""
    content = as_bytes(np.full((4, 4, 3), 7, dtype=np.uint8), form)

    with pytest.raises(ValueError, match=r"readable picture \(PNG, .*: it is none of PNG, JPEG"):
        cards(example, images=[content] * 400)


def test_an_eps_picture_starts_no_program(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    monkeypatch.setattr("subprocess.Popen", lambda *command, **_: started.append(command))
    content = as_bytes(np.full((4, 4, 3), 7, dtype=np.uint8), "EPS")
    with pytest.raises(ValueError, match="it is none of PNG"):
        cards(example, images=[content] * 400)

    assert started == []


def test_a_picture_that_would_fill_the_memory_is_refused(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocal._base.pictures.MAX_PIXELS", 48)

    with pytest.raises(
        ValueError, match=r"`images\[\d+\]` must be a readable picture .* 64 pixels, more than 48"
    ):
        cards(example, images=[as_bytes(np.zeros((8, 8), dtype=np.uint8))] * 400)


def test_a_pipe_is_no_picture(example: Example, tmp_path: Path) -> None:
    """Opening it would wait for ever."""
    os.mkfifo(tmp_path / "pipe.png")

    with pytest.raises(ValueError, match="it is not a file"):
        cards(example, images=[tmp_path / "pipe.png"] * 400)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_a_broken_picture_is_refused_or_shown(form: str) -> None:
    """Whatever a decoder meets in a damaged file, nothing but an InputError leaves."""
    generator = np.random.default_rng(5)
    whole = as_bytes(generator.integers(0, 256, (16, 16, 3), dtype=np.uint8), form)
    images = Images([damaged(whole, generator) for _ in range(100)], 100)
    for row in range(100):
        with suppress(hocal.InputError):
            images(row)


def damaged(content: bytes, generator: np.random.Generator) -> bytes:
    """Change some bytes, and cut the rest off now and then."""
    array = np.frombuffer(content, dtype=np.uint8).copy()
    places = generator.integers(0, len(array), generator.integers(1, 9))
    array[places] = generator.integers(0, 256, len(places))
    end = len(array) if generator.random() < 0.7 else generator.integers(0, len(array))
    return array[:end].tobytes()


def test_pictures_without_pillow_name_the_extra(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)

    with pytest.raises(ImportError, match=r'need Pillow: pip install "hocal\[app\]"'):
        cards(example, images=example.images)
