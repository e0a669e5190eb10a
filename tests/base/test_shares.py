"""Percentages never claim all or none of something that is neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hocal._base.shares import percent


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (0, "0%"),
        (-0.0, "0%"),
        (1e-9, "under 0.1%"),
        (0.0004, "under 0.1%"),
        (0.004, "0.4%"),
        (0.0996, "10%"),
        (0.25, "25%"),
        (0.95, "95%"),
        (0.99, "99%"),
        (0.994, "99.4%"),
        (1498 / 1500, "99.9%"),
        (0.9996, "over 99.9%"),
        (1, "100%"),
        (1.2, "120%"),
        (-0.25, "-25%"),
    ],
)
def test_a_share_is_a_percentage(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_digits_may_be_asked_for() -> None:
    assert [percent(share, 1) for share in (0, 0.25, 0.9999)] == ["0.0%", "25.0%", "over 99.9%"]


@given(st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True))
def test_only_all_is_all_and_only_none_is_none(share: float) -> None:
    assert percent(share) not in ("0%", "0.0%", "100%", "100.0%")
