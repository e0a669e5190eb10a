"""Calls that nobody should make, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hocal

Calls = dict[str, tuple[Callable[[], Any], str]]  # by name: the call, and words of its refusal


def assert_refused(call: Callable[[], Any], words: str) -> None:
    """Hold that a call ends in an InputError with these words."""
    with pytest.raises(hocal.InputError) as caught:
        call()

    assert words in str(caught.value)
