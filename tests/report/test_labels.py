"""Reports on labels alone: what is said, and the page in a real browser."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import hocal
from hocal.report import LabelSummary, Report, summarise_labels
from hocal.report.confusions import pair_rates
from hocal.report.label_words import about_agreement, about_annotators, about_trust_in_labels
from report.browser import Browser
from report.example import IMAGE_ATTACK
from report.test_page import axe

NAMES = np.array(["cat", "dog", "fox"])
COLUMNS: dict[str, Any] = {"item": "photo", "label": "choice", "annotator": "worker"}


def judge(n_items: int, n_labels: int, n_workers: int, n_careless: int) -> pd.DataFrame:
    """Return judgements of clear and of torn items; the first workers click at random."""
    generator = np.random.default_rng(0)
    p = generator.dirichlet([0.1] * 3, n_items)
    p[: n_items // 4] = generator.dirichlet([3, 3, 0.2], n_items // 4)
    worker = np.argsort(generator.random((n_items, n_workers)), axis=1)[:, :n_labels]
    drawn = (generator.random((n_items, n_labels, 1)) > p.cumsum(axis=1)[:, None, :2]).sum(axis=2)
    clicked = generator.integers(0, 3, drawn.shape)
    label = np.where(worker < n_careless, clicked, drawn)
    photo = np.repeat([f"photo {row}" for row in range(n_items)], n_labels)
    return pd.DataFrame({"photo": photo, "choice": NAMES[label.ravel()], "worker": worker.ravel()})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return judge(300, 4, 15, 2)


@pytest.fixture(scope="module")
def labels(table: pd.DataFrame) -> LabelSummary:
    return summarise_labels(table, **COLUMNS, title=f"Labels {IMAGE_ATTACK}")


@pytest.fixture
def labels_page(labels: LabelSummary, _chromium: Browser, tmp_path: Path) -> Browser:
    _chromium.screen(1280)
    _chromium.open(Report(labels).save(tmp_path / "labels.html"))
    return _chromium


def test_agreement_is_that_of_the_function(labels: LabelSummary, table: pd.DataFrame) -> None:
    pairs = hocal.agreement(table, **COLUMNS).pairs

    assert labels["agreement"]["pairs"]["estimate"] == pytest.approx(pairs.estimate, rel=1e-5)
    assert "Two people agree about an item in 6" in about_agreement(labels)[0]


def test_careless_people_are_named_with_what_is_gone_without_them(labels: LabelSummary) -> None:
    people = labels["people"]

    assert people is not None
    assert set(people["dissenters"]) == {"0", "1"}
    assert "Without those who dissent" in about_annotators(labels)[1]


def test_confusions_share_all_disagreement() -> None:
    counts = [[2, 2, 0], [3, 0, 1], [0, 4, 0]] * 20
    confusions = summarise_labels(counts, classes=list(NAMES), forecast=False)["confusions"]

    assert [(pair["first"], pair["second"]) for pair in confusions] == [
        ("cat", "dog"),
        ("cat", "fox"),
    ]
    # four of six pairs of labels of the first item, three of six of the second
    assert [pair["share"] for pair in confusions] == pytest.approx([4 / 7, 3 / 7], rel=1e-5)


def test_confusions_of_a_million_classes_take_no_table_of_all_pairs() -> None:
    counts = sparse.csr_array(([2, 1, 1], ([0, 1, 1], [5, 7, 999_999])), shape=(2, 10**6))

    rates = pair_rates(counts, np.array([3, 1]))

    assert rates.diagonal()[5] == pytest.approx(3 / 4)
    assert rates[7, 999_999] == rates[999_999, 7] == pytest.approx(1 / 8)


def test_what_is_said_again_is_counted_in_pairs() -> None:
    """Of the ordered pairs that begin with cat, two in six of the first item end with it."""
    rows = summarise_labels([[2, 2], [0, 4]] * 20, forecast=False)["classes"]

    assert {row["name"]: row["again"] for row in rows} == pytest.approx(
        {"0": 1 / 3, "1": (1 / 6 + 1) / (1 / 2 + 1)}, rel=1e-5
    )


def test_what_everybody_agrees_on_is_never_called_ambiguous(labels: LabelSummary) -> None:
    verdicts = [item["verdict"] for item in labels["items"]]
    uniform = [item for item in labels["items"] if len(item["labels"]) == 1]

    assert verdicts == sorted(verdicts, key=["disputed", "open", "agreed"].index)
    assert {item["verdict"] for item in uniform} == {"agreed"}


def test_one_or_two_labels_that_agree_leave_an_item_open() -> None:
    counts = [[1, 0], [2, 0], [3, 0], [1, 1], [0, 0]] * 50
    items = summarise_labels(counts, forecast=False)["items"]

    assert {(item["n_labels"], item["verdict"]) for item in items} == {
        (0, "open"),
        (1, "open"),
        (2, "open"),
        (3, "agreed"),
        (2, "disputed"),
    }


def test_the_same_people_on_every_item_are_called_a_panel() -> None:
    summary = summarise_labels(judge(60, 3, 3, 0), **COLUMNS, forecast=False)

    assert about_trust_in_labels(summary)[-1].title == "A fixed panel"


def test_counts_cannot_tell_careless_people_and_it_is_said() -> None:
    summary = summarise_labels([[3, 0], [2, 1], [0, 3]] * 30, forecast=False)

    assert summary["people"] is None
    assert "Counts alone cannot tell the two apart" in about_trust_in_labels(summary)[0].text


def test_more_labels_bring_more_where_they_help_most(labels: LabelSummary) -> None:
    forecast = labels["forecast"]

    assert forecast is not None
    errors = [forecast["now"], *(row["chosen"] for row in forecast["rows"])]
    assert errors == sorted(errors, reverse=True)
    assert all(row["chosen"] < row["evenly"] for row in forecast["rows"])


@pytest.mark.filterwarnings("ignore:No item has two labels")
def test_one_label_per_item_is_a_guess_and_it_is_said() -> None:
    summary = summarise_labels([[1, 0], [0, 1]] * 20, forecast=False)

    assert about_agreement(summary)[0].startswith("No item has two labels")
    assert about_trust_in_labels(summary)[1].title == "One label per item"
    assert Report(summary).markdown().startswith("# Labels\n")
    assert "No item has two labels" in Report(summary).html()


def test_a_scale_is_measured_in_its_steps(table: pd.DataFrame) -> None:
    summary = summarise_labels(
        table, **COLUMNS, classes=list(NAMES), ordinal=True, forecast=False, n_listed=5
    )

    assert summary["unit"] == "steps of the scale"
    assert max(item["upper"] for item in summary["items"]) <= 0.5
    assert len(summary["items"]) == 5


@pytest.mark.parametrize("flag", ["ordinal", "forecast"])
def test_a_flag_is_true_or_false(flag: str) -> None:
    flags: dict[str, Any] = {flag: np.ones(2)}

    with pytest.raises(hocal.InputError, match=f"`{flag}` must be True or False"):
        summarise_labels([[1, 0], [0, 1]], **flags)


def test_every_format_is_made_of_the_summary(labels: LabelSummary) -> None:
    report = Report(labels)

    assert repr(report).endswith("300 items, 1,200 labels)")
    assert json.loads(report.json())["items"][0]["item"] == labels["items"][0]["item"]
    assert "## Who stands out" in report.markdown()


def test_the_page_is_quiet_and_sends_nothing(labels_page: Browser) -> None:
    requests = [address for address in labels_page.requests if not address.startswith("data:")]

    assert labels_page.messages == []
    assert labels_page.dialogs == []
    assert len(requests) == 1
    assert labels_page.run("document.querySelector('h1').textContent") == f"Labels {IMAGE_ATTACK}"


@pytest.mark.parametrize("theme", ["light", "dark", "phone"])
def test_axe_finds_no_barrier_in_the_page_of_labels(labels_page: Browser, theme: str) -> None:
    script = axe()
    if script is None:
        pytest.skip("axe-core is not installed: pip install --no-deps axe-playwright-python")
    labels_page.screen(390 if theme == "phone" else 1280, dark=theme == "dark")
    labels_page.run(script.read_text(encoding="utf-8") + "; 0")
    found = labels_page.run(
        "axe.run(document, {resultTypes: ['violations']})"
        ".then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
    )

    assert found == []
    width = labels_page.run("document.documentElement.scrollWidth")
    assert width == (390 if theme == "phone" else 1280)


def test_the_items_are_searched_and_saved_as_csv(
    labels_page: Browser, labels: LabelSummary, tmp_path: Path
) -> None:
    labels_page.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    labels_page.click("[data-filter=items]")
    labels_page.type("photo 17 ")
    status = labels_page.run("document.querySelector('[data-status=items]').textContent")
    labels_page.click("[data-csv=items]")
    labels_page.run("new Promise(done => setTimeout(done, 1200))")

    with (tmp_path / "items.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert status.endswith("of 300 items")
    assert len(rows) == 300
    assert rows[0]["item"] == labels["items"][0]["item"]
    assert float(rows[0]["aleatoric"]) == labels["items"][0]["aleatoric"]
