"""A hook of mkdocs that makes a page of each notebook, with the outputs that the notebook holds.

Markdown cells are taken as they are, code is fenced, outputs come below it: text, tables and
pictures. Nothing is run, nothing is asked of another host, and everything wide scrolls inside its
own box, so that pages are readable on a phone. The notebook itself lies beside its page.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

Cell = dict[str, Any]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page, and its pictures, for each notebook among the files of the site."""
    notebooks = [file for file in files if file.src_uri.endswith(".ipynb")]
    for file in notebooks:
        notebook = json.loads(file.content_string)
        stem = file.src_uri.removesuffix(".ipynb")
        for number, picture in enumerate(pictures(notebook)):
            files.append(File.generated(config, f"{stem}-{number}.png", content=picture))
        page = render(notebook, Path(stem).name)
        files.append(File.generated(config, f"{stem}.md", content=page))
    return files


def render(notebook: dict[str, Any], name: str) -> str:
    """Return the Markdown of a notebook whose pictures are `name`-0.png, `name`-1.png, ..."""
    written: list[str] = []
    n_pictures = 0
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            written.append(_link_pages(text))
            continue
        written.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            written.append(_show(output, cell, f"{name}-{n_pictures}.png"))
            n_pictures += "image/png" in output.get("data", {})
    return "\n\n".join([*written, f"[Download this notebook]({name}.ipynb)."]) + "\n"


def pictures(notebook: dict[str, Any]) -> Iterator[bytes]:
    """Yield the pictures of a notebook in the order of its cells."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                yield base64.b64decode("".join(output["data"]["image/png"]))


def _link_pages(text: str) -> str:
    """Let links to other notebooks lead to their pages."""
    return re.sub(r"\]\(([\w/.-]+)\.ipynb\)", r"](\1.md)", text)


def _show(output: dict[str, Any], cell: Cell, picture: str) -> str:
    """Return one output: the picture, else the table, else the text."""
    if output["output_type"] == "stream":
        return _fence("".join(output["text"]))
    data = output["data"]
    if "image/png" in data:
        # for those who cannot see it; a notebook without is refused by a KeyError
        return f"![{cell['metadata']['alt']}]({picture})"
    if "text/html" in data:
        return _table("".join(data["text/html"]))
    return _fence("".join(data["text/plain"]))


def _fence(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _table(html: str) -> str:
    """Return the table of a dataframe, without styles of its own."""
    table = html[html.index("<table") : html.rindex("</table>") + len("</table>")]
    bare = re.sub(r"<table[^>]*>", "<table>", table)
    right = re.sub(r'<tr style="[^"]*">', "<tr>", bare)
    return re.sub(r"\n\s*", "", right)
