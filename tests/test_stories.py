"""Four stories on real labels: the commands run, the pages are sound, and their claims hold."""

import importlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hocal.cli import main
from report.browser import CHROMIUM, browse

EXAMPLES = Path(__file__).parents[1] / "examples"
# items of each story: enough to tell an order, few enough for a minute in all
SIZES = {"crowd": 300, "images": 1000, "faces": 1000, "judges": 1200}

pytestmark = pytest.mark.skipif(
    "HOCAL_DATA" not in os.environ, reason="the stories are about real data: set HOCAL_DATA"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None:
        yield None
        return
    with browse(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_a_story_ends_well(
    name: str, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items that people disagree about come first, no later than logistic regression has them.

    To within two standard errors of the difference. In every screen the page fits, has no barrier
    and asks for nothing.
    """
    monkeypatch.syspath_prepend(str(EXAMPLES))
    stories = importlib.import_module("four_stories")

    def run(command: str, folder: Path) -> None:
        """Run a command here, where its imports are paid for already."""
        monkeypatch.chdir(folder)
        with pytest.raises(SystemExit) as finished:
            main(shlex.split(command)[1:])
        assert finished.value.code in (0, None), command

    story = stories.STORIES[name](tmp_path, SIZES[name])
    outcome = stories.play(story, tmp_path, run, browser)

    assert outcome.complaints == []
    assert outcome.ours >= outcome.theirs - 2 * outcome.error
    assert outcome.first > outcome.mean


def test_a_page_that_asks_for_something_is_complained_about(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if browser is None:
        pytest.skip("no Chromium on this machine")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    stories = importlib.import_module("four_stories")
    page = tmp_path / "page.html"
    page.write_text('<p><img src="http://127.0.0.1:9/x.png">', encoding="utf-8")

    complaints = "\n".join(stories.look(page, browser))

    assert "390 pixels, dark: http://127.0.0.1:9/x.png" in complaints
    assert "alternative text" in complaints
