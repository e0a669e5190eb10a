"""The command line `hocal`: files in, files out; the library computes."""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

_LIBRARIES = ("typer", "rich", "duckdb", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `hocal` with the given arguments, those of the process by default, and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows `hocal` on the command line.

    Raises
    ------
    SystemExit
        Always: 0 when all went well, 2 after bad input (one line on stderr says which), 130 after
        Ctrl-C.
    """
    absent = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if absent:
        print(
            f'hocal: The command line needs {absent[0]}. Install it with: pip install "hocal[app]"',
            file=sys.stderr,
        )
        sys.exit(2)
    if arguments is None:  # the process is ours
        atexit.register(_mute)
        # POT would import PyTorch where it is installed, which takes seconds, to be given arrays.
        os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")
    from hocal.cli.app import run

    run(arguments)


def _mute() -> None:
    """Close stderr at the end, where DuckDB's bindings report their own unfreed objects."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
