"""Exports of annotation tools: made-up files in the forms that the tools' documentation shows."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hocal
from hocal.annotations.exports import Annotations, ExportFile, Response, register_tool
from hocal.annotations.exports.registry import _TOOLS

Row = tuple[str, Any, str]

LABEL_STUDIO = [
    {
        "id": 1,
        "data": {"image": "näher/a.jpg"},
        "annotations": [
            {
                "id": 11,
                "completed_by": 4,
                "was_cancelled": False,
                "ground_truth": False,
                "result": [
                    {
                        "from_name": "animal",
                        "to_name": "image",
                        "type": "choices",
                        "value": {"choices": ["Katze"]},
                    }
                ],
            },
            {
                "id": 12,
                "completed_by": {"id": 5, "email": "bo@example.org"},
                "result": [
                    {"from_name": "animal", "type": "choices", "value": {"choices": ["Hund"]}}
                ],
            },
            {"id": 13, "completed_by": 6, "was_cancelled": True, "result": []},
        ],
        "predictions": [
            {"result": [{"from_name": "animal", "value": {"choices": ["Fisch"]}}]},
        ],
    },
    {"id": 2, "data": {"image": "b.jpg"}, "annotations": []},
    {
        "id": 3,
        "data": {"image": "c.jpg"},
        "annotations": [{"id": 14, "completed_by": 4, "result": []}],
    },
]
LABEL_STUDIO_MIN = [
    {
        "text": "So so",
        "id": 1,
        "mood": "bad",
        "annotator": 3,
        "annotation_id": 8,
        "created_at": "2024-05-01",
        "updated_at": "2024-05-01",
        "lead_time": 2.5,
    },
    {
        "text": "So so",
        "id": 1,
        "mood": {"choices": ["bad", "good"]},
        "annotator": 4,
        "annotation_id": 9,
        "created_at": "2024-05-01",
        "updated_at": "2024-05-01",
        "lead_time": 3.5,
    },
]
LABEL_STUDIO_CSV = """text,id,mood,annotator,annotation_id,created_at,updated_at,lead_time
"So, so",1,bad,3,8,2024-05-01,2024-05-01,2.5
"So, so",1,good,4,9,2024-05-01,2024-05-01,3.5
"""
ARGILLA = [
    {
        "id": "r1",
        "fields": {"text": "So so"},
        "metadata": {"page": 3},
        "suggestions": {"mood": {"value": "good", "agent": "model"}},
        "responses": {
            "mood": [{"value": "bad", "user_id": "u1"}, {"value": "good", "user_id": "u2"}],
            "stars": [{"value": 2, "user_id": "u1"}],
        },
        "status": "completed",
    },
    {"id": "r2", "fields": {"text": "Well"}, "responses": {}, "status": "pending"},
]
ARGILLA_FLAT = [
    {
        "id": "r1",
        "status": "completed",
        "text": "So so",
        "mood.responses": ["bad", "good", "good", "bad"],
        "mood.responses.users": ["u1", "u2", "u3", "u4"],
        "mood.responses.status": ["submitted", "submitted", "draft", "discarded"],
        "mood.suggestion": "good",
    }
]
ARGILLA_FIRST = [
    {
        "id": "r1",
        "fields": {"text": "So so"},
        "responses": [
            {"user_id": "u1", "status": "submitted", "values": {"mood": {"value": "bad"}}},
            {"user_id": "u2", "status": "discarded", "values": {}},
        ],
    }
]
ARGILLA_DATASET = [
    {
        "id": "r1",
        "text": "So so",
        "mood": [
            {"user_id": "u1", "value": "bad", "status": "submitted"},
            {"user_id": "u2", "value": "good", "status": "draft"},
        ],
    }
]
DOCCANO = {
    "anna.jsonl": [
        {"id": 1, "text": "どうも", "label": ["gut"], "Comments": []},
        {"id": 2, "text": "Na ja", "label": ["schlecht"]},
    ],
    "bo.jsonl": [{"id": 1, "text": "どうも", "label": ["schlecht"]}, {"id": 2, "label": []}],
}
PRODIGY_OPTIONS = [{"id": "good", "text": "Good"}, {"id": "bad", "text": "Bad"}]
PRODIGY = [
    {
        "text": "So so",
        "_input_hash": 5,
        "_task_hash": 6,
        "options": PRODIGY_OPTIONS,
        "accept": accept,
        "answer": answer,
        "_view_id": "choice",
        "_annotator_id": person,
    }
    for accept, answer, person in [
        (["good"], "accept", "mood-ann"),
        (["bad"], "accept", "mood-bo"),
        (["bad"], "reject", "mood-cem"),
        ([], "ignore", "mood-dee"),
        ([], "accept", "mood-eva"),
    ]
]
MTURK = """HITId,HITTypeId,AssignmentId,WorkerId,AssignmentStatus,Input.url,Answer.category.label
H1,T,A1,W1,Approved,http://x/1.jpg,cat
H1,T,A2,W2,Submitted,http://x/1.jpg,dog
H1,T,A3,W3,Rejected,http://x/1.jpg,cat
"""
TOLOKA = (
    "INPUT:image\tOUTPUT:result\tGOLDEN:result\tHINT:text\tASSIGNMENT:link\t"
    "ASSIGNMENT:assignment_id\tASSIGNMENT:worker_id\tASSIGNMENT:status\tASSIGNMENT:started\n"
    "1.jpg\tcat\t\t\tlink\ta1\tw1\tAPPROVED\t2021-01-01\n"
    "2.jpg\tdog\tcat\t\tlink\ta1\tw1\tAPPROVED\t2021-01-01\n"
    "\t\t\t\t\t\t\t\t\n"
    '1.jpg\t"the ""big"" dog"\t\t\tlink\ta2\tw2\tSUBMITTED\t2021-01-01\n'
    "1.jpg\tcat\t\t\tlink\ta3\tw3\tREJECTED\t2021-01-01\n"
)
POTATO = {
    "id": "item_1",
    "displayed_text": "So so",
    "label_annotations": {"mood": {"good": "true"}},
    "span_annotations": {},
    "behavioral_data": {"time_string": "Time spent: 0d 0h 0m 1s "},
}
POTATO_TSV = (
    "user\tinstance_id\tdisplayed_text\tmood:::good\tmood:::bad\n"
    "ann@x.org\titem_1\tSo so\ttrue\t\n"
    "bo@x.org\titem_1\tSo so\t\ttrue\n"
)
LEWIDI_2023 = {
    "1": {
        "text": "So so",
        "task": "hate speech",
        "number of annotations": 3,
        "annotations": "0,1,0",
        "annotators": "Ann1,Ann2,Ann3",
        "hard_label": "0",
        "soft_label": {"0": 0.67, "1": 0.33},
        "split": "train",
    }
}
LEWIDI_2025 = {
    "7": {
        "annotation task": "sarcasm detection",
        "text": {"context": "Rain again.", "response": "Lovely."},
        "number of annotators": 2,
        "annotators": "Ann1,Ann2",
        "annotations": {"Ann1": "6", "Ann2": "4"},
        "soft_label": {"4": 0.5, "6": 0.5},
    },
    "8": {"annotations": "", "annotators": "", "soft_label": {}},
}


def lines(records: list[Any]) -> str:
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records) + "\n"


def write(folder: Path, name: str, content: Any) -> Path:
    """Write text as it is, and anything else as JSON or JSON lines by its ending."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, str):
        content = lines(content) if name.endswith(".jsonl") else json.dumps(content)
    path.write_text(content, encoding="utf-8")
    return path


