"""Settings for all tests."""

import gc
import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

# Without a GPU, Triton interprets kernels; it must know before its first import.
if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Optimal transport reads arrays here. For tensors it would import PyTorch, which takes two seconds
# in each process that a test starts.
os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")

# derandomize: every run tries the same examples, so a red test is red for everyone.
settings.register_profile("hocal", derandomize=True, deadline=None, max_examples=30, database=None)
settings.load_profile("hocal")


# What takes longer to make than the tests that use it: a Spark, the demonstration, the site, the
# packages, hundreds of simulated tables, two processes of PyTorch, kills.
MADE_ONCE = ("spark", "shown", "site", "built", "null_checks", "two_processes", "killed")


# Modules, tests and their parameters stay until the end: looking for garbage among a million such
# objects, while they are made and then again and again, takes a tenth of the time of all tests.
gc.disable()
# Objects made between two looks; a test has few cycles, and looking takes longer than they do harm.
BETWEEN_LOOKS = 10_000


@given(st.none())
def _start_hypothesis(_: None) -> None:
    """Do nothing."""


def pytest_collection_finish() -> None:
    """Look for garbage from now on, less often, and only among what tests make."""
    _start_hypothesis()  # while it can still see who refers to the random numbers it seeds
    gc.collect()
    gc.freeze()
    gc.set_threshold(BETWEEN_LOOKS)
    gc.enable()


def pytest_unconfigure() -> None:
    """Let the end find everything: extension modules count what is left over."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share something in one worker, which makes it once."""
    for item in items:
        name = _shared(item)
        if name is not None and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(name))


def _shared(item: pytest.Item) -> str | None:
    """Return what a test shares with others: something costly, or the fixtures of its module."""
    costly = [name for name in MADE_ONCE if name in getattr(item, "fixturenames", ())]
    if costly:
        return costly[0]
    info = getattr(item, "_fixtureinfo", None)
    fixtures = [] if info is None else [each[-1] for each in info.name2fixturedefs.values()]
    return str(item.path.stem) if any(each.scope == "module" for each in fixtures) else None
