"""A group stands out only if the labels prove that it has more than the average."""

import pytest

from hocal.report import Report, Summary
from hocal.report.schema import Standing
from report.groups import make_groups, summarise_groups

KINDS: tuple[Standing, ...] = ("epistemic", "aleatoric")


@pytest.fixture(scope="module")
def torn() -> Summary:
    """Return a world in which people are torn about what the model calls class 0."""
    return summarise_groups(make_groups(0, torn=True))


def test_the_group_in_which_people_disagree_is_listed_and_no_other(torn: Summary) -> None:
    assert torn["leaders"]["aleatoric"]
    assert all(row["name"].startswith("0,") for row in torn["leaders"]["aleatoric"])


def test_the_group_that_the_model_does_not_know_is_listed_and_no_other() -> None:
    leaders = summarise_groups(make_groups(0, unknown=True))["leaders"]

    assert leaders["epistemic"]
    assert all(row["name"].startswith("0,") for row in leaders["epistemic"])
    assert leaders["aleatoric"] == []


def test_a_lower_limit_exceeds_the_average_in_every_group_that_is_listed(torn: Summary) -> None:
    for kind in KINDS:
        average = torn["parts"][kind]["mean"]
        for row in torn["leaders"][kind]:
            lower = row[f"{kind}_interval"][0]  # type: ignore[literal-required]
            assert lower > average
            assert kind in row["stands_out"]


def test_groups_come_by_items_times_excess(torn: Summary) -> None:
    rows = torn["leaders"]["aleatoric"]
    weights = [row["n_items"] * row["aleatoric_excess"] for row in rows]

    assert len(rows) > 1
    assert weights == sorted(weights, reverse=True)


def test_an_excess_is_that_above_the_mean_of_all_items(torn: Summary) -> None:
    for row in torn["cells"]:
        expected = row["aleatoric"] - torn["parts"]["aleatoric"]["mean"]
        assert row["aleatoric_excess"] == pytest.approx(expected, abs=1e-5)


def test_a_page_of_groups_that_are_alike_says_that_none_differs() -> None:
    summary = summarise_groups(make_groups(0))
    report = Report(summary)

    assert all(row["stands_out"] == [] for row in summary["cells"])
    assert all(point["standing"] is None for point in summary["parts"]["map"])
    for text in (report.markdown(), report.html()):
        assert "No group of items with alike predictions differs from the others" in text
        assert text.count("No group differs from the others: no lower limit exceeds") == 2


@pytest.mark.slow
def test_in_worlds_without_a_difference_hardly_a_group_is_listed() -> None:
    """Limits hold one by one at 95%; of nine groups in ten worlds, in either kind, at most one."""
    worlds = [summarise_groups(make_groups(seed, k=2 + seed % 4)) for seed in range(10)]

    n_listed = [len(rows) for world in worlds for rows in world["leaders"].values()]
    assert sum(n_listed) <= 1


@pytest.mark.slow
def test_in_worlds_with_a_difference_it_is_found() -> None:
    worlds = [summarise_groups(make_groups(seed, torn=True)) for seed in range(4)]

    assert all(world["leaders"]["aleatoric"] for world in worlds)
    assert all(
        row["name"].startswith("0,") for world in worlds for row in world["leaders"]["aleatoric"]
    )
