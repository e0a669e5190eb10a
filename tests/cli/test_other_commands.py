"""`hocal check`, `hocal plan` and `hocal data`: thin over the library."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocal
from command_line import Run, Study
from hocal.annotations.independence import check_annotations


def test_check_reports_what_python_reports(run: Run, study: Study) -> None:
    from pyarrow import parquet

    columns = {"item": "item", "label": "label", "annotator": "annotator"}
    options = [part for name, column in columns.items() for part in (f"--{name}", column)]

    outcome = run("check", study / "labels.parquet", *options, "--n-resamples", "19")
    machine = run("check", study / "labels.parquet", *options, "--n-resamples", "19", "--json")

    expected = check_annotations(
        parquet.read_table(study / "labels.parquet"), **columns, n_resamples=19, random_state=0
    )
    assert outcome.out == expected.table() + "\n"
    assert machine.json["n_judgements"] == 360


@pytest.mark.parametrize("stamp", ["{}", "2024-05-01 10:00:{:02d}"], ids=["numbers", "dates"])
def test_check_takes_the_time_from_a_csv_file(run: Run, tmp_path: Path, stamp: str) -> None:
    rows = [
        f"{i % 20},{'yes' if i % 3 else 'no'},{i // 20},{stamp.format(i % 60)}" for i in range(60)
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["item,label,who,when", *rows]), "utf-8")

    outcome = run(
        "check", str(tmp_path / "labels.csv"), "--item", "item", "--label", "label",
        "--annotator", "who",
        "--time", "when", "--n-resamples", "19", "--json",
    )  # fmt: skip

    assert outcome.code == 0, outcome.err
    assert outcome.json["order"] is not None


LONG = """photo,who,choice,right
a,Ann,cat,cat
a,Bob,cat,cat
a,Cem,dog,cat
b,Ann,dog,
b,Bob,dog,
b,Cem,cat,
c,Ann,fox,
c,Bob,fox,
"""
WIDE = """photo,Ann,Bob,Cem
a,cat,cat,dog
b,dog,dog,cat
c,fox,fox,
"""
COUNTS = """photo,cat,dog,fox
a,2,1,0
b,1,2,0
c,0,0,2
"""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three files with the same labels."""
    for name, text in (("long", LONG), ("wide", WIDE), ("counts", COUNTS)):
        (tmp_path / f"{name}.csv").write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("long", ["--label", "choice", "--annotator", "who"]),
        ("long", ["--label", "choice"]),
        ("wide", ["--label", "Ann,Bob,Cem"]),
        ("counts", ["--count-columns", "cat,dog,fox"]),
    ],
)
def test_check_gives_the_agreement_of_every_shape_of_table(
    run: Run, photos: Path, name: str, options: list[str]
) -> None:
    outcome = run("check", str(photos / f"{name}.csv"), "--item", "photo", *options, "--json")

    expected = hocal.agreement([[2, 1, 0], [1, 2, 0], [0, 0, 2]]).alpha
    assert outcome.code == 0, outcome.err
    assert outcome.json["agreement"]["alpha"] == expected._asdict()


def test_check_prints_agreement_first(run: Run, photos: Path) -> None:
    outcome = run(
        "check", str(photos / "counts.csv"), "--item", "photo", "--count-columns", "cat,dog,fox"
    )

    assert outcome.out.startswith("agreement of 3 items, 8 labels")


def test_check_measures_an_ordinal_scale(run: Run, photos: Path) -> None:
    outcome = run(
        "check", str(photos / "long.csv"), "--item", "photo", "--label", "choice",
        "--classes", "dog,cat,fox", "--ordinal", "--json",
    )  # fmt: skip

    expected = hocal.agreement([[1, 2, 0], [2, 1, 0], [0, 0, 2]], ordinal=True).alpha
    assert outcome.json["agreement"]["alpha"] == expected._asdict()


