"""Reports as people and programs read them: a page, Markdown, JSON."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from hocal._base.errors import InputError
from hocal._base.files import write_atomically
from hocal.report.label_markdown import render_labels_markdown
from hocal.report.label_page import render_labels_page
from hocal.report.label_schema import LabelSummary
from hocal.report.label_summary import LABELS_FORMAT
from hocal.report.markdown import render_markdown
from hocal.report.page import render_page
from hocal.report.schema import Summary
from hocal.report.summary import FORMAT
from hocal.report.words import counted

__all__ = ["Report", "format_of"]

_FORMATS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".json": "json",
}


def format_of(path: Path) -> str:
    """Return the format that a file name ends with: "html", "markdown" or "json"."""
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        raise InputError("path", "must end with .html, .md or .json", value=repr(str(path)))
    return form


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A summary that can be shown and saved.

    Attributes
    ----------
    summary : Summary or LabelSummary
        What `summarise` or `summarise_labels` returned, or the same read back from JSON.

    Examples
    --------
    >>> import hocal
    >>> from hocal.datasets import make_mixture_world
    >>> from hocal.report import Report, summarise
    >>> world = make_mixture_world(600, 3, random_state=0)
    >>> counts = world.draw(3, random_state=1)
    >>> calibrator = hocal.SnapshotCalibrator().fit(world.predictions, counts)
    >>> report = Report(summarise(calibrator, world.predictions, title="Cats", planning=False))
    >>> report.markdown().splitlines()[0]
    '# Cats'
    """

    summary: Summary | LabelSummary

    def __post_init__(self) -> None:
        is_dict = isinstance(self.summary, dict)
        found = self.summary.get("format") if is_dict else type(self.summary).__name__
        if found not in (FORMAT, LABELS_FORMAT):
            rule = f"must be of format {FORMAT!r} or {LABELS_FORMAT!r}"
            remedy = "Make it with summarise() or summarise_labels()."
            raise InputError("summary", rule, value=repr(found), remedy=remedy)

    @property
    def _is_of_labels(self) -> bool:
        return self.summary["format"] == LABELS_FORMAT

    def __repr__(self) -> str:
        data = self.summary["data"]
        items = counted(data["n_items"], "item")
        key, noun = ("n_labels", "label") if self._is_of_labels else ("n_cells_used", "cell")
        more = counted(cast("dict[str, int]", data)[key], noun)
        return f"Report({self.summary['title']!r}, {items}, {more})"

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def json(self, *, indent: int | None = 2) -> str:
        """Return the summary as JSON; a missing number is null."""
        return json.dumps(self.summary, indent=indent, allow_nan=False, ensure_ascii=False)

    def markdown(self) -> str:
        """Return a short report as Markdown."""
        if self._is_of_labels:
            return render_labels_markdown(cast("LabelSummary", self.summary))
        return render_markdown(cast("Summary", self.summary))

    def html(self) -> str:
        """Return a page that works from a file without a network; needs the extra ``app``."""
        if self._is_of_labels:
            return render_labels_page(cast("LabelSummary", self.summary))
        return render_page(cast("Summary", self.summary))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the report, whole or not at all, in the format that the name ends with.

        Parameters
        ----------
        path : str or path
            Ends with .html, .md or .json.
        overwrite : bool, default=False
            Whether an existing file may be replaced.

        Returns
        -------
        Path
            Where it was written.
        """
        target = Path(path)
        form = format_of(target)
        if target.exists() and not overwrite:
            raise FileExistsError(
                f"`path` must be new, got {str(target)!r}. Pass overwrite=True to replace it."
            )
        write_atomically(target, str(getattr(self, form)()).encode("utf-8"))
        return target
