"""The page in a real browser: what it shows, what it does, and what it must never do."""

import json
import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from hocal.report import Summary, words
from report.browser import Browser
from report.example import CLASSES, IMAGE_ATTACK, SCRIPT_ATTACK

ENTER = {"key": "Enter", "code": 13, "text": "\r"}
SHOWN = "[...document.querySelectorAll('#{} tbody tr')].filter(row => !row.hidden)"


def column(browser: Browser, table: str, number: int) -> list[str]:
    """Return the entries of a column, in the order of the visible rows."""
    entries = browser.run(
        f"{SHOWN.format(table)}.map(row => row.cells[{number}].textContent.trim())"
    )
    return [str(entry) for entry in entries]


def head(table: str, text: str) -> str:
    """Return the script for the button of a column."""
    buttons = f"[...document.querySelectorAll('#{table} button.sort')]"
    return f"{buttons}.find(b => b.textContent === {json.dumps(text)})"


def axe() -> Path | None:
    """Return the script of axe-core: what HOCAL_AXE names, or that of axe-playwright-python."""
    if "HOCAL_AXE" in os.environ:
        return Path(os.environ["HOCAL_AXE"])
    wheel = find_spec("axe_playwright_python")
    return (
        None if wheel is None or wheel.origin is None else Path(wheel.origin).parent / "axe.min.js"
    )


def test_the_page_loads_without_a_message_or_dialog(browser: Browser) -> None:
    assert browser.messages == []
    assert browser.dialogs == []


def test_no_request_leaves_the_page(browser: Browser, page: Path) -> None:
    browser.run("new Promise(done => setTimeout(done, 200))")

    assert {request for request in browser.requests if not request.startswith("data:")} == {
        page.as_uri()
    }


def test_the_policy_stops_a_script_and_a_request(browser: Browser) -> None:
    browser.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
        "document.body.append(s); const i = new Image(); i.src = 'https://example.org/x.png'; })()"
    )
    browser.run("new Promise(done => setTimeout(done, 200))")

    assert browser.run("window.hacked") is None
    assert browser.blocked == ["csp"]
    assert browser.messages  # which shows that the tests above would have heard of it


def test_names_stay_text(browser: Browser) -> None:
    title = browser.run("document.querySelector('h1').textContent")
    quotes = browser.run("document.querySelector('.card blockquote').textContent")
    text = browser.run("document.body.innerText")

    assert title == f"Title {IMAGE_ATTACK}"
    assert SCRIPT_ATTACK in quotes
    assert all(name in text for name in CLASSES)
    assert browser.run("document.scripts.length") == 2
    assert browser.dialogs == []


def test_the_means_are_shown(browser: Browser, summary: Summary) -> None:
    shown = browser.run("[...document.querySelectorAll('.equation b')].map(b => b.textContent)")
    parts = summary["parts"]

    assert shown == [
        f"{parts[name]['mean']:.3f}" for name in ("predictive", "aleatoric", "epistemic")
    ]


def test_gallery_bars_match_the_numbers(browser: Browser, summary: Summary) -> None:
    found = browser.run(
        "[...document.querySelectorAll('.card')].map("
        "card => ['aleatoric', 'epistemic'].map(part => {"
        "const bar = card.querySelector(`rect[data-part=${part}]`).getBoundingClientRect();"
        "const track = card.querySelector(`.part.${part} .track`).getBoundingClientRect();"
        "return bar.width / track.width; }))"
    )
    cards = [card["item"] for gallery in summary["galleries"] for card in gallery["cards"]]
    parts = summary["parts"]
    of_items = [item["aleatoric"] for item in [*cards, *summary["items"]]]
    scale = max(parts["aleatoric"]["maximum"], parts["epistemic"]["maximum"], *of_items)

    assert len(found) == len(cards) > 0
    for shares, item in zip(found, cards, strict=True):
        assert shares == pytest.approx(
            [item["aleatoric"] / scale, item["alone"]["epistemic"] / scale], abs=0.01
        )


def test_a_card_says_what_the_model_and_people_said(browser: Browser, summary: Summary) -> None:
    item = summary["galleries"][0]["cards"][0]["item"]
    shown = browser.run(
        "[...document.querySelector('.card').querySelectorAll('dd')].map(d => d.textContent)"
    )

    assert shown[0] == f"{item['prediction']} ({words.percent(item['probability'])})"
    assert shown[1:] == [words.about_labels(item)]


def test_gallery_pictures_are_drawn_with_sharp_pixels(browser: Browser) -> None:
    pictures = browser.run(
        "Promise.all([...document.images].map(i => i.decode().then(() => "
        "[i.naturalWidth, getComputedStyle(i).imageRendering])))"
    )

    assert pictures
    assert all(picture == [8, "pixelated"] for picture in pictures)


