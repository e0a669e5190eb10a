"""Errors about input, as data: what was asked of which argument, what came, where, and the remedy."""

from __future__ import annotations

from typing import Any

__all__ = ["InputError"]


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
    remedy : str, optional
        Whole sentences on what to do about it.

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
        remedy: str = "",
    ) -> None:
        self.argument = argument
        self.rule = rule
        self.value = value
        self.where = where or ("" if row is None else f"in row {row}")
        self.row = row
        self.remedy = remedy
        super().__init__(argument, rule, value, where, row, remedy)

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("value", "where", "row", "remedy")
        options = {name: getattr(self, name) for name in names}
        return _restore, (type(self), self.argument, self.rule, options)

    def render(self, argument: str | None = None, where: str | None = None) -> str:
        """Return the message, with another name for the argument or for the place where asked to.

        The command line says ``--n-slices`` for `n_slices`, and the file for the array.
        """
        subject = argument if argument is not None else self.subject
        place = where if where is not None else self.where
        shown = self.value if isinstance(self.value, str) else repr(self.value)
        got = f", got {shown}" if self.value is not None else ""
        sentence = f"{subject} {self.rule}{got}{' ' * bool(place)}{place}."
        return f"{sentence} {self.remedy}".strip()

    @property
    def subject(self) -> str:
        """The argument's names in quotes, as Python writes them."""
        return " and ".join(f"`{name}`" for name in self.argument.split(" and "))


def _restore(
    kind: type[InputError], argument: str, rule: str, options: dict[str, Any]
) -> InputError:
    """Rebuild an error that came from another process."""
    return kind(argument, rule, **options)
