"""Every option of every command is honoured or refused: when it applies, and what is said else."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from command_line import Run, Study
from hocal.cli.app import app

ALWAYS = "always"
# what the commands below are completed with
FIT = "fit {long} {table} -o {out} --item item --label label"
PREDICT = "predict {model} {table} -o {out}.csv"
EVALUATE = "evaluate {model} {long} {table}"
REPORT = "report {model} {table} --json"
COMPARE = "compare {table} {table} {long} --item item"
NEXT = "next {long} -o {out}.csv --budget 10"
MONITOR = "monitor {model} {long} {table}"
WIDE = "plan --k 5 --width 0.3"
CHECK = "check {long} --item item"
LABELS = "labels {long} --item item --json"

COUNTED = "which know nobody"
NOT_LABELS = "which are the classes"
NO_ANNOTATOR = "without --annotator, which tells who judged twice"
EXPORTS = "it is about exports of tools"
PARQUET = "must be left out for Parquet"
NO_LABELS = "without --labels"
NO_MODEL = "without --model, which predicts"
NOBODY = "without --annotator: it is about people"
AS_FITTED = "the model was fitted without"
Case = str | tuple[str, str]


def of_labels(command: str, *, rules: bool = True) -> dict[str, Case]:
    """Say when the options about LABELS apply, the same for all commands that take it."""
    label = f"{command} --label label"
    counts = f"{command.replace('{long}', '{counts}')} --count-columns ant,bee,cat"
    cases: dict[str, Case] = {
        "--label": (f"{counts} --label label", "--label"),
        "--annotator": (f"{counts} --annotator who", COUNTED),
        "--count-columns": (f"{label} --count-columns ant", "--count-columns"),
        "--tool": (f"{label} --tool doccano", "which name columns of a table"),
        "--question": (f"{label} --question q", EXPORTS),
        "--several": (f"{label} --several drop", EXPORTS),
        "--names": (f"{label} --names item,label", PARQUET),
        "--missing": ALWAYS,
    }
    if rules:
        cases |= {
            "--unknown": (f"{counts} --unknown drop", NOT_LABELS),
            "--duplicates": (f"{label} --duplicates drop", NO_ANNOTATOR),
            "--unpredicted": ALWAYS,
        }
    return cases


def without_labels(command: str) -> dict[str, Case]:
    """Say the same for commands that need no labels: nothing is about them then."""
    typed = ["label x", "annotator x", "count-columns x", "tool x", "question x", "several drop"]
    typed += ["names x", "missing drop", "unknown drop", "duplicates drop", "unpredicted drop"]
    return {f"--{each.split()[0]}": (f"{command} --{each}", NO_LABELS) for each in typed}


def of_model(command: str) -> dict[str, Case]:
    """Say when the options about PROBABILITIES apply, for a model that was fitted without them."""
    return {
        "--item": ALWAYS,
        "--probability-columns": ALWAYS,
        "--cell": (f"{command} --cell cell", f"{AS_FITTED} --cell"),
        "--by": (f"{command} --by ant", f"{AS_FITTED} groups"),
        "--features": (f"{command} --features ant", f"{AS_FITTED} features"),
        "--ensemble": (f"{command} --ensemble {{table}}", "on one prediction per item"),
        "--probability-names": (f"{command} --probability-names item,a,b,c", PARQUET),
    }


WHEN: dict[str, dict[str, Case]] = {
    "fit": {
        **of_labels("fit {long} {table} -o {out} --item item"),
        **dict.fromkeys(["--output", "--item", "--unlabelled", "--classes", "--method"], ALWAYS),
        **dict.fromkeys(["--probability-columns", "--panel-size", "--engine"], ALWAYS),
        **dict.fromkeys(["--force", "--json"], ALWAYS),
        "--first": (f"{FIT} --first 2", "must be given together"),
        "--time": (f"{FIT} --time when", "must be given together"),
        "--probability-names": (f"{FIT} --probability-names item,a,b,c", PARQUET),
        "--score": (f"{FIT} --method cells --score ant", "must be items with --score"),
        "--features": (f"{FIT} --method cells --features ant", "must be items with --score"),
        "--ensemble": (f"{FIT} --score ant,bee,cat --classes ant,bee --ensemble x.csv", "--ensem"),
        "--by": (f"{FIT} --cell ant --n-cells 3 --by bee", "with --cell, which brings the cells"),
        "--cell": (f"{FIT} --cell ant", "must be given together"),
        "--n-cells": (f"{FIT} --n-cells 3", "must be given together"),
        "--partition": (f"{FIT} --cell ant --n-cells 3 --partition quantile", "with --cell"),
        "--n-slices": (f"{FIT} --partition k-means --n-slices 3", "that does not take it"),
        "--n-bins": (f"{FIT} --n-bins 3", "with a partition that does not take it"),
        "--k": (f"{FIT} --k 2", "unless with --method empirical"),
        "--spark-master": (f"{FIT} --spark-master local", "unless with --engine spark"),
        "--memory-limit": (f"{FIT} --engine spark --memory-limit 1GB", "with --engine spark"),
    },
    "predict": {
        **without_labels(PREDICT),
        **of_model(PREDICT),
        **dict.fromkeys(["--output", "--labels", "--confidence", "--simultaneous"], ALWAYS),
        **dict.fromkeys(["--entropy", "--memory-limit", "--force", "--json"], ALWAYS),
        "--objective": (f"{PREDICT} --objective majority", NO_LABELS),
    },
    "evaluate": {
        **of_labels(EVALUATE),
        **of_model(f"{EVALUATE} --label label"),
        **dict.fromkeys(["--unlabelled", "--k", "--n-resamples", "--random-state"], ALWAYS),
        **dict.fromkeys(["--confidence", "--simultaneous", "--entropy"], ALWAYS),
        **dict.fromkeys(["--memory-limit", "--json"], ALWAYS),
    },
    "report": {
        **without_labels(REPORT),
        **of_model(REPORT),
        **dict.fromkeys(["--labels", "--images", "--text", "--check", "--title"], ALWAYS),
        **dict.fromkeys(["--confidence", "--planning", "--random-state"], ALWAYS),
        "--memory-limit": ALWAYS,
        "--output": ("report {model} {table}", "--output"),
        "--image-folder": (f"{REPORT} --image-folder .", "without --images"),
        "--k": (f"{REPORT} --k 2", NO_LABELS),
        "--force": (f"{REPORT} --force", "without --output"),
        "--json": (f"{REPORT} --markdown", "one of --json and --markdown"),
        "--markdown": (f"{REPORT} --markdown", "one of --json and --markdown"),
    },
    "compare": {
        **of_labels(COMPARE),
        **dict.fromkeys(["--item", "--unlabelled", "--classes", "--probability-columns"], ALWAYS),
        **dict.fromkeys(["--loss", "--confidence", "--anytime"], ALWAYS),
        **dict.fromkeys(["--memory-limit", "--json"], ALWAYS),
        "--floor": (f"{COMPARE} --label label --loss brier --floor 0.1", "unless with --loss log"),
    },
    "next": {
        **of_labels(NEXT + " --item item"),
        **{
            option: (f"{NEXT} --item item --label label {option} x", NO_MODEL)
            for option in of_model("")
            if option != "--item"
        },
        **dict.fromkeys(["--output", "--budget", "--item", "--objective", "--limit"], ALWAYS),
        **dict.fromkeys(["--memory-limit", "--force", "--json"], ALWAYS),
        "--unpredicted": (f"{NEXT} --item item --label label --unpredicted drop", NO_MODEL),
        "--classes": (
            f"{NEXT} --label label --model {{model}} --probabilities {{table}} --classes a,b",
            "with --model, which knows them",
        ),
        "--model": (f"{NEXT} --model {{model}}", "must be given together"),
        "--probabilities": (f"{NEXT} --probabilities {{table}}", "must be given together"),
        "--first": (
            f"{NEXT} --item item --label label --first 2 --time annotator",
            "must be left out without --model",
        ),
        "--time": (f"{NEXT} --label label --time annotator", "must be given together"),
    },
    "monitor": {
        **of_labels(MONITOR),
        **of_model(f"{MONITOR} --label label"),
        **dict.fromkeys(["--unlabelled", "--state", "--output", "--confidence"], ALWAYS),
        **dict.fromkeys(["--memory-limit", "--json"], ALWAYS),
        "--force": (f"{MONITOR} --label label --force", "without --output"),
    },
    "plan": {
        "--k": ("plan --width 0.3 --n-classes 2 --k 2,3", "must be one number unless for --budget"),
        "--width": ("plan --k 2 --width 0.3 --epsilon 0.1", "exactly one of"),
        "--epsilon": ("plan --k 2 --n-items 30 --epsilon 0.1", "exactly one of"),
        "--n-items": ("plan --k 2 --width 0.3 --n-items 30", "exactly one of"),
        "--budget": ("plan --budget 100", "must come with --model"),
        "--n-classes": (f"{WIDE} --model {{model}} --n-classes 3", "with --model, which knows it"),
        "--model": ALWAYS,
        "--cell": (f"{WIDE} --n-classes 2 --cell 1", "without --model, which has cells"),
        "--labels": (f"{WIDE} --n-classes 2 --labels {{long}}", "must come with --budget"),
        **{
            option: (f"{WIDE} --n-classes 2 {option} x", NO_LABELS)
            for option in ("--item", "--label", "--count-columns", "--tool", "--names")
        },
        "--confidence": (
            "plan --budget 90 --model {model} --confidence 0.9",
            "with --budget: errors are simulated, not proved",
        ),
        "--entropy": ("plan --k 2 --epsilon 0.3 --n-classes 2 --entropy brier", "with --epsilon"),
        "--n-simulations": (f"{WIDE} --n-classes 2 --n-simulations 5", "unless with --budget"),
        "--random-state": (f"{WIDE} --n-classes 2 --random-state 5", "unless with --budget"),
        "--json": ALWAYS,
    },
    "check": {
        **of_labels(CHECK, rules=False),
        "--item": ALWAYS,
        "--time": (f"{CHECK} --label label --time annotator", NOBODY),
        "--in-order": (f"{CHECK} --label label --in-order", NOBODY),
        "--gold": (f"{CHECK} --label label --gold annotator", NOBODY),
        "--n-resamples": (f"{CHECK} --label label --n-resamples 9", NOBODY),
        "--random-state": (f"{CHECK} --label label --random-state 1", NOBODY),
        "--annotators": (f"{CHECK} --label label --annotators x.csv", NOBODY),
        "--classes": (
            "check {counts} --item item --count-columns ant,bee,cat --classes a,b,c",
            NOT_LABELS,
        ),
        "--ordinal": ALWAYS,
        "--force": (f"{CHECK} --label label --force", "without --annotators"),
        **dict.fromkeys(["--alpha", "--memory-limit", "--json"], ALWAYS),
    },
    "labels": {
        **of_labels(LABELS, rules=False),
        **dict.fromkeys(["--item", "--items", "--n-listed", "--forecast", "--title"], ALWAYS),
        **dict.fromkeys(["--confidence", "--memory-limit"], ALWAYS),
        "--output": ("labels {long} --item item --label label", "--output"),
        "--gold": (f"{LABELS} --label label --gold annotator", NOBODY),
        "--classes": (
            "labels {counts} --item item --json --count-columns ant,bee,cat --classes a,b,c",
            NOT_LABELS,
        ),
        "--ordinal": ALWAYS,
        "--duplicates": (f"{LABELS} --label label --duplicates drop", NO_ANNOTATOR),
        "--annotators": (f"{LABELS} --label label --annotators x.csv", NOBODY),
        "--force": (f"{LABELS} --label label --force", "without a file to write"),
        "--json": (f"{LABELS} --markdown", "one of --json and --markdown"),
        "--markdown": (f"{LABELS} --markdown", "one of --json and --markdown"),
    },
    "data list": dict.fromkeys(["--data-home", "--json"], ALWAYS),
    "data fetch": dict.fromkeys(["--data-home", "--json"], ALWAYS),
    "demo": dict.fromkeys(["--output", "--items", "--random-state", "--force", "--json"], ALWAYS),
}
CASES = [
    pytest.param(option, *case, id=f"{command} {option}")
    for command, options in WHEN.items()
    for option, case in options.items()
    if not isinstance(case, str)
]


def commands(group: Any, above: str = "") -> dict[str, Any]:
    found = {}
    for name, command in group.commands.items():
        own = f"{above}{name}"
        found |= commands(command, f"{own} ") if hasattr(command, "commands") else {own: command}
    return found


def test_it_is_known_of_every_option_when_it_applies() -> None:
    known = {
        name: {option for each in command.params for option in each.opts if option[:2] == "--"}
        for name, command in commands(typer.main.get_command(app)).items()
    }

    assert {name: set(options) for name, options in WHEN.items()} == known


@pytest.mark.parametrize(("option", "arguments", "message"), CASES)
def test_an_option_that_would_do_nothing_is_refused(
    run: Run, study: Study, tmp_path: Path, option: str, arguments: str, message: str
) -> None:
    files = {
        "long": study / "labels.parquet",
        "counts": study / "counts.parquet",
        "table": study / "predictions.parquet",
        "model": study / "model.hocal",
        "out": str(tmp_path / "out"),
    }

    outcome = run(*shlex.split(arguments.format(**files)))

    assert outcome.code == 2
    assert outcome.err.startswith("hocal: ")
    assert option in outcome.err
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_several_answers_of_a_tool_are_asked_about_in_exports_alone(
    run: Run, tmp_path: Path
) -> None:
    """An export names its people itself, so that a column with them is refused."""
    export = tmp_path / "export.jsonl"
    rows = [{"id": n, "text": "a", "label": ["x"], "annotator": f"p{n % 2}"} for n in range(4)]
    export.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")

    outcome = run("check", str(export), "--tool", "doccano", "--annotator", "who")

    assert outcome.code == 2
    assert "`--annotator` must be left out for an export" in outcome.err
