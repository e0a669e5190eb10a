"""Numbers with their nouns."""

import numpy as np
import pytest

from hocal._base.plurals import counted


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 cells"), (1, "1 cell"), (2, "2 cells"), (1500, "1,500 cells"), (np.int64(1), "1 cell")],
)
def test_only_one_is_singular(number: int, said: str) -> None:
    assert counted(number, "cell") == said


def test_a_noun_may_bring_its_own_plural() -> None:
    assert counted(1, "class", "classes") == "1 class"
    assert counted(3, "class", "classes") == "3 classes"
