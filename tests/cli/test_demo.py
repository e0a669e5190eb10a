"""`hocal demo` prints its tables and writes its page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import Run
from hocal.cli.demonstration import Demonstration


def test_demo_prints_its_tables_and_writes_a_page(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Demonstration
) -> None:
    monkeypatch.setattr("hocal.cli.demonstration.demonstrate", lambda **_: shown)

    outcome = run("demo", "--output", str(tmp_path / "page.html"))

    assert outcome.code == 0
    for words in ("the paper's method", "hocal", "the truth", "95% interval"):
        assert words in outcome.out
    assert "Digits that are hard to read" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_demo_draws_the_two_digits_that_tell_the_difference(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Demonstration
) -> None:
    monkeypatch.setattr("hocal.cli.demonstration.demonstrate", lambda **_: shown)
    page = tmp_path / "page.html"
    outcome = run("demo", "--output", str(page))

    for digit in shown.digits:
        assert f"{digit.title}: item {digit.item} of the report" in outcome.out
        assert f"<h4>{digit.title}</h4>" in page.read_text(encoding="utf-8")
    assert outcome.out.count("██") + outcome.out.count("##") > 8


def test_demo_as_json_holds_the_numbers(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Demonstration
) -> None:
    monkeypatch.setattr("hocal.cli.demonstration.demonstrate", lambda **_: shown)

    result = run("demo", "--json", "--output", str(tmp_path / "page.html")).json

    assert result["estimates"] == [estimate._asdict() for estimate in shown.estimates]
    assert [digit["item"] for digit in result["digits"]] == [digit.item for digit in shown.digits]
    assert set(result["truth"]) == {"predictive", "aleatoric", "epistemic"}


def test_demo_shows_as_many_digits_of_the_seed_as_asked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Demonstration
) -> None:
    asked = []

    def record(*, n_items: int, random_state: int, progress: Callable[[str], Any]) -> Demonstration:
        asked.append((n_items, random_state))
        progress("drawing digits")
        return shown

    monkeypatch.setattr("hocal.cli.demonstration.demonstrate", record)

    run("demo", "--items", "200", "--random-state", "3", "--output", str(tmp_path / "page.html"))

    assert asked == [(200, 3)]


def test_demo_does_not_replace_a_page_unasked(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine", encoding="utf-8")
    outcome = run("demo", "--items", "300", "--output", str(page))

    assert outcome.code == 2
    assert "--force" in outcome.err
    assert page.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("page.pdf", "must end with .html, .md or .json"),
        ("absent/page.html", "must be in a folder that is there"),
    ],
    ids=["ending", "folder"],
)
def test_demo_refuses_an_output_before_the_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, message: str
) -> None:
    monkeypatch.setattr(
        "hocal.cli.demonstration.demonstrate", lambda **_: pytest.fail("the work was done")
    )
    outcome = run("demo", "--output", str(tmp_path / output))

    assert outcome.code == 2
    assert message in outcome.err
    assert str(tmp_path / output) in outcome.err
    assert list(tmp_path.iterdir()) == []
