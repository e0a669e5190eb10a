"""One summary, three formats: what they escape, what they refuse, how they are written."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import hocal
from hocal.report import Report, Summary, summarise
from hocal.report.charts import draw_spread
from hocal.report.schema import Parts
from report.example import IMAGE_ATTACK, SCRIPT_ATTACK, Example


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.found.append((tag, dict(attrs)))


def test_json_is_the_summary(summary: Summary) -> None:
    assert json.loads(Report(summary).json()) == json.loads(json.dumps(summary))


def test_a_report_read_back_from_json_renders_the_same_page(summary: Summary) -> None:
    again = Report(json.loads(Report(summary).json()))

    assert again.html() == Report(summary).html()


def test_a_report_prints_in_one_line(summary: Summary) -> None:
    text = repr(Report(summary))

    assert text.startswith("Report('Title ")
    assert "\n" not in text


def test_names_stay_text_in_the_page(summary: Summary) -> None:
    tags = [tag for tag, _ in Elements(Report(summary).html()).found]

    assert tags.count("script") == 2  # the numbers and the code
    assert "&lt;img src=x onerror=alert(1)&gt;" in Report(summary).html()


def test_no_element_has_an_event_handler_or_a_style(summary: Summary) -> None:
    for tag, attributes in Elements(Report(summary).html()).found:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag


def test_the_page_names_no_address(summary: Summary) -> None:
    for _, attributes in Elements(Report(summary).html()).found:
        for name in ("src", "href", "action", "data", "poster"):
            assert str(attributes.get(name) or "#").startswith(("#", "data:"))


def test_the_policy_allows_nothing_remote(summary: Summary) -> None:
    metas = [
        attributes for tag, attributes in Elements(Report(summary).html()).found if tag == "meta"
    ]
    policy = next(
        str(meta["content"])
        for meta in metas
        if meta.get("http-equiv") == "Content-Security-Policy"
    )

    assert policy.startswith("default-src 'none'; img-src data:; ")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_numbers_inside_the_page_are_the_summary_without_pictures(summary: Summary) -> None:
    embedded = re.search(
        r'<script type="application/json" id="summary">(.*?)</script>',
        Report(summary).html(),
        re.DOTALL,
    )

    assert embedded is not None
    numbers = json.loads(embedded[1])
    assert numbers["cells"] == json.loads(json.dumps(summary["cells"]))
    assert {card["image"] for gallery in numbers["galleries"] for card in gallery["cards"]} == {
        None
    }


def test_markdown_shows_names_as_they_are(summary: Summary) -> None:
    text = Report(summary).markdown()

    assert "<" not in text
    assert text.startswith("# Title &lt;img src=x onerror=alert(1)\\>\n")


def test_a_line_break_in_a_name_stays_inside_its_row(example: Example) -> None:
    classes = ["a\n| b", "c", "d", "e"]
    text = Report(
        summarise(example.calibrator, example.probabilities, classes=classes, planning=False)
    ).markdown()

    widths = [
        len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")
    ]
    assert set(widths) == {5, 7}  # four columns of classes, six of cells


def test_page_and_markdown_give_the_same_advice(summary: Summary) -> None:
    report = Report(summary)

    assert "### People disagree: accept it, or ask a clearer question" in report.markdown()
    assert "<h3>People disagree: accept it, or ask a clearer question</h3>" in report.html()


def test_markdown_says_what_speaks_against_the_numbers(summary: Summary) -> None:
    text = Report(summary).markdown()

    assert "! **Labels do not look independent.**" in text
    assert "Bob copied &lt;b\\>Ann&lt;/b\\>. Hide labels." in text


def test_notebooks_show_markdown(summary: Summary) -> None:
    report = Report(summary)

    assert report._repr_markdown_() == report.markdown()


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("r.html", "<!DOCTYPE html>"), ("r.HTM", "<!DOCTYPE"), ("r.md", "# Title"), ("r.json", "{")],
)
def test_the_ending_chooses_the_format(
    summary: Summary, tmp_path: Path, name: str, beginning: str
) -> None:
    path = Report(summary).save(tmp_path / name)

    assert path.read_text(encoding="utf-8").startswith(beginning)


def test_an_unknown_ending_is_refused(summary: Summary, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"`path` must end with .html, .md or .json, got '.*report.pdf'"
    ):
        Report(summary).save(tmp_path / "report.pdf")


def test_an_existing_file_is_replaced_only_on_request(summary: Summary, tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_text("mine")

    with pytest.raises(
        FileExistsError, match=r"`path` must be new, got '.*report.md'. Pass overwrite=True"
    ):
        Report(summary).save(path)
    assert path.read_text() == "mine"
    assert Report(summary).save(path, overwrite=True).read_text(encoding="utf-8") != "mine"


def test_a_failed_write_leaves_the_old_file(
    summary: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.md"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        Report(summary).save(path, overwrite=True)

    assert [entry.name for entry in tmp_path.iterdir()] == ["report.md"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(("content", "got"), [({"format": "other/2"}, "'other/2'"), ([], "'list'")])
def test_something_else_than_a_summary_is_refused(content: object, got: str) -> None:
    with pytest.raises(
        ValueError,
        match=rf"`summary` must be of format 'hocal-report/1' or 'hocal-labels/1', got {got}",
    ):
        Report(content)  # type: ignore[arg-type]


def test_importing_reports_leaves_the_extra_alone() -> None:
    heavy = {"jinja2", "PIL", "matplotlib"}
    code = f"import sys, hocal.report; print(*({heavy} & sys.modules.keys()))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_a_page_without_jinja_names_the_extra(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)

    with pytest.raises(ImportError, match=r'needs jinja2: pip install "hocal\[app\]"'):
        Report(summary).html()


def test_a_page_of_ten_thousand_items_with_pictures_of_noise_stays_below_five_megabytes() -> None:
    """Noise is the worst that PNG can meet."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.3] * 10, 10_000)
    counts = rng.multinomial(3, p)
    calibrator = hocal.SnapshotCalibrator().fit(p[:500], counts[:500])
    noise = rng.integers(0, 256, (1, 200, 200, 3), dtype=np.uint8)
    images = np.broadcast_to(noise, (10_000, 200, 200, 3))

    summary = summarise(
        calibrator, p, images=images, texts=["word " * 1000] * 10_000, planning=False
    )

    assert len(Report(summary).html().encode()) < 5_000_000


