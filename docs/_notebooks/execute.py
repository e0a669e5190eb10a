"""Run the tutorials and keep their outputs, each in its own file: what `make notebooks` does.

A notebook runs from top to bottom in a fresh kernel and an empty folder. Nothing is kept that
differs from run to run, such as times, so a notebook changes only where its outputs do.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

TUTORIALS = Path(__file__).parents[1] / "tutorials"
PATIENCE = 300  # seconds for one cell, on a machine that does other things as well


def execute(path: Path) -> Any:
    """Return the notebook of a file with the outputs of a run; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    described = nbformat.from_dict(dict(notebook.metadata))
    with tempfile.TemporaryDirectory() as sockets, tempfile.TemporaryDirectory() as folder:
        kernel = AsyncKernelManager(transport="ipc", ip=f"{sockets}/kernel")  # no ports
        asyncio.run(_run(notebook, kernel, folder))
    notebook.metadata = described  # to which the kernel had added its version
    return notebook


async def _run(notebook: Any, kernel: AsyncKernelManager, folder: str) -> None:
    client = NotebookClient(
        notebook,
        km=kernel,
        timeout=PATIENCE,
        record_timing=False,
        coalesce_streams=True,  # whatever the moments at which lines arrived
        resources={"metadata": {"path": folder}},
    )
    try:
        await client.async_execute()
    finally:
        client.kc.stop_channels()
        await kernel.shutdown_kernel(now=True)


def main() -> None:
    """Run the notebooks of some names, or all."""
    parser = argparse.ArgumentParser(description="Run tutorials and keep their outputs.")
    parser.add_argument("names", nargs="*", help="such as labels-only; all without")
    parser.add_argument("--into", type=Path, default=TUTORIALS, help="folder to write to")
    chosen = parser.parse_args()
    paths = [TUTORIALS / f"{name}.ipynb" for name in chosen.names]
    for path in paths or sorted(TUTORIALS.glob("*.ipynb")):
        notebook = execute(path)
        nbformat.write(notebook, chosen.into / path.name)
        print(f"{path.name}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main()
