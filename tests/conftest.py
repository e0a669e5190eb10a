"""Settings for all tests."""

import os
import shutil

import pytest
from hypothesis import settings

if (
    shutil.which("nvidia-smi") is None
):  # without a GPU, Triton interprets kernels; it must know before its first import
    os.environ.setdefault("TRITON_INTERPRET", "1")

# derandomize: every run tries the same examples, so a red test is red for everyone.
settings.register_profile("hocal", derandomize=True, deadline=None, max_examples=30, database=None)
settings.load_profile("hocal")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all tests on one Spark: starting it takes longer than most of them."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
