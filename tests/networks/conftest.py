"""One thread: numbers repeat exactly, and the machine stays usable."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _single_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
