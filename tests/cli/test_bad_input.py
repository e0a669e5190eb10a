"""Bad input: exit code 2, one clear line, no traceback, and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from command_line import Run, Study

LONG = ["--item", "item", "--label", "label", "--n-slices", "2"]
PREDICTIONS = "item,ant,bee,cat\n1,0.2,0.3,0.5\n2,1,0,0\n"
LABELS = "item,label\n1,ant\n1,bee\n2,cat\n"

LABEL_TABLES = {
    "too many columns": (
        "item,label\n1,ant\n2,bee,x\n",
        "labels.csv, line 3: Expected Number of Columns: 2 Found: 3",
    ),
    "too few columns": (
        "item,label\n1,ant\n2\n",
        "labels.csv, line 3: Expected Number of Columns: 2 Found: 1",
    ),
    "open quote": (
        'item,label\n1,"ant\n2,bee\n',
        "labels.csv, line 2: Value with unterminated quote found",
    ),
    "empty file": ("", "labels.csv must begin with the names of its columns, got an empty file."),
    "repeated column": (
        "item,item\n1,2\n",
        "must have distinct names of columns, got 'item', 'item'.",
    ),
    "missing column": ("item,choice\n1,ant\n", "must have a column 'label', got 'item', 'choice'."),
    "other item": (
        "image,label\n1,ant\n",
        "must have the same name in both tables: rename it in one of them.",
    ),
    "semicolons": (
        "item;label\n1;ant\n",
        "It is separated by semicolons: write it with commas, or with tabs as .tsv.",
    ),
    "only a header": ("item,label\n", "must have at least one row"),
    "unknown label": (
        "item,label\n1,dog\n2,ant\n",
        "'dog' in 1 row (item '1'). Correct them, add them to --classes, or",
    ),
    "missing label": ("item,label\n1,\n2,ant\n", "--missing drop"),
    "no labels": ("item,label\n1,ant\n", "--unlabelled drop"),
}
PREDICTION_TABLES = {
    "text": (
        PREDICTIONS.replace("1,0,0", "1,x,0"),
        'predictions.csv, line 3: Error when converting column "bee"',
    ),
    "column of text": (
        "item,ant,bee,cat,model\n1,0.2,0.3,0.5,v7\n2,1,0,0,v7\n",
        "predictions.csv must hold probabilities, got 'v7'. "
        "Columns taken as probabilities: ant, bee, cat, model. "
        "If one of them is something else, name those that are with --probability-columns.",
    ),
    "sum": (PREDICTIONS.replace("0.3", "0.4"), "must sum to 1 over the classes, got 1.1"),
    "column of numbers": (
        "item,ant,bee,cat,year\n1,0.2,0.3,0.5,2026\n2,1,0,0,2026\n",
        "Columns taken as probabilities: ant, bee, cat, year. If one",
    ),
    "rounded": (
        PREDICTIONS.replace("0.3", "0.299"),
        "got 0.999 for item '1'. Write more digits, or divide each row by its sum before "
        "writing the file. Columns taken",
    ),
    "logits": (
        PREDICTIONS.replace("0.3", "-0.3"),
        "Apply softmax if they are logits. Columns taken",
    ),
    "gap": (
        PREDICTIONS.replace("0.3", ""),
        "PROBABILITIES must be non-negative numbers, got nan for item '1'",
    ),
    "no predictions": ("item,ant,bee,cat\n1,0.2,0.3,0.5\n", "--unpredicted drop"),
    "repeated prediction": (PREDICTIONS + "2,0,1,0\n", "must have one row for each item"),
    "no probabilities": ("item\n1\n", "must have columns of probabilities besides 'item'."),
    "short list": (
        "item,p\n1,[1]\n",
        "predictions.csv must hold lists of at least two probabilities, one for each class, got 1.",
    ),
}
OPTIONS = {
    "one role": ("--probability-columns ant,item", "must have one role only."),
    "number of classes": (
        "--classes ant,bee",
        "must name a different column for each of the 2 classes",
    ),
    "no lists": (
        "--probability-columns ant",
        "'0.2' can't be cast to the destination type DOUBLE[]",
    ),
    "partition": (
        "--partition random",
        "`--partition` must be one of hocal, such as top-label or uniform, "
        "or one that --import brought, "
        "got 'random'.",
    ),
    "cells": ("--n-cells 3", "`--cell` and `--n-cells` must be given together."),
    "slices": ("--n-slices 0", "`--n-slices` must be an integer of at least 1, got 0."),
    "engine": ("--engine abacus", "`--engine` must be one of 'duckdb', 'spark', got 'abacus'."),
    "memory": ("--memory-limit much", "Memory must have a number"),
    "little memory": ("--memory-limit 1MB", "Raise --memory-limit."),
    "list": ("--classes [ant", "`--classes` must be a list separated by commas, or JSON, got [ant"),
    "empty list": (
        "--classes=",
        "`--classes` must be a list with at least one entry, got ''. Leave the option out instead.",
    ),
    "empty JSON": ("--classes []", "`--classes` must be a list with at least one entry, got '[]'."),
}


def assert_one_line(code: int, err: str) -> None:
    assert code == 2
    assert err.startswith("hocal: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def fit_texts(run: Run, folder: Path, labels: str, predictions: str, *options: str) -> str:
    """Fit tables given as text, and return the one line that says why that cannot be."""
    (folder / "labels.csv").write_text(labels, "utf-8")
    (folder / "predictions.csv").write_text(predictions, "utf-8")
    files = [str(folder / "labels.csv"), str(folder / "predictions.csv")]
    outcome = run("fit", *files, *LONG, "-o", str(folder / "m.hocal"), *options)
    assert_one_line(outcome.code, outcome.err)
    assert sorted(path.name for path in folder.iterdir()) == ["labels.csv", "predictions.csv"]
    return outcome.err


@pytest.mark.parametrize("case", LABEL_TABLES)
def test_a_bad_table_of_labels_is_said_in_one_line(run: Run, tmp_path: Path, case: str) -> None:
    labels, message = LABEL_TABLES[case]

    assert message in fit_texts(run, tmp_path, labels, PREDICTIONS)


@pytest.mark.parametrize("case", PREDICTION_TABLES)
def test_a_bad_table_of_predictions_is_said_in_one_line(
    run: Run, tmp_path: Path, case: str
) -> None:
    predictions, message = PREDICTION_TABLES[case]

    assert message in fit_texts(run, tmp_path, LABELS, predictions)


@pytest.mark.parametrize("case", OPTIONS)
def test_a_bad_option_is_said_in_one_line(run: Run, tmp_path: Path, case: str) -> None:
    options, message = OPTIONS[case]

    assert message in fit_texts(run, tmp_path, LABELS, PREDICTIONS, *options.split())


def test_one_column_of_numbers_is_no_column_of_lists(
    run: Run, study: Study, tmp_path: Path
) -> None:
    files = [study / "model.hocal", study / "predictions.parquet"]
    outcome = run(
        "predict", *files, "--probability-columns", "ant", "-o", str(tmp_path / "out.csv")
    )

    assert_one_line(outcome.code, outcome.err)
    assert "must hold lists. Name the columns of all classes otherwise." in outcome.err


def test_neither_labels_nor_counts_is_an_error(run: Run, study: Study, tmp_path: Path) -> None:
    files = [study / "labels.csv", study / "predictions.csv"]
    outcome = run("fit", *files, "--item", "item", "-o", str(tmp_path / "m.hocal"))

    assert_one_line(outcome.code, outcome.err)
    assert "`--label` must be given, unless --count-columns is." in outcome.err


def test_an_evaluation_without_labels_names_the_options(run: Run, study: Study) -> None:
    outcome = run(
        "evaluate", study / "model.hocal", study / "labels.csv", study / "predictions.csv"
    )

    assert_one_line(outcome.code, outcome.err)
    assert "`--label` must be given, unless --count-columns is." in outcome.err


@pytest.mark.parametrize("command", ["evaluate", "predict", "report"])
def test_every_command_names_the_columns_of_rounded_probabilities(
    run: Run, study: Study, tmp_path: Path, command: str
) -> None:
    (tmp_path / "p.csv").write_text("item,ant,bee,cat\n1,0.2,0.3,0.499\n0,0.2,0.3,0.5\n", "utf-8")
    predictions = str(tmp_path / "p.csv")
    arguments = {
        "evaluate": [
            study / "labels.csv",
            predictions,
            "--label",
            "label",
            "--unpredicted",
            "drop",
        ],
        "predict": [predictions, "-o", str(tmp_path / "out.csv")],
        "report": [predictions, "--json"],
    }
    outcome = run(command, study / "model.hocal", *arguments[command])

    assert_one_line(outcome.code, outcome.err)
    assert "got 0.999 for item '1'" in outcome.err
    assert "Write more digits, or divide each row by its sum" in outcome.err
    assert "Columns taken as probabilities: ant, bee, cat." in outcome.err


@pytest.mark.parametrize("rule", ["unlabelled", "unpredicted"])
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_an_unknown_rule_for_items_is_refused(
    run: Run, study: Study, tmp_path: Path, command: str, rule: str
) -> None:
    files = [study / "counts.csv", study / "predictions.csv"]
    model = [study / "model.hocal"] if command == "evaluate" else []
    output = ["-o", str(tmp_path / "m.hocal")] if command == "fit" else []
    counts = ["--item", "item", "--count-columns", "ant,bee,cat"]
    outcome = run(command, *model, *files, *counts, *output, f"--{rule}", "maybe")

    assert_one_line(outcome.code, outcome.err)
    assert f"`--{rule}` must be one of 'error', 'drop', got 'maybe'." in outcome.err


def test_lists_of_another_length_than_the_classes_are_refused(
    run: Run, study: Study, tmp_path: Path
) -> None:
    files = [study / "labels.parquet", study / "lists.parquet"]
    outcome = run(
        "fit", *files, *LONG, "--classes", "ant,bee,cat,dog", "-o", str(tmp_path / "m.hocal")
    )

    assert_one_line(outcome.code, outcome.err)
    assert (
        "lists.parquet must hold lists of 4 probabilities, one for each class, got 3."
        in outcome.err
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "torn.csv.gz",
            "torn.csv.gz must be a table of text, got something else: Not a gzipped file",
        ),
        (
            "s3://bucket/labels.csv",
            "s3://bucket/labels.csv must be a file on this machine, or Parquet",
        ),
    ],
    ids=["gzip", "network"],
)
def test_a_table_whose_first_line_cannot_be_read_is_named(
    run: Run, study: Study, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "torn.csv.gz").write_bytes(b"not compressed")
    path = name if "://" in name else str(tmp_path / name)
    outcome = run("fit", path, study / "predictions.csv", *LONG, "-o", str(tmp_path / "m.hocal"))

    assert_one_line(outcome.code, outcome.err)
    assert message in outcome.err


def test_bytes_that_are_not_utf_8_are_located(run: Run, study: Study, tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"item,label\n1,ant\n2,\xe9t\xe9\n")
    outcome = run(
        "fit",
        str(tmp_path / "latin.csv"),
        study / "predictions.csv",
        *LONG,
        "-o",
        str(tmp_path / "m.hocal"),
    )

    assert_one_line(outcome.code, outcome.err)
    assert "latin.csv, line 3: Invalid unicode" in outcome.err


@pytest.mark.parametrize("name", ["labels.xlsx", "labels.parquet.gz", "labels"])
def test_other_endings_are_refused(run: Run, study: Study, tmp_path: Path, name: str) -> None:
    outcome = run(
        "fit", study / name, study / "predictions.csv", *LONG, "-o", str(tmp_path / "m.hocal")
    )

    assert_one_line(outcome.code, outcome.err)
    assert f"{name} must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet." in outcome.err


def test_a_missing_file_is_named(run: Run, study: Study, tmp_path: Path) -> None:
    outcome = run(
        "fit",
        study / "absent-*.csv",
        study / "predictions.csv",
        *LONG,
        "-o",
        str(tmp_path / "m.hocal"),
    )

    assert_one_line(outcome.code, outcome.err)
    assert "absent-*.csv" in outcome.err


def test_files_with_different_headers_are_refused(run: Run, study: Study, tmp_path: Path) -> None:
    (tmp_path / "part-1.csv").write_text(LABELS, "utf-8")
    (tmp_path / "part-2.csv").write_text(LABELS.replace("item,label", "label,item"), "utf-8")
    outcome = run(
        "fit",
        str(tmp_path / "part-*.csv"),
        study / "predictions.csv",
        *LONG,
        "-o",
        str(tmp_path / "m.hocal"),
    )

    assert_one_line(outcome.code, outcome.err)
    assert "part-2.csv must have the columns of " in outcome.err


def test_a_broken_parquet_file_is_one_line(run: Run, study: Study, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_text("not parquet at all", "utf-8")
    outcome = run(
        "predict",
        study / "model.hocal",
        str(tmp_path / "bad.parquet"),
        "-o",
        str(tmp_path / "out.csv"),
    )

    assert_one_line(outcome.code, outcome.err)
    assert "bad.parquet" in outcome.err


def test_a_model_of_another_version_is_refused(run: Run, study: Study, tmp_path: Path) -> None:
    save_file(
        load_file(study / "model.hocal"),
        tmp_path / "m.hocal",
        {"format": "hocal-calibrator", "version": "999"},
    )
    files = [str(tmp_path / "m.hocal"), study / "predictions.csv"]
    outcome = run("predict", *files, "-o", str(tmp_path / "out.csv"))

    assert_one_line(outcome.code, outcome.err)
    assert "must name a file of version 7, got version 999" in outcome.err


@pytest.mark.parametrize("content", [b"", b"something else", None])
def test_a_corrupt_model_is_refused(
    run: Run, study: Study, tmp_path: Path, content: bytes | None
) -> None:
    whole = Path(study / "model.hocal").read_bytes()
    (tmp_path / "m.hocal").write_bytes(whole[:-9] if content is None else content)
    outcome = run(
        "predict",
        str(tmp_path / "m.hocal"),
        study / "predictions.csv",
        "-o",
        str(tmp_path / "out.csv"),
    )

    assert_one_line(outcome.code, outcome.err)
    assert "hocal: MODEL must name a complete file written by hocal.save" in outcome.err


def test_a_missing_model_is_named(run: Run, study: Study, tmp_path: Path) -> None:
    outcome = run(
        "evaluate",
        study / "no.hocal",
        study / "labels.csv",
        study / "predictions.csv",
        "--label",
        "label",
    )

    assert_one_line(outcome.code, outcome.err)
    assert "no.hocal. Make one with `hocal fit`." in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output", ["no folder/out.csv", "file/out.csv", ""])
def test_an_output_that_cannot_be_written_is_named(
    run: Run, study: Study, tmp_path: Path, output: str
) -> None:
    (tmp_path / "file").touch()
    path = str(tmp_path / output) if output else f"{tmp_path}.csv"
    if not output:
        Path(path).mkdir()
    outcome = run("predict", study / "model.hocal", study / "predictions.csv", "-o", path)

    assert_one_line(outcome.code, outcome.err)
    assert path in outcome.err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("predict m.hocal p.csv", "--output"),
        ("fit l.csv p.csv --item item --label label", "--output"),
        ("labels l.csv --json", "--items"),
        ("check l.csv", "--annotators"),
        ("demo", "--output"),
    ],
)
def test_a_folder_that_is_not_there_is_said_with_the_option(
    run: Run, tmp_path: Path, command: str, option: str
) -> None:
    path = tmp_path / "no folder" / ("page.html" if command == "demo" else "file.csv")
    outcome = run(*command.split(), option, str(path))

    assert_one_line(outcome.code, outcome.err)
    assert outcome.err == (
        f"hocal: `{option}` must be in a folder that is there, got {path}. "
        "Make the folder first, or choose another.\n"
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fit", "Missing argument 'LABELS'. See `hocal fit --help`."),
        ("predict m.hocal p.csv", "Missing option '--output' / '-o'. See `hocal predict --help`."),
        ("plan --nonsense", "No such option: --nonsense"),
        ("plan --budget many", "Invalid value for '--budget': "),
        ("nonsense", "No such command 'nonsense'. See `hocal --help`."),
    ],
)
def test_what_typer_refuses_is_said_in_one_line(run: Run, command: str, message: str) -> None:
    outcome = run(*command.split())

    assert_one_line(outcome.code, outcome.err)
    assert message in outcome.err


def test_nothing_typed_shows_help_and_no_error(run: Run) -> None:
    outcome = run()

    assert (outcome.code, outcome.err) == (2, "")
    assert "Usage: hocal" in outcome.out


def test_a_line_of_a_file_with_windows_line_ends_is_shown(run: Run, tmp_path: Path) -> None:
    predictions = PREDICTIONS.replace("1,0,0", "1,x,0").replace("\n", "\r\n")
    (tmp_path / "predictions.csv").write_bytes(predictions.encode())
    (tmp_path / "labels.csv").write_text(LABELS, "utf-8")
    files = [str(tmp_path / "labels.csv"), str(tmp_path / "predictions.csv")]
    outcome = run("fit", *files, *LONG, "-o", str(tmp_path / "m.hocal"))

    assert_one_line(outcome.code, outcome.err)
    assert outcome.err.endswith("The line is: 2,1,x,0\n")


def test_an_output_of_another_kind_is_refused(run: Run, study: Study, tmp_path: Path) -> None:
    outcome = run(
        "predict",
        study / "model.hocal",
        study / "predictions.csv",
        "-o",
        str(tmp_path / "out.xlsx"),
    )

    assert_one_line(outcome.code, outcome.err)
    assert "out.xlsx must end in" in outcome.err


def test_an_existing_output_is_kept_unless_forced(run: Run, study: Study, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("precious")
    arguments = [
        "predict",
        study / "model.hocal",
        study / "predictions.csv",
        "-o",
        str(tmp_path / "out.csv"),
    ]

    refused, kept = run(*arguments), (tmp_path / "out.csv").read_text()
    forced = run(*arguments, "--force")

    assert_one_line(refused.code, refused.err)
    assert (kept, forced.code) == ("precious", 0)
    assert (tmp_path / "out.csv").read_text().startswith('"item","cell","top_class"')


def test_a_traceback_is_shown_on_request(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    from hocal.cli import main

    monkeypatch.setenv("HOCAL_TRACEBACK", "1")
    with pytest.raises(FileNotFoundError, match="No calibrator at"):
        main(["predict", study / "no.hocal", study / "predictions.csv", "-o", study / "never.csv"])


def test_characters_that_a_terminal_obeys_are_written_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,\x1b[2Jlabel\n1,ant\n")

    outcome = run("check", str(tmp_path / "labels.csv"), "--item", "item", "--label", "label")

    assert outcome.code == 2
    assert "\\x1b[2Jlabel" in outcome.err
    assert "\x1b" not in outcome.err