@pytest.mark.parametrize("table", ["cells", "items"])
def test_a_click_sorts_a_table_and_another_turns_it_round(browser: Browser, table: str) -> None:
    browser.run(f"document.querySelector('[data-more={table}]').click()")
    place = browser.run(f"{head(table, 'Epistemic')}.closest('th').cellIndex")
    browser.run(f"{head(table, 'Epistemic')}.click()")
    falling = [float(entry) for entry in column(browser, table, place)]
    browser.run(f"{head(table, 'Epistemic')}.click()")
    rising = [float(entry) for entry in column(browser, table, place)]

    assert falling == sorted(falling, reverse=True)
    assert rising == sorted(rising)
    assert falling[0] > falling[-1]
    assert (
        browser.run(f"{head(table, 'Epistemic')}.closest('th').getAttribute('aria-sort')")
        == "ascending"
    )


def test_a_mouse_sorts_a_table(browser: Browser) -> None:
    browser.click("#items th:nth-child(5) button")

    assert (
        browser.run("document.querySelector('#items th:nth-child(5)').getAttribute('aria-sort')")
        == "descending"
    )


def test_the_keyboard_sorts_a_table(browser: Browser) -> None:
    browser.run(f"{head('items', 'Item')}.focus()")
    browser.press(**ENTER)
    names = column(browser, "items", 0)
    numbers = [int(name.split()[1]) for name in names if name != IMAGE_ATTACK]

    assert numbers == sorted(numbers)
    assert (
        browser.run(f"{head('items', 'Item')}.closest('th').getAttribute('aria-sort')")
        == "ascending"
    )


def test_rows_without_a_number_stay_last(browser: Browser) -> None:
    width = "Proved aleatoric"
    browser.run("document.querySelector('#cells tbody tr').cells[5].dataset.value = ''")
    browser.run("document.querySelector('[data-more=cells]').click()")
    for _ in range(2):
        browser.run(f"{head('cells', width)}.click()")
        values = browser.run(f"{SHOWN.format('cells')}.map(row => row.cells[5].dataset.value)")

        assert values[-1] == ""
        assert values.count("") == 1


def test_typing_filters_a_table(browser: Browser) -> None:
    browser.run("document.querySelector('[data-filter=items]').focus()")
    rows = browser.run(
        "[...document.querySelectorAll('#items tbody tr')].map(row => row.textContent)"
    )
    browser.type("ITEM 31")
    browser.click("[data-more=items]")

    shown = browser.run(f"{SHOWN.format('items')}.map(row => row.textContent)")
    assert shown == [row for row in rows if "item" in row and "31" in row]
    assert 0 < len(shown) < len(rows)
    assert re.match(
        r"\d+ of \d+ items",
        browser.run("document.querySelector('[data-status=items]').textContent"),
    )


def test_a_filter_without_match_shows_no_row(browser: Browser) -> None:
    browser.run("document.querySelector('[data-filter=cells]').focus()")
    browser.type("no such cell")

    assert column(browser, "cells", 0) == []
    assert browser.run("document.querySelector('[data-status=cells]').textContent").startswith(
        "0 of "
    )


def test_choosing_a_standing_filters_a_table(browser: Browser, summary: Summary) -> None:
    browser.run("document.querySelector('[data-more=items]').click()")
    browser.run(
        "(() => { const s = document.querySelector('[data-standing=items]'); s.value = 'aleatoric';"
        "s.dispatchEvent(new Event('change')); })()"
    )

    shown = set(column(browser, "items", 0))
    assert shown == {item["item"] for item in summary["items"] if "aleatoric" in item["listed_as"]}


def test_a_table_shows_its_first_rows_until_asked_for_all(
    browser: Browser, summary: Summary
) -> None:
    assert len(column(browser, "items", 0)) == 12
    browser.click("[data-more=items]")
    assert len(column(browser, "items", 0)) == len(summary["items"])
    assert (
        browser.run("document.querySelector('[data-more=items]').getAttribute('aria-expanded')")
        == "true"
    )


def test_pointing_at_a_dot_says_what_it_is(browser: Browser) -> None:
    browser.hover("#map .dot:last-child")

    said = browser.run("document.querySelector('#map .readout').textContent")
    assert said == browser.run(
        "document.querySelector('#map .dot:last-child').getAttribute('aria-label')"
    )


def test_arrow_keys_move_from_dot_to_dot(browser: Browser) -> None:
    browser.run("document.querySelector('#map .dot[tabindex=\"0\"]').focus()")
    first = browser.run("document.activeElement.getAttribute('aria-label')")
    browser.press("ArrowRight", code=39)
    second = browser.run("document.activeElement.getAttribute('aria-label')")

    assert first != second
    assert browser.run("document.querySelector('#map .readout').textContent") == second
    assert browser.run("document.querySelectorAll('#map .dot[tabindex=\"0\"]').length") == 1


