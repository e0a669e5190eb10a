"""A summary, its page, and a browser to open it in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hocal.report import Report, Summary, summarise
from report.browser import CHROMIUM, Browser, browse
from report.example import CLASSES, IMAGE_ATTACK, SCRIPT_ATTACK, Example, make_example


@pytest.fixture(scope="session")
def example() -> Example:
    return make_example()


@pytest.fixture(scope="session")
def check() -> dict[str, Any]:
    """Return what an AnnotationCheck becomes, as far as a report looks at it."""
    finding = {
        "topic": "order",
        "severity": "warning",
        "message": "Bob copied <b>Ann</b>.",
        "action": "Hide labels.",
    }
    calm = {"topic": "labels", "severity": "ok", "message": "Two labels per item.", "action": ""}
    return {"n_judgements": 1600, "n_items": 400, "n_annotators": 30, "findings": [finding, calm]}


@pytest.fixture(scope="session")
def summary(example: Example, check: dict[str, Any]) -> Summary:
    calibrator, probabilities, counts, images = example
    items = [f"item {row}" for row in range(399)] + [IMAGE_ATTACK]
    texts = [f"{SCRIPT_ATTACK} and text {row}" for row in range(400)]
    return summarise(
        calibrator,
        probabilities,
        counts,
        classes=CLASSES,
        items=items,
        images=images,
        texts=texts,
        check=check,
        title=f"Title {IMAGE_ATTACK}",
        n_gallery=8,
    )


@pytest.fixture(scope="session")
def page(summary: Summary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Report(summary).save(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with browse(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(_chromium: Browser, page: Path) -> Browser:
    """Open the report on a desk screen in daylight."""
    _chromium.screen(1280)
    _chromium.open(page)
    return _chromium
