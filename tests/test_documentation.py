"""Examples in documents run, links lead somewhere, and the site builds without a warning."""

import contextlib
import importlib
import io
import logging
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import hocal
from engines import spark  # noqa: F401 - a fixture
from hocal.datasets import make_mixture_world
from report.browser import CHROMIUM, browse

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
PLAIN_FILES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("experiments/*.md")]
)
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
ON_SPARK = ROOT / "examples" / "spark_tables.py"
PICTURES = ROOT / "examples" / "pictures.py"
STORIES = ROOT / "examples" / "four_stories.py"
RUN_BY_OTHER_TESTS = (ON_SPARK, PICTURES, STORIES)  # the last by test_stories.py
LONG = {
    "cifar10h.py",
    "digits_distillation.py",
    "docs/guarantees.md",
    "docs/guides/command-line.md",
    "docs/guides/ensemble.md",
    "docs/guides/how-many-labels.md",
    "docs/guides/judges.md",
    "docs/guides/next-labels.md",
    "docs/guides/prediction-sets.md",
    "docs/guides/refusal.md",
    "docs/guides/relabel.md",
    "docs/guides/scikit-learn.md",
    "judges.py",
    "llm_answers.py",
    "scikit_learn_pipeline.py",
    "torch_head.py",
    "two_worlds.py",
}

# Commands that install or run what other tests run; any other command in a document is run here.
RUN_ELSEWHERE = (
    "pip install ",
    "make ",
    "git ",
    "python examples/",
    "python benchmarks/",
    "python experiments/",
)


