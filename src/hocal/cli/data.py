"""`hocal data`: list and fetch data sets with several labels per item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hocal.cli import options
from hocal.cli.messages import ProgressBar
from hocal.cli.outputs import print_json

__all__ = ["data"]

data = typer.Typer(
    help="List and fetch data sets with several labels per item.", no_args_is_help=True
)

DataHome = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the data; by default HOCAL_DATA, else the user's cache.", show_default=False
    ),
]


@data.command("list")
def list_(data_home: DataHome = None, as_json: options.AsJson = False) -> None:
    """List the data sets, their licences, and where their files are.

    Example: hocal data list
    """
    from hocal.datasets import list_files

    files = [status._asdict() for status in list_files(data_home=data_home)]
    if as_json:
        print_json({"files": files})
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("data set", "file", "MB", "licence", "here")
    for file in files:
        absent = "fetch" if file["downloadable"] else "by hand"
        state = "yes" if file["location"] else absent
        size = f"{file['size'] / 1e6:.1f}"
        table.add_row(
            *(Text(entry) for entry in (file["name"], file["path"], size, file["licence"], state))
        )
    Console().print(table)


@data.command("fetch")
def fetch(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Data sets, as `hocal data list` names them."),
    ],
    data_home: DataHome = None,
    as_json: options.AsJson = False,
) -> None:
    """Download data sets and check them; files that already exist stay.

    Example: hocal data fetch cifar10h
    """
    from hocal.datasets import fetch as fetch_files

    with ProgressBar(in_bytes=True) as progress:
        paths = {
            name: fetch_files(name, progress=progress.update, data_home=data_home) for name in names
        }
    if as_json:
        print_json({"files": {name: list(found) for name, found in paths.items()}})
    else:
        typer.echo("\n".join(str(path) for found in paths.values() for path in found))
