"""What labels alone claim about majorities is as often right, and limits of items cover."""

from __future__ import annotations

import pytest

from calibration.label_worlds import judge_claims

pytestmark = pytest.mark.slow

WORLDS = ("diffuse", "sharp", "bimodal", "skewed")
# Two or three labels leave open whether items differ or people lapse.
TOLERANCE = {2: 0.1, 3: 0.1, 5: 0.08}


@pytest.mark.parametrize("k", TOLERANCE)
@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
@pytest.mark.parametrize("world", WORLDS)
def test_majorities_are_right_about_as_often_as_is_claimed(
    world: str, n_classes: int, k: int
) -> None:
    found = judge_claims(world, n_classes, k, n_seeds=2)

    assert found.claimed == pytest.approx(found.right, abs=TOLERANCE[k])
    assert found.covered >= 0.93


@pytest.mark.parametrize("k", TOLERANCE)
@pytest.mark.parametrize("n_classes", [3, 10])
@pytest.mark.parametrize("world", WORLDS)
def test_a_hundred_items_claim_what_a_thousand_do(world: str, n_classes: int, k: int) -> None:
    found = judge_claims(world, n_classes, k, n_items=100, n_seeds=8)

    assert found.claimed == pytest.approx(found.right, abs=TOLERANCE[k] + 0.02)
    assert found.covered >= 0.93