class Block(NamedTuple):
    """A fenced block of a document."""

    language: str
    text: str
    line: int  #: number of its first line, for tracebacks


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def case(path: Path, name: str) -> Any:
    """Return a document or an example to run, among the slow tests where it takes long."""
    return pytest.param(path, marks=pytest.mark.slow if name in LONG else (), id=name)


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    for found in re.finditer(r"^```([^\n]*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        yield Block(found[1], found[2], text.count("\n", 0, found.start(2)))


def write_study(folder: Path) -> None:
    """Write the files that readers of the README have already."""
    world, classes = make_mixture_world(300, 3, random_state=0), ["cat", "dog", "fox"]
    labels = (np.repeat(classes, counts) for counts in world.draw(3, random_state=1))
    judgements = [f"{image},{label}" for image, chosen in enumerate(labels) for label in chosen]
    (folder / "labels.csv").write_text("\n".join(["image,choice", *judgements]), encoding="utf-8")
    rows = (",".join(map(str, [image, *p.tolist()])) for image, p in enumerate(world.predictions))
    (folder / "softmax.csv").write_text(
        "\n".join([",".join(["image", *classes]), *rows]), encoding="utf-8"
    )


def run_python(block: Block, document: Path, namespace: dict[str, object]) -> None:
    code = compile(
        "\n" * block.line + block.text, str(document), "exec"
    )  # so that tracebacks show the line
    exec(code, namespace)


def run_shell(block: Block) -> None:
    """Run the commands of `hocal` in this process, where its imports are paid for already."""
    for line in block.text.replace("\\\n", " ").splitlines():
        command, _, _ = line.partition("  #")
        if not command.strip() or command.startswith(("#", *RUN_ELSEWHERE)):
            continue
        program, *arguments = shlex.split(command)
        assert program == "hocal", f"nothing runs {command!r}"
        run_hocal(arguments)


def run_hocal(arguments: list[str]) -> None:
    from hocal.cli import main

    target = None
    if ">" in arguments:
        *arguments, _, target = arguments
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as finished:
        main(arguments)
    assert finished.value.code in (0, None), arguments
    if target is not None:
        Path(target).write_text(said.getvalue(), encoding="utf-8")


def run_script(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a script in this process, for the same reason."""
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")


@pytest.mark.parametrize("document", [case(path, name_of(path)) for path in DOCUMENTS])
def test_examples_of_a_document_run_in_order(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of one document share variables and an empty folder."""
    monkeypatch.chdir(tmp_path)
    if document == ROOT / "README.md":
        write_study(tmp_path)
    namespace: dict[str, object] = {"__name__": "document"}

    for block in blocks(document):
        if block.text.startswith("--8<--"):
            continue  # a piece of an example script, which another test runs
        assert block.language in ("python", "sh", "text"), (
            f"{block.language!r} in line {block.line}"
        )
        if block.language == "python":
            run_python(block, document, namespace)
        elif block.language == "sh":
            run_shell(block)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "example", [case(path, path.name) for path in EXAMPLES if path not in RUN_BY_OTHER_TESTS]
)
def test_example_runs(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = example.read_text(encoding="utf-8")
    if re.search(r"\bload_(crowd|cifar10h|judges)\(", text) and "HOCAL_DATA" not in os.environ:
        pytest.skip("the example reads real data, and HOCAL_DATA is not set")

    run_script(example, monkeypatch)

    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_example_on_spark_runs(
    spark: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It finds the Spark of the other tests, and must leave it running."""
    monkeypatch.setattr(type(spark), "stop", lambda _: None)

    run_script(ON_SPARK, monkeypatch)

    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_pictures_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From few digits and splits: that the script runs is tested, not how fine its curves are."""
    monkeypatch.syspath_prepend(str(PICTURES.parent))
    script = importlib.import_module(PICTURES.stem)
    little = {"N_ITEMS": 500, "N_FIT": 200, "MIN_ITEMS": 3, "LABEL_NUMBERS": (2, 3), "N_SPLITS": 1}
    for name, value in little.items():
        monkeypatch.setattr(script, name, value)

    script.main(tmp_path)

    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {"reliability.png", "uncertainty.png"}
    assert drawn <= {path.name for path in (ROOT / "docs" / "images").iterdir()}
    assert "inside their noise band" in capsys.readouterr().out


def test_pictures_of_a_page_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `make picture` takes those of the report."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the script adds
    script = runpy.run_path(str(ROOT / "docs" / "_pictures" / "page.py"))
    page = tmp_path / "page.html"
    page.write_text('<h1>Page</h1><p class="contrast">Two items.</p>', encoding="utf-8")

    taken = script["take"](page, tmp_path)

    assert [path.name for path in taken] == ["page.png", "two-items.png"]
    assert {path.name for path in taken} <= {path.name for path in script["IMAGES"].iterdir()}


def test_pictures_in_readme_are_small() -> None:
    """So that a clone stays quick."""
    sizes = [path.stat().st_size for path in (ROOT / "docs" / "images").iterdir()]

    assert max(sizes) < 300_000


@pytest.mark.parametrize("document", PLAIN_FILES, ids=name_of)
def test_relative_links_lead_to_files(document: Path) -> None:
    """Of the files that are read where they lie; the build checks the links between pages."""
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8"))
    absent = [
        link for link in targets if "://" not in link and not (document.parent / link).exists()
    ]

    assert absent == []


def test_no_page_names_a_host_that_it_does_not_need() -> None:
    """Outside links are few and known, so that a wrong one is noticed."""
    text = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)

    assert set(re.findall(r"https?://([^/)>\s]+)", text)) <= {"arxiv.org"}


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/comparison.md"])
def test_measured_figures_are_generated(name: str) -> None:
    """Outside the comments between which `tables.py` writes, no error, ratio or time is given."""
    text = (ROOT / name).read_text(encoding="utf-8")
    by_hand = re.sub(r"<!-- (\w+) -->.*?<!-- end of \1 -->", "", text, flags=re.DOTALL)

    assert re.findall(r"\d times|\d+ nats|(?<![\w.])\.\d+|\d (?:ms|s|MB|GB)\b", by_hand) == []


def test_page_of_public_names_lists_them_all() -> None:
    page = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| \[`hocal\.(\w+)`\]", page, flags=re.MULTILINE) == hocal.__all__


@pytest.mark.parametrize("name", hocal.__all__)
def test_page_of_public_names_says_what_the_docstring_says(name: str) -> None:
    page = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| [`hocal.{name}`]"))
    summary = (getattr(hocal, name).__doc__ or "").strip().partition("\n")[0]

    assert row.endswith("| " + summary.replace("|", "\\|") + " |")


def test_no_page_names_a_method_that_does_not_exist() -> None:
    text = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    named = set(re.findall(r'method="([\w-]+)"', text))

    assert named <= {"items", "cells", "empirical", "paper", "tightest"}


def test_design_page_has_a_place_for_every_room() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    modules = {
        path.stem
        for path in Path(str(hocal.__file__)).parent.iterdir()
        if not path.name.startswith("__")
    }

    assert modules - {"py"} - set(re.findall(r"`(\w+)`", page)) == set()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the documentation."""
    pytest.importorskip("mkdocs", reason="the documentation is built with mkdocs")
    pytest.importorskip("material", reason="the documentation is built with mkdocs-material")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore
    logging.getLogger("mkdocs").addHandler(handler)
    try:
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder)))
    finally:
        logging.getLogger("mkdocs").removeHandler(handler)
    assert warnings == []
    return folder


@pytest.mark.xdist_group("site")
@pytest.mark.filterwarnings("default")
def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in site.rglob("*.html"))

    assert re.findall(r'<(?:script|img|iframe)[^>]*src="https?:[^"]+"', pages) == []
    assert (
        re.findall(r'<link[^>]*rel="(?:stylesheet|preconnect|icon)"[^>]*href="https?:[^"]+"', pages)
        == []
    )


@pytest.mark.xdist_group("site")
@pytest.mark.filterwarnings("default")
def test_every_public_name_and_room_has_an_entry(site: Path) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    modules = {
        path.stem for path in Path(str(hocal.__file__)).parent.iterdir() if path.stem[0] not in "_."
    }
    listed = set(re.findall(r'id="hocal\.([\w.]+)"', pages))

    homes = {name: f"{home}.{name}" for name, home in hocal._HOME_OF.items() if home[0] != "_"}
    assert set(homes.values()) - listed == set()
    assert modules - {entry.partition(".")[0] for entry in listed} - {"py"} == set()


@pytest.mark.xdist_group("site")
@pytest.mark.filterwarnings("default")
def test_every_method_of_the_calibrator_has_an_entry(site: Path) -> None:
    page = (site / "api" / "calibration.html").read_text(encoding="utf-8")
    listed = set(re.findall(r'id="hocal\.calibration\.SnapshotCalibrator\.(\w+)"', page))
    own = [base for base in hocal.SnapshotCalibrator.__mro__ if base.__module__.startswith("hocal")]

    methods = {name for base in own for name, value in vars(base).items() if callable(value)}
    requests = {name for name in methods if name.startswith("set_")}  # scikit-learn writes these
    assert {name for name in methods if name[0] != "_"} - requests == listed


@pytest.mark.xdist_group("site")
@pytest.mark.filterwarnings("default")
def test_a_tutorial_is_a_page_with_its_outputs(site: Path) -> None:
    page = (site / "tutorials" / "labels-only.html").read_text(encoding="utf-8")

    assert "Labels and no model yet" in page
    assert "of the 95% limits hold the truth" in page
    assert 'src="labels-only-0.png"' in page
    assert (site / "tutorials" / "labels-only-0.png").read_bytes().startswith(b"\x89PNG")
    assert "<td>reader 7</td>" in page
    assert 'href="classifier.html"' in page
    assert (site / "tutorials" / "labels-only.ipynb").exists()


@pytest.mark.xdist_group("site")
@pytest.mark.filterwarnings("default")
def test_tutorials_are_readable_on_a_phone(site: Path, tmp_path: Path) -> None:
    """Code and tables scroll in boxes of their own; all that cells print is seen at once."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    wide = "[...document.querySelectorAll('.language-text code')]"
    wide += ".filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
    with browse(tmp_path) as browser:
        browser.screen(390)
        for path in ROOT.glob("docs/tutorials/*.ipynb"):
            browser.open(site / "tutorials" / f"{path.stem}.html")
            assert browser.run("document.documentElement.scrollWidth") == 390
            assert browser.run(wide) == []
            assert browser.messages == []
            assert [url for url in browser.requests if url.startswith("http")] == []
