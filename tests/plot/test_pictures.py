"""The pictures of the README."""

from pathlib import Path

import pytest

IMAGES = sorted((Path(__file__).parents[2] / "docs" / "images").glob("*.png"))


def test_there_are_pictures() -> None:
    assert {path.stem for path in IMAGES} >= {"reliability", "uncertainty"}


@pytest.mark.parametrize("path", IMAGES, ids=[path.stem for path in IMAGES])
def test_a_picture_is_small_enough_to_load_with_the_page(path: Path) -> None:
    assert 10_000 < path.stat().st_size < 300_000
