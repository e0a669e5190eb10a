"""Check single values that users pass in: numbers, choices, flags, sizes, seeds."""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from hocal._base.errors import InputError

__all__ = [
    "COUNT_LIMIT",
    "MAX_CLASSES",
    "MAX_LISTED",
    "MAX_NUMBERS",
    "MAX_REPEATS",
    "MAX_RESAMPLES",
    "MAX_SNAPSHOT",
    "at_most",
    "check_choice",
    "check_flag",
    "check_fraction",
    "check_integer",
    "check_kind",
    "check_n_classes",
    "check_n_resamples",
    "check_number",
    "check_random_state",
    "check_repeats",
    "check_snapshot_size",
    "refuse_large",
]

MAX_CLASSES = 1_000_000  # of a formula: what lists them takes 8 MB
MAX_SNAPSHOT = 1_000_000_000  # labels per item of a formula: floats still tell such from the next
MAX_LISTED = 1_000_000  # labels per item where numbers of votes are listed: 8 MB
MAX_NUMBERS = 500_000_000  # of an array that is made from sizes alone: 4 GB
MAX_REPEATS = 1_000  # of a whole study: the error of a mean is a thirtieth of the spread
MAX_RESAMPLES = 10_000  # simulations of a p-value: four digits
# counts below this can be added in pairs without leaving int64
COUNT_LIMIT = 2**62
_SMALLEST_FRACTION = 1e-300  # its inverse must be finite
_LONG_TEXT = 200  # characters: what is longer is shown by its ends


def check_integer(
    value: Any, name: str, *, minimum: int, maximum: int | None = None, why: str = ""
) -> int:
    """Return `value` as an int inside [minimum, maximum]; `why` gives the reason for the range."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or value < minimum or (maximum is not None and value > maximum):
        bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        remedy = why if whole else ""  # nor would another range take what is no integer
        raise InputError(name, f"must be an integer {bounds}", value=_named(value), remedy=remedy)
    if value >= COUNT_LIMIT:
        raise InputError(name, "must be below 2**62", value=_named(value), remedy=why)
    return int(value)


def check_n_classes(value: Any) -> int:
    """Return a number of classes of which an array can be made."""
    return at_most(check_integer(value, "n_classes", minimum=2), "n_classes", MAX_CLASSES)


def check_snapshot_size(
    value: Any, name: str = "k", *, minimum: int = 1, listed: bool = False
) -> int:
    """Return a number of labels per item; `listed` where every number of votes is."""
    maximum = MAX_LISTED if listed else MAX_SNAPSHOT
    return at_most(check_integer(value, name, minimum=minimum), name, maximum)


def check_n_resamples(value: Any) -> int:
    """Return a number of simulations that a p-value can rest on."""
    return at_most(check_integer(value, "n_resamples", minimum=1), "n_resamples", MAX_RESAMPLES)


def check_repeats(value: Any, name: str, *, minimum: int = 1) -> int:
    """Return how often a study is repeated, each time with a calibrator of its own."""
    return at_most(check_integer(value, name, minimum=minimum), name, MAX_REPEATS)


def at_most(value: int, name: str, maximum: int) -> int:
    """Return a size that memory has room for."""
    if value > maximum:
        raise InputError(name, f"must be at most {maximum:,}", value=f"{value:,}")
    return value


def refuse_large(name: str, n_numbers: float, what: str, remedy: str) -> None:
    """Refuse what would need more memory than there is, before any of it is taken."""
    if n_numbers > MAX_NUMBERS:
        raise InputError(
            name,
            f"must need at most {MAX_NUMBERS * 8 / 1e9:g} GB",
            value=f"{n_numbers * 8 / 1e9:.3g} GB for {what}",
            remedy=remedy,
        )


def check_flag(value: Any, name: str) -> bool:
    """Return `value` after checking that it is true or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(name, "must be True or False", value=_named(value))
    return bool(value)


def check_kind(value: Any, name: str, *kinds: type, remedy: str = "") -> Any:
    """Return `value` after checking that it is an object of one of the kinds."""
    if isinstance(value, kinds):
        return value
    wanted = " or ".join(kind.__name__ for kind in kinds)
    raise InputError(name, f"must be {wanted}", value=type(value).__name__, remedy=remedy)


def check_fraction(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    if not (isinstance(value, (int, float, np.integer, np.floating)) and 0 < value < 1):
        raise InputError(name, "must lie strictly between 0 and 1", value=_named(value))
    if value < _SMALLEST_FRACTION:
        raise InputError(name, f"must be at least {_SMALLEST_FRACTION}", value=_named(value))
    return float(value)


def check_number(
    value: Any,
    name: str,
    *,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    strict: bool = False,
    finite: bool = True,
) -> float:
    """Return `value` as a float in [minimum, maximum]; `strict` excludes the minimum."""
    real = (int, float, np.integer, np.floating)
    number = isinstance(value, real) and not isinstance(value, (bool, np.bool_))
    if number and isinstance(value, int) and abs(value) > sys.float_info.max:
        raise InputError(name, "must fit a float", value=_named(value))
    if not number or not minimum <= value <= maximum or (strict and value == minimum):
        lower = f"greater than {minimum:g}" if strict else f"at least {minimum:g}"
        upper = "" if maximum == math.inf else f" and at most {maximum:g}"
        raise InputError(name, f"must be a number {lower}{upper}", value=_named(value))
    if finite and math.isinf(value):
        raise InputError(name, "must be finite", value=value)
    return float(value)


def check_choice(value: Any, name: str, options: Collection[str]) -> str:
    """Return `value` after checking that it is one of `options`."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(map(repr, options))
        raise InputError(name, f"must be one of {listed}", value=_named(value))
    return value


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a numpy Generator from None, an integer seed or a Generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        rule = "must be None, a non-negative integer or a numpy Generator"
        raise InputError("random_state", rule, value=_named(random_state)) from error


def _named(value: Any) -> Any:
    """Return a value for an InputError, which shows text without quotes and leaves out None."""
    if isinstance(value, int) and not -COUNT_LIMIT < value < 10 * COUNT_LIMIT:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, str):
        return reprlib.repr(value) if len(str(value)) > _LONG_TEXT else repr(value)
    return value
