"""Errors about input, as data: what was asked of which argument, what came, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["InputError", "OneLabelWarning", "Setting"]


class OneLabelWarning(UserWarning):
    """No item has two labels, so that nothing tells disagreement from ignorance."""


class Setting(NamedTuple):
    """An argument that a remedy speaks of, perhaps with a value; `str` writes it as Python does."""

    argument: str
    value: str | None = None

    def __str__(self) -> str:
        return f"`{self.argument}`" if self.value is None else f'{self.argument}="{self.value}"'


class InputError(ValueError):
    """Something that was given does not fit; its fields say what, and `str` puts them into words.

    Parameters
    ----------
    argument : str
        Name of the argument, or names joined by " and "; they are quoted one by one.
    rule : str
        What it must be, as in "must be non-negative".
    value : object, optional
        What was found instead; text is shown as it is, anything else by its repr.
    where : str, optional
        The place of the value in words, as in "in row 17"; by default `row` in words.
    row : int, optional
        The row of the value, for a program that knows the rows by other names.
    column : str, optional
        Name of the column of the argument, a table, that the rule is about.
    remedy : str, optional
        Whole sentences on what to do about it; ``{0}``, ``{1}``, ... stand for the `settings`.
    settings : sequence of Setting, optional
        Arguments that the remedy speaks of, for a program that writes them in another way.

    Examples
    --------
    >>> from hocal import InputError
    >>> error = InputError("counts", "must be non-negative", value=-1, row=17)
    >>> str(error)
    '`counts` must be non-negative, got -1 in row 17.'
    >>> error.argument, error.value, error.where
    ('counts', -1, 'in row 17')
    >>> error.render(argument="votes.csv", where="for item 'cat.png'")
    "votes.csv must be non-negative, got -1 for item 'cat.png'."
    """

    def __init__(
        self,
        argument: str,
        rule: str,
        *,
        value: Any = None,
        where: str = "",
        row: int | None = None,
        column: str | None = None,
        remedy: str = "",
        settings: Sequence[Setting] = (),
    ) -> None:
        self.argument = argument
        self.rule = rule
        self.value = value
        self.where = where or ("" if row is None else f"in row {row}")
        self.row = row
        self.column = column
        self.settings = tuple(settings)
        self._template = remedy
        super().__init__(argument, rule, value, where, row, column, remedy, settings)

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._fields())

    @property
    def remedy(self) -> str:
        """What to do about it, with settings as Python writes them."""
        return self.advise(str)

    @property
    def arguments(self) -> list[str]:
        """The names of the arguments, one by one."""
        return self.argument.split(" and ")

    @property
    def subject(self) -> str:
        """The names of the arguments in quotes, as Python writes them."""
        return " and ".join(f"`{name}`" for name in self.arguments)

    def advise(self, write: Callable[[Setting], str]) -> str:
        """Return the remedy with settings as `write` writes them."""
        if not self.settings:
            return self._template
        return self._template.format(*map(write, self.settings))

    def render(
        self,
        argument: str | None = None,
        where: str | None = None,
        *,
        write: Callable[[Setting], str] = str,
    ) -> str:
        """Return the message, with other words for argument, place and settings where asked to.

        The command line says ``--n-slices`` for `n_slices`, and the file for the array.
        """
        subject = self.subject if argument is None else argument
        place = self.where if where is None else where
        whose = "" if self.column is None else f"Column {self.column!r} of "
        shown = self.value if isinstance(self.value, str) else repr(self.value)
        got = f", got {shown}" if self.value is not None else ""
        sentence = f"{whose}{subject} {self.rule}{got}{' ' * bool(place)}{place}."
        return f"{sentence} {self.advise(write)}".strip()

    def replace(self, **changes: Any) -> InputError:
        """Return the same error with other values for some of its fields."""
        return type(self)(**(self._fields() | changes))

    def _fields(self) -> dict[str, Any]:
        names = ("argument", "rule", "value", "where", "row", "column", "settings")
        return {name: getattr(self, name) for name in names} | {"remedy": self._template}


def _restore(kind: type[InputError], fields: dict[str, Any]) -> InputError:
    """Rebuild an error that came from another process."""
    return kind(**fields)
