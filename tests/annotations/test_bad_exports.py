"""Bad exports: one clear line with what to do, and nothing is half read."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import hocal
from hocal import InputError

ANSWER = {"_input_hash": 5, "options": [], "accept": ["a"], "answer": "accept"}
SIGNED = ANSWER | {"_annotator_id": "ann"}
DOCCANO = '{"id": 1, "text": "So so", "label": ["good"]}\n'


def refusal(path: Path, **options: Any) -> str:
    """Return the one line that says why a file is not read."""
    with pytest.raises(InputError) as caught:
        hocal.read_annotations(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write(folder: Path, name: str, *records: Any) -> Path:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


CUT_OFF = "It may be damaged or cut off: export it again."
TEXTS = {
    "empty": ("a.json", "", "`path` must not be empty, got nothing in a.json. Export it again."),
    "cut off": ("a.json", '[{"id": 1, "data"', "must be whole JSON, got Expecting ':' delimiter"),
    "cut line": ("a.jsonl", DOCCANO + '{"id": 2, "te', "in a.jsonl, line 2, column 11."),
    "long number": ("a.json", f'[{{"id": {"1" * 5000}}}]', "must be JSON, got Exceeds the limit"),
    "nested": ("a.json", "[" * 200_000, "must be JSON that is nested less deeply in a.json"),
    "no object": ("a.json", "[1, 2]", "must be an export of a known tool, got a.json, which fits"),
    "only a header": ("a.csv", "HITId,WorkerId,Answer.q\n", "must have at least one answer"),
    "ragged": (
        "a.csv",
        "HITId,WorkerId,Answer.q\nH1,W1\n",
        "must have 3 entries in each row, as its first line has, got 2 in a.csv, record 1.",
    ),
    "open quote": (
        "a.csv",
        'HITId,WorkerId,Answer.q\nH1,W1,"cat\n',
        "must be a table, got unexpected end of data in a.csv, line 2.",
    ),
    "repeated column": (
        "a.csv",
        "HITId,HITId,Answer.q\nH1,H1,cat\n",
        "must have distinct names of columns",
    ),
    "doccano without people": (
        "all.jsonl",
        DOCCANO * 2,
        "must say who judged, got no annotator for 2 of 2 answers (item '1'). Let people annotate",
    ),
    "torn answers": (
        "a.csv",
        'HITId,WorkerId,Answer.taskAnswers\nH1,W1,"[{"\n',
        "Column 'Answer.taskAnswers' of `path` must hold JSON",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_bad_file_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    name, text, message = TEXTS[case]
    (tmp_path / name).write_text(text, encoding="utf-8")

    assert message in refusal(tmp_path / name)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "must name a file or a folder, got " in refusal(tmp_path / "none.json")


def test_answers_of_nobody_are_refused_with_what_to_do(tmp_path: Path) -> None:
    said = refusal(write(tmp_path, "a.jsonl", SIGNED, ANSWER))

    assert "must say who judged, got no annotator for 1 of 2 answers (item '5')." in said
    assert "named sessions (?session=name), or give a folder with one file for each" in said


def test_a_merged_file_of_doccano_is_refused_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("all.jsonl", DOCCANO)

    assert "the project must not share annotations" in refusal(tmp_path / "a.zip")


def test_several_answers_name_the_person_and_the_remedy(tmp_path: Path) -> None:
    said = refusal(write(tmp_path, "a.jsonl", SIGNED | {"accept": ["a", "b"]}))

    assert "must have one answer for each item and person, got 'a', 'b' by 'ann'" in said
    assert "(item '5'). Read a question with one choice, or leave such answers out with s" in said


def test_spans_are_no_choices(tmp_path: Path) -> None:
    record = {"id": 1, "text": "So so", "label": [[0, 2, "word"]]}
    said = refusal(write(tmp_path, "anna.jsonl", record))

    assert "must have an answer that is a choice, got none. It reads choices about whole" in said


def test_a_choice_for_a_region_is_no_choice_for_the_task(tmp_path: Path) -> None:
    value = {"start": 0, "end": 2, "text": "So", "choices": ["good"]}
    marked = {"completed_by": 1, "result": [{"from_name": "mood", "value": value}]}
    task = {"id": 1, "data": {"text": "So so"}, "annotations": [marked]}

    assert "must have an answer that is a choice" in refusal(write(tmp_path, "a.json", [task]))


def test_spans_among_choices_are_refused(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    records = [{"id": 1, "text": "a", "label": ["good"]}, {"id": 2, "text": "b", "label": [[0, 1]]}]
    write(tmp_path / "export", "anna.jsonl", *records)

    assert "got something else for question 'label' (item '2')" in refusal(tmp_path / "export")


def test_several_questions_are_listed(tmp_path: Path) -> None:
    responses = {name: [{"value": "a", "user_id": "u"}] for name in ("mood", "tone")}
    path = write(tmp_path, "a.json", {"id": 1, "fields": {}, "responses": responses})

    assert refusal(path) == (
        "`question` must be given for a project that asks several, got none. It has 'mood', 'tone'."
    )
    assert "choice, got 'mod'. It has 'mood', 'tone'." in refusal(path, question="mod")


def test_the_wrong_tool_is_told_from_the_right_one(tmp_path: Path) -> None:
    said = refusal(write(tmp_path, "a.jsonl", SIGNED), tool="toloka")

    assert said == (
        "`path` must be an export of Toloka, got something else in a.jsonl. "
        'It looks like Prodigy: use tool="prodigy".'
    )


def test_an_unknown_tool_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    said = refusal(write(tmp_path, "a.jsonl", SIGNED), tool="crayon")

    assert "`tool` must be one of argilla, doccano, label-studio" in said


@pytest.mark.parametrize("name", ["Label Studio", "label_studio", "LABEL-STUDIO"])
def test_a_tool_may_be_spelled_in_other_ways(name: str, tmp_path: Path) -> None:
    assert "must be an export of Label Studio" in refusal(
        write(tmp_path, "a.jsonl", SIGNED), tool=name
    )


def test_a_field_that_items_lack_is_answered_with_those_they_have(tmp_path: Path) -> None:
    said = refusal(write(tmp_path, "a.jsonl", SIGNED), item="image")

    assert "`item` must name a field that every item has, got 'image', which 1 of 1 ans" in said
    assert "There are '_input_hash', 'options'" in said


def test_an_export_in_which_nothing_counts_says_why(tmp_path: Path) -> None:
    said = refusal(write(tmp_path, "a.jsonl", SIGNED | {"answer": "ignore"}))

    assert said.endswith(
        "must have at least one answer that counts, got none; left out: 1 ignored."
    )


def test_another_shape_further_down_refuses_the_whole_file(tmp_path: Path) -> None:
    good = {"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": []}]}
    torn = {"id": 2, "data": {}, "annotations": [{"completed_by": 1, "result": ["choices"]}]}

    assert "must have the form of an export of Label Studio throughout" in refusal(
        write(tmp_path, "a.json", [good, torn])
    )


@pytest.mark.parametrize("text", ["été".encode("latin-1"), "é".encode("utf-16")])
def test_other_encodings_are_named(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(text)
    said = refusal(tmp_path / "a.json")

    assert "must be UTF-8, got " in said
    assert "a.json" in said
    assert said.endswith("Save it as UTF-8.")


@pytest.mark.parametrize("name", ["../../a.jsonl", "/etc/a.jsonl", "C:\\a.jsonl"])
def test_a_zip_with_names_outside_itself_is_refused(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, DOCCANO)

    assert "must hold names inside itself" in refusal(tmp_path / "a.zip")


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hocal.annotations.exports.files.MAX_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("anna.jsonl", b" " * (1 << 21))

    assert "must hold at most 1 MB of text in all, got more in anna.jsonl" in refusal(
        tmp_path / "a.zip"
    )


def test_files_of_a_zip_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hocal.annotations.exports.files.MAX_BYTES", len(DOCCANO) + 1)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("anna.jsonl", DOCCANO)
        archive.writestr("bo.jsonl", DOCCANO)

    assert "got more in bo.jsonl" in refusal(tmp_path / "a.zip")


def test_a_zip_of_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocal.annotations.exports.files.MAX_FILES", 1)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("anna.jsonl", DOCCANO)
        archive.writestr("bo.jsonl", DOCCANO)

    assert "must hold at most 1 files, got 2." in refusal(tmp_path / "a.zip")


def test_a_torn_zip_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("anna.jsonl", DOCCANO)
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[45] ^= 255  # inside the text, which no longer has its checksum
    (tmp_path / "a.zip").write_bytes(data)

    assert "must be a whole zip, got something else: Bad CRC-32" in refusal(tmp_path / "a.zip")


def test_a_torn_gzip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(DOCCANO.encode())[:-4])

    assert "must be a whole gzip file" in refusal(tmp_path / "a.jsonl.gz")


def test_a_folder_without_exports_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")

    assert "must hold files that end in .json, .jsonl, .csv, .tsv, got none in" in refusal(tmp_path)


def test_a_folder_of_two_tools_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", SIGNED)
    (tmp_path / "b.jsonl").write_text(DOCCANO, encoding="utf-8")

    assert "got a.jsonl, b.jsonl, which fits none. Name the tool with `tool`" in refusal(tmp_path)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text(DOCCANO, encoding="utf-8")
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "anna.jsonl").symlink_to(tmp_path / "secret.jsonl")

    assert "must hold its files itself, got a link to elsewhere" in refusal(tmp_path / "export")


def test_unequal_lists_of_lewidi_are_refused(tmp_path: Path) -> None:
    record = {"annotations": "0,1,1", "annotators": "Ann1,Ann2", "soft_label": {}}
    said = refusal(write(tmp_path, "a.json", {"7": record}))

    assert "as many annotators as annotations, got 2 and 3 in a.json, item '7'." in said


@pytest.mark.parametrize("given", ["entailment,neutral", ["entailment", "neutral"]])
def test_several_labels_of_a_person_in_lewidi_are_refused(given: Any, tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", {"7": {"annotations": {"Ann1": given}, "soft_label": {}}})

    assert "got 'entailment', 'neutral' by 'Ann1' (item '7')." in refusal(path)


def test_classes_that_were_not_declared_are_named(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.jsonl", SIGNED))

    with pytest.raises(InputError, match="`classes` must hold all labels, got none that is 'a'"):
        found.count(classes=["b", "c"])
    with pytest.raises(InputError, match="must be one of the classes 'b', 'c', got 'a' in 1 row"):
        hocal.count_labels(found.table, item="item", label="label", classes=["b", "c"])


def test_a_person_who_answered_twice_is_found_when_counting(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.jsonl", SIGNED, SIGNED | {"accept": ["b"]}))

    with pytest.raises(InputError, match=r"several for 1 pairs, such as item '5' by 'ann'\. Use"):
        found.count()
    with pytest.raises(InputError, match="must have one label for each item and annotator"):
        hocal.count_labels(found.table, item="item", label="label", annotator="annotator")


def test_labels_that_all_name_one_class_need_the_others_declared(tmp_path: Path) -> None:
    found = hocal.read_annotations(write(tmp_path, "a.jsonl", SIGNED))

    with pytest.raises(InputError, match="`classes` must be declared when a table has fewer than"):
        found.count()
    assert found.count(classes=["a", "b"]).counts.tolist() == [[1, 0]]