def test_tab_reaches_the_skip_link_first(browser: Browser) -> None:
    browser.press("Tab", code=9)

    assert browser.run("document.activeElement.className") == "skip"


def test_the_theme_follows_the_reader_and_the_button(browser: Browser) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(paper)
    browser.screen(1280, dark=True)
    dark = browser.run(paper)
    browser.click("#theme")

    assert light != dark
    assert browser.run(paper) == light
    assert browser.run("document.querySelector('#theme').getAttribute('aria-pressed')") == "false"


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_page_never_scrolls_sideways(browser: Browser, width: int) -> None:
    browser.screen(width)

    assert browser.run("document.documentElement.scrollWidth") <= width


# visible blocks whose content is wider than they are; drawings scale, and one class is for ears
WIDER = """[...document.querySelectorAll('body *')].filter(e =>
  !e.closest('svg, .hidden, .skip') && e.checkVisibility() && e.clientWidth > 0
  && e.scrollWidth > e.clientWidth
).map(e => `${e.tagName}.${e.className}: ${e.scrollWidth} in ${e.clientWidth}`)"""


@pytest.mark.parametrize("width", [390, 1100, 1280])
def test_nothing_is_cut_and_no_table_hides_a_column(browser: Browser, width: int) -> None:
    browser.screen(width)
    for table in ("classes", "cells", "items"):
        browser.run(f"document.querySelector('[data-more={table}]').click()")
    browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    assert browser.run(WIDER) == []


def test_on_a_phone_every_entry_of_a_table_stands_under_its_head(browser: Browser) -> None:
    browser.screen(390)
    browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    assert browser.run("document.querySelector('#classes').closest('.stacked') !== null")
    entry = "document.querySelector('#classes tbody td:nth-child(3)')"
    assert browser.run(f"getComputedStyle({entry}, '::before').content") == '"Aleatoric"'


def test_classes_can_be_found_by_name(browser: Browser) -> None:
    browser.run("document.querySelector('[data-filter=classes]').focus()")
    browser.type("cat")

    assert column(browser, "classes", 0) == ["cat"]
    status = browser.run("document.querySelector('[data-status=classes]').textContent")
    assert status == "1 of 4 classes"


def test_paper_shows_no_buttons_and_all_of_a_table(browser: Browser) -> None:
    browser.screen(700, media="print")

    hidden = browser.run(
        "['.top', '.controls', '#download'].map(s => document.querySelector(s).checkVisibility())"
    )
    assert hidden == [False, False, False]
    assert browser.run("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    assert browser.print().startswith(b"%PDF")


@pytest.mark.parametrize("name", ["light", "dark", "phone"])
def test_screenshots_have_two_colours_for_two_kinds(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    """The blue and the orange of the palette are on the picture, each in the shade of its theme."""
    from PIL import Image

    folder = Path(os.environ.get("HOCAL_SCREENSHOTS", tmp_path))
    browser.screen(390 if name == "phone" else 1280, dark=name == "dark")
    browser.screenshot(folder / f"{name}.png")

    with Image.open(folder / f"{name}.png") as image:
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24) or []}
    blue, orange = (
        ((0x56, 0xB4, 0xE9), (0xF0, 0x9A, 0x3E))
        if name == "dark"
        else ((0, 0x72, 0xB2), (0xD5, 0x5E, 0))
    )
    assert {blue, orange} <= colours


@pytest.mark.parametrize("theme", ["light", "dark", "phone"])
def test_axe_finds_no_barrier(browser: Browser, theme: str) -> None:
    script = axe()
    if script is None:
        pytest.skip("axe-core is not installed: pip install --no-deps axe-playwright-python")
    browser.screen(390 if theme == "phone" else 1280, dark=theme == "dark")
    browser.run(script.read_text(encoding="utf-8") + "; 0")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = browser.run(
        f"axe.run(document, {{runOnly: {json.dumps(tags)}, resultTypes: ['violations']}})"
        ".then(r => r.violations.map(v => ["
        "v.id, v.help, v.nodes.length, v.nodes[0].html, v.nodes[0].failureSummary]))"
    )

    assert found == []


def test_the_numbers_can_be_saved(browser: Browser, tmp_path: Path, summary: Summary) -> None:
    browser.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.click("#download")
    browser.run("new Promise(done => setTimeout(done, 1200))")

    numbers = json.loads((tmp_path / "hocal-report.json").read_text(encoding="utf-8"))
    assert numbers["parts"] == json.loads(json.dumps(summary["parts"]))
