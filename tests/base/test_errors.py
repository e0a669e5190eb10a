"""An error about input is data, and its words are made from the data."""

from __future__ import annotations

import pickle

import pytest

from hocal import InputError
from hocal._base.errors import Setting


def error_about_counts() -> InputError:
    return InputError("counts", "must be whole", value=0.5, row=3, remedy="Round them.")


def test_the_message_names_argument_rule_value_place_and_remedy() -> None:
    assert str(error_about_counts()) == "`counts` must be whole, got 0.5 in row 3. Round them."


def test_only_argument_and_rule_are_needed() -> None:
    assert str(InputError("counts", "must not be empty")) == "`counts` must not be empty."


def test_two_arguments_are_quoted_one_by_one() -> None:
    error = InputError("p and counts", "must match", value="2 and 3 rows")

    assert str(error) == "`p` and `counts` must match, got 2 and 3 rows."


def test_the_argument_and_the_place_can_be_called_otherwise() -> None:
    message = error_about_counts().render(argument="votes.csv", where="for item 'a'")

    assert message == "votes.csv must be whole, got 0.5 for item 'a'. Round them."


def test_a_place_in_words_keeps_its_row() -> None:
    error = InputError("x", "must be finite", value="nan", where="in row 3, column 1", row=3)

    assert (str(error), error.row) == ("`x` must be finite, got nan in row 3, column 1.", 3)


def test_it_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="must be whole"):
        raise error_about_counts()


def test_it_survives_the_way_from_another_process() -> None:
    error = pickle.loads(pickle.dumps(error_about_counts()))

    assert vars(error) == vars(error_about_counts())


def error_with_settings() -> InputError:
    return InputError(
        "table",
        "must have a value in each row",
        column="label",
        value="none",
        where="in 1 of 2 rows",
        remedy="Fill them, add them to {0}, or use {1}.",
        settings=[Setting("classes"), Setting("missing", "drop")],
    )


def test_a_remedy_writes_settings_as_python_does() -> None:
    assert error_with_settings().remedy == (
        'Fill them, add them to `classes`, or use missing="drop".'
    )


def test_a_program_writes_settings_in_its_own_way() -> None:
    message = error_with_settings().render(write=lambda setting: f"--{setting.argument}")

    assert message.endswith("Fill them, add them to --classes, or use --missing.")


def test_a_column_is_named_before_its_table() -> None:
    assert str(error_with_settings()).startswith(
        "Column 'label' of `table` must have a value in each row, got none in 1 of 2 rows. Fill"
    )


def test_braces_without_settings_stay_as_they_are() -> None:
    assert str(InputError("p", "must match", remedy="Try {0}.")) == "`p` must match. Try {0}."


def test_fields_can_be_replaced_one_by_one() -> None:
    changed = error_with_settings().replace(value="two")

    assert str(changed) == str(error_with_settings()).replace("got none", "got two")