def test_a_page_without_labels_media_and_plans_is_complete(example: Example) -> None:
    summary = summarise(
        example.calibrator, example.probabilities, planning=False, n_gallery=0, n_listed=0
    )
    text = Report(summary).html()

    assert "Calibration was not measured" in text
    assert "Independence of the labels was not checked" in text
    assert "What more labels would bring" not in text
    assert Report(summary).markdown().count("\n## ") == 5


def test_a_page_says_where_aleatoric_uncertainty_is_that_of_a_panel(summary: Summary) -> None:
    data = summary["data"] | {"panel_size": 7}

    assert "Estimates are for a panel of 7 people" in Report({**summary, "data": data}).html()


def test_attacks_in_every_field_of_a_summary_stay_text(summary: Summary) -> None:
    """A summary may come from a file that somebody else wrote: no string in it becomes markup."""

    def poison(value: object) -> object:
        if isinstance(value, dict):
            return {name: entry if name in KEPT else poison(entry) for name, entry in value.items()}
        if isinstance(value, list | tuple):
            return [poison(entry) for entry in value]
        return f"\"'>{SCRIPT_ATTACK}{IMAGE_ATTACK}" if isinstance(value, str) else value

    poisoned = poison(json.loads(json.dumps(summary)))
    page = Elements(Report(poisoned).html())  # type: ignore[arg-type]

    tags = [tag for tag, _ in page.found]
    assert tags.count("script") == 2
    n_cards = sum(len(gallery["cards"]) for gallery in summary["galleries"])
    assert tags.count("img") == n_cards + len(summary["contrast"])
    assert not [
        name for _, attributes in page.found for name in attributes if name.startswith("on")
    ]


KEPT = ("agree", "format", "source", "standing")  # chosen from by the page, not shown


def test_a_folder_that_is_absent_is_named_as_the_user_wrote_it(
    summary: Summary, tmp_path: Path
) -> None:
    path = tmp_path / "absent" / "report.md"

    with pytest.raises(FileNotFoundError, match=f"No such file or directory: '{path}'"):
        Report(summary).save(path)


def test_the_staircase_of_items_falls_at_the_values_themselves(summary: Summary) -> None:
    """Half of the items at .1 and half at .3: all have up to .1, half up to .3, none more."""
    steps = [(0.1, 1.0), (0.3, 0.5)]
    largest = {**summary["parts"]["aleatoric"], "maximum": 0.3}
    parts = {"aleatoric": largest, "epistemic": largest}
    parts |= {"aleatoric_steps": steps, "epistemic_steps": steps}
    drawing = draw_spread(cast("Parts", {**summary["parts"], **parts}))

    places = [tuple(map(float, corner.split(","))) for corner in drawing.lines[0].points.split()]
    across = drawing.right - drawing.left
    up = drawing.bottom - drawing.top
    top = float(drawing.x_ticks[-1].text)
    found = [((x - drawing.left) / across * top, (drawing.bottom - y) / up) for x, y in places]
    expected = [(0, 1), (0.1, 1), (0.1, 0.5), (0.3, 0.5), (0.3, 0)]
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-4)