def rows(table: dict[str, list[Any]]) -> list[Row]:
    return list(zip(table["item"], table["label"], table["annotator"], strict=True))


CASES: dict[str, tuple[str, Any, str, list[Row], dict[str, int]]] = {
    "Label Studio JSON": (
        "export.json",
        LABEL_STUDIO,
        "label-studio",
        [("1", "Katze", "4"), ("1", "Hund", "bo@example.org")],
        {"cancelled": 1, "unanswered": 1},
    ),
    "Label Studio CSV": (
        "export.csv",
        LABEL_STUDIO_CSV,
        "label-studio",
        [("1", "bad", "3"), ("1", "good", "4")],
        {},
    ),
    "Argilla flattened": (
        "records.json",
        ARGILLA_FLAT,
        "argilla",
        [("r1", "bad", "u1"), ("r1", "good", "u2")],
        {"draft": 1, "discarded": 1},
    ),
    "Argilla with responses of people": (
        "records.jsonl",
        ARGILLA_FIRST,
        "argilla",
        [("r1", "bad", "u1")],
        {"discarded": 1},
    ),
    "Argilla as a dataset": (
        "records.json",
        ARGILLA_DATASET,
        "argilla",
        [("r1", "bad", "u1")],
        {"draft": 1},
    ),
    "Argilla as columns": (
        "records.json",
        {name: [value] for name, value in ARGILLA_FLAT[0].items()},
        "argilla",
        [("r1", "bad", "u1"), ("r1", "good", "u2")],
        {"draft": 1, "discarded": 1},
    ),
    "Prodigy": (
        "choices.jsonl",
        PRODIGY,
        "prodigy",
        [("5", "good", "mood-ann"), ("5", "bad", "mood-bo")],
        {"rejected": 1, "ignored": 1, "unanswered": 1},
    ),
    "Mechanical Turk": (
        "Batch_1_batch_results.csv",
        MTURK,
        "mturk",
        [("H1", "cat", "W1"), ("H1", "dog", "W2")],
        {"rejected": 1},
    ),
    "Toloka": (
        "assignments.tsv",
        TOLOKA,
        "toloka",
        [("1.jpg", "cat", "w1"), ("1.jpg", 'the "big" dog', "w2")],
        {"rejected": 1},
    ),
    "Potato as a table": (
        "annotated_instances.tsv",
        POTATO_TSV,
        "potato",
        [("item_1", "good", "ann@x.org"), ("item_1", "bad", "bo@x.org")],
        {},
    ),
    "LeWiDi of 2023": (
        "HS_train.json",
        LEWIDI_2023,
        "lewidi",
        [("1", "0", "Ann1"), ("1", "1", "Ann2"), ("1", "0", "Ann3")],
        {},
    ),
    "LeWiDi of 2025": (
        "CSC_train.json",
        LEWIDI_2025,
        "lewidi",
        [("7", "6", "Ann1"), ("7", "4", "Ann2")],
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_export_is_recognised_and_read(case: str, tmp_path: Path) -> None:
    name, content, tool, expected, left_out = CASES[case]
    found = hocal.read_annotations(write(tmp_path, name, content))

    assert (found.tool, rows(found.table), found.left_out) == (tool, expected, left_out)


@pytest.mark.parametrize("case", CASES)
def test_naming_the_tool_reads_the_same(case: str, tmp_path: Path) -> None:
    name, content, tool, _, _ = CASES[case]
    path = write(tmp_path, name, content)

    assert hocal.read_annotations(path, tool=tool) == hocal.read_annotations(path)


@pytest.mark.parametrize("case", CASES)
def test_reading_leaves_the_file_as_it_is(case: str, tmp_path: Path) -> None:
    path = write(tmp_path, *CASES[case][:2])
    before = path.read_bytes()
    hocal.read_annotations(path)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_field_of_the_data_can_name_the_items(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.json", LABEL_STUDIO), item="image")

    assert found.table["item"] == ["näher/a.jpg", "näher/a.jpg"]


def test_an_input_of_mechanical_turk_can_name_the_items(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.csv", MTURK), item="url")

    assert set(found.table["item"]) == {"http://x/1.jpg"}


def test_judgements_flow_into_counts(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.json", LEWIDI_2023))
    labels = hocal.count_labels(found.table, item="item", label="label", annotator="annotator")

    assert (labels.classes, labels.counts.tolist()) == (("0", "1"), [[2, 1]])


@pytest.mark.parametrize("classes", [None, ("1", "0", "2")])
def test_an_export_counts_without_a_dataframe_library(
    classes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.json", LEWIDI_2023 | {"0": LEWIDI_2023["1"]}))
    columns = {"item": "item", "label": "label", "annotator": "annotator"}
    expected = hocal.count_labels(found.table, **columns, classes=classes)
    monkeypatch.setattr("hocal.annotations.tables.find_spec", lambda _: None)
    counted = found.count(classes=classes)

    assert counted.items.tolist() == expected.items.tolist() == ["0", "1"]
    assert counted.classes == expected.classes
    assert counted.counts.tolist() == expected.counts.tolist()


def test_sorted_columns_of_label_studio_leave_the_question_open(tmp_path: Path) -> None:
    header = "annotation_id,annotator,created_at,id,lead_time,mood,text,updated_at"
    path = write(tmp_path, "a.csv", f"{header}\n8,3,2024-05-01,1,2.5,bad,So so,2024-05-01\n")

    with pytest.raises(hocal.InputError, match="It has 'mood', 'text'"):
        hocal.read_annotations(path)
    assert rows(hocal.read_annotations(path, question="mood").table) == [("1", "bad", "3")]


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][0].endswith(".json")])
def test_an_export_that_was_cut_off_is_never_half_read(case: str, tmp_path: Path) -> None:
    path = write(tmp_path, *CASES[case][:2])
    whole = path.read_text(encoding="utf-8")
    for end in range(1, len(whole), 97):
        path.write_text(whole[:end], encoding="utf-8")
        with pytest.raises(hocal.InputError, match="must be whole JSON"):
            hocal.read_annotations(path)


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.json", ARGILLA), question="stars")

    assert found.table == {"item": ["r1"], "label": [2], "annotator": ["u1"]}


def test_one_of_several_questions_is_read(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.json", ARGILLA), question="mood")

    assert found.questions == ("mood", "stars")
    assert rows(found.table) == [("r1", "bad", "u1"), ("r1", "good", "u2")]


def test_control_tasks_of_toloka_are_apart_with_their_known_answer(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.tsv", TOLOKA))

    assert found.gold == {
        "item": ["2.jpg"],
        "label": ["dog"],
        "annotator": ["w1"],
        "gold": ["cat"],
    }


def test_items_with_a_ground_truth_of_label_studio_are_apart(tmp_path: Path) -> None:
    truth: dict[str, Any] = json.loads(json.dumps(LABEL_STUDIO[0]))
    truth["id"] = 9
    truth["annotations"][0]["ground_truth"] = True
    found = hocal.read_annotations(write(tmp_path, "a.json", [*LABEL_STUDIO, truth]))

    assert rows(found.gold) == [("9", "Hund", "bo@example.org")]
    assert found.gold["gold"] == ["Katze"]
    assert found.left_out["ground truth"] == 1


def test_what_a_reviewer_decided_in_prodigy_is_gold(tmp_path: Path) -> None:
    reviewed = PRODIGY[0] | {
        "_input_hash": 9,
        "versions": [
            {"accept": ["good"], "options": PRODIGY_OPTIONS, "sessions": ["mood-ann"]},
            {"accept": ["bad"], "options": PRODIGY_OPTIONS, "sessions": ["mood-bo"]},
        ],
    }
    found = hocal.read_annotations(write(tmp_path, "a.jsonl", [*PRODIGY, reviewed]))

    assert rows(found.gold) == [("9", "good", "mood-ann"), ("9", "bad", "mood-bo")]
    assert found.gold["gold"] == ["good", "good"]


def test_accept_and_reject_are_the_answers_to_one_label_of_prodigy(tmp_path: Path) -> None:
    shown = {"text": "So so", "_input_hash": 5, "label": "SAD"}
    answers = [("accept", "a"), ("reject", "b"), ("ignore", "c")]
    content = [shown | {"answer": answer, "_session_id": who} for answer, who in answers]
    found = hocal.read_annotations(write(tmp_path, "a.jsonl", content))

    assert found.question == "SAD"
    assert rows(found.table) == [("5", "accept", "a"), ("5", "reject", "b")]
    assert found.left_out == {"ignored": 1}


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_doccano_names_people_by_their_files(form: str, tmp_path: Path) -> None:
    for name, content in DOCCANO.items():
        write(tmp_path / "export", name, content[:1])
    path = tmp_path / "export"
    if form == "zip":
        path = tmp_path / "export.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in DOCCANO.items():
                archive.writestr(name, lines(content[:1]))
    found = hocal.read_annotations(path)

    assert rows(found.table) == [("1", "gut", "anna"), ("1", "schlecht", "bo")]


def test_doccano_of_early_versions_has_users_in_its_records(tmp_path: Path) -> None:
    given = [{"label": 2, "user": 1}, {"label": 3, "user": 5}]
    path = write(tmp_path, "a.jsonl", [{"id": 1, "text": "So so", "annotations": given}])

    assert rows(hocal.read_annotations(path).table) == [("1", 2, "1"), ("1", 3, "5")]


def test_a_folder_of_potato_names_people_by_their_folders(tmp_path: Path) -> None:
    other = POTATO | {"label_annotations": {"mood": {"bad": "true"}}}
    write(tmp_path, "ann/annotated_instances.jsonl", [POTATO])
    write(tmp_path, "ann/annotation_order.txt", "item_1")
    write(tmp_path, "ann/assigned_user_data.json", {"item_1": {}})
    write(tmp_path, "bo/annotated_instances.jsonl", [other])
    write(tmp_path, "annotated_instances.tsv", POTATO_TSV)  # repeats all of them
    found = hocal.read_annotations(tmp_path)

    assert rows(found.table) == [("item_1", "good", "ann"), ("item_1", "bad", "bo")]


@pytest.mark.parametrize(
    "given",
    [
        {"mood": {"labels": {"good": True, "bad": False}}},
        [[{"schema": "mood", "name": "good"}, "true"]],
    ],
    ids=["documented", "pairs"],
)
def test_a_state_of_potato_is_read(given: Any, tmp_path: Path) -> None:
    state = {"user_id": "ann", "instance_id_to_label_to_value": {"item_1": given}}
    write(tmp_path, "ann/user_state.json", state)

    assert rows(hocal.read_annotations(tmp_path).table) == [("item_1", "good", "ann")]


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_table_of_later_versions_of_potato_is_read(separator: str, tmp_path: Path) -> None:
    header = ["instance_id", "user_id", "mood.good", "mood.bad", "ner._spans"]
    text = [header, ["item_1", "ann", "good", "", "[]"], ["item_1", "bo", "", "true", "[]"]]
    content = "\n".join(separator.join(entries) for entries in text)
    path = write(tmp_path, "a.csv" if separator == "," else "a.tsv", content)

    assert hocal.read_annotations(path).table["label"] == ["good", "bad"]


def test_splits_of_lewidi_do_not_share_their_numbers(tmp_path: Path) -> None:
    write(tmp_path, "MP_train.json", LEWIDI_2025)
    write(tmp_path, "MP_dev.json", LEWIDI_2025)
    write(tmp_path, "MP_annotators_meta.json", {"Ann1": {"Age": 30}})

    assert set(hocal.read_annotations(tmp_path).table["item"]) == {"MP_dev/7", "MP_train/7"}


@pytest.mark.parametrize(
    ("column", "entry", "label"),
    [
        ("Answer.taskAnswers", '[{"mood":{"label":"good"}}]', "good"),
        ("Answer.taskAnswers", '[{"mood":{"good":false,"bad":true}}]', "bad"),
        ("Answer.mood.labels", '["bad"]', "bad"),
        ("Answer.mood", "bad", "bad"),
    ],
)
def test_forms_of_mechanical_turk_are_understood(
    column: str, entry: str, label: str, tmp_path: Path
) -> None:
    quoted = '"' + entry.replace('"', '""') + '"'
    text = f"HITId,WorkerId,AssignmentStatus,{column}\nH1,W1,Approved,{quoted}\n"
    found = hocal.read_annotations(write(tmp_path, "a.csv", text))

    assert (found.question, found.table["label"]) == ("mood", [label])


def test_columns_of_one_option_each_are_one_question_of_mechanical_turk(tmp_path: Path) -> None:
    text = "HITId,WorkerId,Answer.mood.bad,Answer.mood.good,Reject\nH1,W1,false,true,\n"
    text += "H1,W2,true,false,not serious\n"
    found = hocal.read_annotations(write(tmp_path, "a.csv", text))

    assert rows(found.table) == [("H1", "good", "W1")]
    assert found.left_out == {"rejected": 1}


def result(kind: str, value: Any) -> dict[str, Any]:
    return {"from_name": "q", "type": kind, "value": {kind: value}}


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (result("rating", 4), 4),
        (result("taxonomy", [["animal", "cat"]]), "animal / cat"),
        (result("choices", ["cat"]), "cat"),
    ],
)
def test_choices_of_label_studio_of_other_kinds_are_read(
    given: Any, label: Any, tmp_path: Path
) -> None:
    task = {"id": 1, "data": {}, "annotations": [{"completed_by": 4, "result": [given]}]}

    assert hocal.read_annotations(write(tmp_path, "a.json", [task])).table["label"] == [label]


def test_annotations_of_cloud_storage_hold_their_task(tmp_path: Path) -> None:
    for number, label in enumerate(["cat", "dog"]):
        annotation = {
            "id": number,
            "completed_by": {"id": number},
            "result": [result("choices", [label])],
            "task": {"id": 7, "data": {"image": "a.jpg"}},
        }
        write(tmp_path, f"{number}.json", annotation)

    assert rows(hocal.read_annotations(tmp_path).table) == [("7", "cat", "0"), ("7", "dog", "1")]


def test_people_who_ticked_several_can_be_left_out(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.json", LABEL_STUDIO_MIN), several="drop")

    assert rows(found.table) == [("1", "bad", "3")]
    assert found.left_out == {"several labels": 1}


def test_the_text_says_what_was_read_and_left_out(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.tsv", TOLOKA))

    assert str(found) == (
        "2 judgements of 1 item by 2 people (Toloka, question 'result').\n"
        "Apart: 1 judgement of gold items.\n"
        "Left out: 1 rejected."
    )
    assert repr(found).startswith("<Annotations: 2 judgements of 1 item")
    assert "left out: rejected" in found._repr_html_()


def test_judgements_become_a_dataframe(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.csv", MTURK))

    assert found.classes == ("cat", "dog")
    assert found.to_frame("pandas").columns.tolist() == ["item", "label", "annotator"]


class Diary:
    """A tool of somebody's own."""

    name = "diary"
    title = "Diary"
    annotators = "Sign the pages."

    def choose(self, names: Any) -> list[str]:
        """Return all files."""
        return list(names)

    def recognises(self, file: ExportFile) -> bool:
        """Know pages."""
        return "page" in file.first

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give one response per page."""
        for record in file.records:
            yield Response(str(record["page"]), record, "me", {"mood": (record["mood"],)})


def test_a_tool_of_ones_own_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hocal.annotations.exports.registry._TOOLS", _TOOLS.copy())
    register_tool(Diary())
    found: Annotations = hocal.read_annotations(
        write(tmp_path, "a.jsonl", [{"page": 1, "mood": "good"}])
    )

    assert (found.tool, rows(found.table)) == ("diary", [("1", "good", "me")])