def test_check_writes_a_row_for_each_annotator_the_worst_first(run: Run, photos: Path) -> None:
    path = photos / "annotators.csv"
    outcome = run(
        "check", str(photos / "long.csv"), "--item", "photo", "--label", "choice",
        "--annotator", "who", "--gold", "right", "--annotators", str(path),
    )  # fmt: skip
    rows = [line.split(",") for line in path.read_text("utf-8").replace('"', "").splitlines()]

    assert outcome.code == 0, outcome.err
    assert [row[0] for row in rows] == ["annotator", "Cem", "Ann", "Bob"]
    assert [row[rows[0].index("gold")] for row in rows[1:]] == ["0", "1", "1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "`--label` must be given, unless LABELS is the export"),
        (["--label", "choice", "--annotators", "x.csv"], "must be left out without --annotator"),
        (["--label", "choice", "--ordinal"], "`--classes` must be given in their order"),
        (["--label", "choice", "--annotator", "who", "--gold", "who"], "must have one role only"),
        (
            ["--label", "choice", "--annotator", "who", "--classes", "Cat,dog,fox"],
            "'cat' is probably the class 'Cat'",
        ),
        (["--label", "Ann,Bob"], "must have a column 'Ann'"),
        (
            ["--label", "choice", "--alpha", "2"],
            "`--alpha` must lie strictly between 0 and 1, got 2",
        ),
    ],
)
def test_check_refuses_what_makes_no_sense_in_one_line(
    run: Run, photos: Path, options: list[str], message: str
) -> None:
    outcome = run("check", str(photos / "long.csv"), "--item", "photo", *options)

    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert message in outcome.err


def test_plan_tells_the_items_for_a_width(run: Run) -> None:
    found = run("plan", "--k", "5", "--width", "0.3", "--n-classes", "2", "--json").json

    assert found["n_items"] == hocal.items_needed(k=5, width=0.3, n_classes=2)
    assert found["n_labels"] == 5 * found["n_items"]


def test_plan_tells_the_items_for_an_epsilon(run: Run) -> None:
    outcome = run("plan", "--k", "10", "--epsilon", "0.1", "--n-classes", "2")

    assert str(hocal.items_needed(k=10, epsilon=0.1, n_classes=2)) in outcome.out


def test_plan_tells_the_width_of_a_cell_of_a_model(run: Run, study: Study) -> None:
    model = hocal.load(study / "model.hocal")
    cell = int(model.statistics_.n_items.argmax())

    found = run(
        "plan",
        "--k",
        "3",
        "--n-items",
        "200",
        "--model",
        study / "model.hocal",
        "--cell",
        str(cell),
        "--json",
    ).json

    assert found["width"] == hocal.interval_width(200, k=3, mixture=model.cell_mixtures_[[cell]])


@pytest.mark.parametrize(("n_items", "said"), [(10, True), (5000, False)])
def test_plan_says_when_an_interval_says_nothing(run: Run, n_items: int, said: bool) -> None:
    outcome = run("plan", "--k", "3", "--n-items", str(n_items), "--n-classes", "3")

    assert "items in a cell" in outcome.out
    assert ("so the interval says nothing" in outcome.out) == said


def test_plan_splits_a_budget(run: Run, study: Study) -> None:
    arguments = [
        "plan",
        "--k",
        "2,3",
        "--budget",
        "120",
        "--model",
        study / "model.hocal",
        "--n-simulations",
        "2",
    ]

    shown, found = run(*arguments), run(*arguments, "--json").json

    expected = hocal.plan_budget(
        hocal.load(study / "model.hocal"), 120, k=[2, 3], n_simulations=2, random_state=0
    )
    assert found["best"]["k"] == expected.best.k
    assert [row["error"] for row in found["splits"]] == [row.error for row in expected.rows]
    assert found["splits"][0]["width"] is None  # NaN is no JSON
    assert (f"k = {expected.best.k} *" in shown.out) == (len(expected.contenders) == 1)
    assert ("No winner" in shown.out) == (len(expected.contenders) > 1)


def test_plan_adds_to_the_labels_at_hand(run: Run, study: Study) -> None:
    arguments = ["plan", "--budget", "60", "--k", "1", "--model", study / "model.hocal"]
    arguments += ["--labels", study / "labels.parquet", "--label", "label", "--n-simulations", "2"]

    shown, found = run(*arguments), run(*arguments, "--json").json

    expected = hocal.plan_budget(
        hocal.load(study / "model.hocal"),
        60,
        k=1,
        start=study.counts.sum(axis=1),
        n_simulations=2,
        random_state=0,
    )
    assert found["n_items_now"] == 120
    assert [row["error"] for row in found["splits"]] == [row.error for row in expected.rows]
    assert "60 more labels" in shown.out
    assert "60 of the same items" in shown.out


def test_plan_takes_the_fullest_cell(run: Run, study: Study) -> None:
    model = hocal.load(study / "model.hocal")
    cell = int(model.statistics_.n_items.argmax())
    found = run("plan", "--k", "3", "--width", "0.6", "--model", study / "model.hocal", "--json")

    needed = hocal.items_needed(k=3, width=0.6, mixture=model.cell_mixtures_[[cell]])
    now = int(model.statistics_.n_items[cell])
    assert (found.json["cell"], found.json["n_items"]) == (cell, needed)
    assert found.json["n_items_more"] == max(needed - now, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--k 2",
            "`--width` must be given, or else exactly one of --epsilon, --n-items and --budget.",
        ),
        (
            "--k 2 --width 0.1 --budget 9",
            "`--width` must be given, or else exactly one of --epsilon, --n-items and --budget.",
        ),
        ("--k 2 --budget 9", "`--budget` must come with --model, a pilot study to simulate."),
        ("--width 0.1 --n-classes 2", "`--k` must be given, unless for --budget."),
        ("--budget 9 --labels x.csv", "`--labels` must come with --budget and --model."),
        (
            "--k 2,3 --width 0.1 --n-classes 2",
            "`--k` must be one number unless for --budget, got '2,3'.",
        ),
        (
            "--k two --width 0.1 --n-classes 2",
            "`--k` must be whole numbers such as 5 or 2,3,5, got 'two'.",
        ),
        (
            "--k 2 --width 0.1",
            "`--n-classes` must be given, or --model, to know what is planned for.",
        ),
        (
            "--k 2 --width 0.1 --n-classes 2 --cell 0",
            "`--cell` must be left out without --model, which has cells.",
        ),
        (
            "--k 2 --width 0.1 --model MODEL --cell 99",
            "`--cell` must choose a cell of the model, from 0 to 5, got 99.",
        ),
    ],
    ids=[
        "nothing",
        "two",
        "no model",
        "no size",
        "labels without a model",
        "two sizes",
        "text",
        "no classes",
        "cell of nothing",
        "cell",
    ],
)
def test_plan_says_what_it_needs(run: Run, study: Study, options: str, message: str) -> None:
    outcome = run("plan", *options.replace("MODEL", study / "model.hocal").split())

    assert (outcome.code, outcome.err) == (2, f"hocal: {message}\n")


def test_data_are_listed_with_licence_and_place(run: Run, tmp_path: Path) -> None:
    shown = run("data", "list", "--data-home", str(tmp_path))
    files = run("data", "list", "--data-home", str(tmp_path), "--json").json["files"]

    assert "cifar10h" in shown.out
    assert {file["location"] for file in files} == {None}
    assert {"name", "path", "size", "licence", "downloadable", "location"} == set(files[0])


def test_data_that_are_there_are_not_fetched_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "crowd.csv"
    monkeypatch.setattr("hocal.datasets.fetch", lambda name, **_: [path] if name == "crowd" else [])

    shown = run("data", "fetch", "crowd")
    found = run("data", "fetch", "crowd", "--json").json

    assert shown.out == f"{path}\n"
    assert found == {"files": {"crowd": [str(path)]}}


def test_an_unknown_data_set_is_one_line(run: Run) -> None:
    outcome = run("data", "fetch", "nothing")

    assert outcome.code == 2
    assert "`name` must be one of" in outcome.err
    assert outcome.err.count("\n") == 1
