"""Show results in notebooks and terminals: small escaped tables, and lines that fit."""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hocal._base.plurals import counted
from hocal._base.shares import percent

__all__ = ["FittedInNotebooks", "bar", "fitted_table", "table", "wrap_text"]

# columns of the narrowest terminals in use
TERMINAL = 80
# of the aleatoric and the epistemic part, told apart by colour-blind eyes as well
_COLOURS = ("#0072b2", "#d55e00")


def wrap_text(text: str) -> str:
    """Return a repr in lines that fit a terminal."""
    lines = textwrap.wrap(text, TERMINAL, subsequent_indent="    ", break_long_words=False)
    return "\n".join(lines)


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    before: str = "",
    note: str = "",
) -> str:
    """Return an HTML table; the first entry of a row is its name, and all but `before` is text.

    Parameters
    ----------
    caption : str
        What the table is about.
    heads : sequence of str
        Names of the columns after the first.
    rows : iterable of sequences
        Entries, as text.
    before : str
        HTML to put before the table.
    note : str
        Text to put after it.

    Returns
    -------
    str
        HTML without styles of its own, so that it takes those of the notebook.

    Examples
    --------
    >>> from hocal._base.notebook import table
    >>> "&lt;b&gt;" in table("<b>", ["mean"], [["aleatoric", 0.5]])
    True
    """
    top = "".join(f'<th scope="col">{escape(str(head))}</th>' for head in heads)
    lines = [
        (escape(str(name)), "".join(f"<td>{escape(str(entry))}</td>" for entry in rest))
        for name, *rest in rows
    ]
    body = "".join(f'<tr><th scope="row">{name}</th>{cells}</tr>' for name, cells in lines)
    after = f"<p>{escape(note)}</p>" if note else ""
    title = f"<caption>{escape(caption)}</caption>"
    head = f"<thead><tr><td></td>{top}</tr></thead>"
    return f"<div>{before}<table>{title}{head}<tbody>{body}</tbody></table>{after}</div>"


def bar(aleatoric: float, epistemic: float) -> str:
    """Return a bar with the two parts of an uncertainty, empty where there is none."""
    whole = aleatoric + epistemic
    if not whole > 0:
        return _svg("no uncertainty", "")
    words = f"{percent(aleatoric / whole)} aleatoric, {percent(epistemic / whole)} epistemic"
    width = 100 * aleatoric / whole
    marks = _rectangle(0.0, width, _COLOURS[0]) + _rectangle(width, 100 - width, _COLOURS[1])
    return _svg(words, marks)


def _rectangle(x: float, width: float, fill: str) -> str:
    return f'<rect x="{x:.2f}" width="{width:.2f}" height="8" fill="{fill}"/>'


def _svg(words: str, marks: str) -> str:
    """Return a drawing of 100 by 8 units, with words for those who cannot see it."""
    size = 'width="300" height="8" viewBox="0 0 100 8" preserveAspectRatio="none"'
    return f'<svg role="img" aria-label="{words}" {size}>{marks}</svg>'


def fitted_table(statistics: Any, parts: Mapping[str, Any], *, n_borrowed: int) -> str:
    """Return a table of a fitted calibrator: its statistics, and the mean of each uncertainty."""
    n_items = statistics.n_items
    means = {name: float(part @ n_items / n_items.sum()) for name, part in parts.items()}
    cells = f"{n_borrowed} of {counted(len(n_items), 'cell')}"
    labels = counted(statistics.n_labels.sum(), "label")
    return table(
        f"Calibrated on {labels} of {counted(n_items.sum(), 'item')}",
        ["mean over calibration items, nats"],
        [(name, f"{mean:.4g}") for name, mean in means.items()],
        before=bar(means["aleatoric"], means["epistemic"]),
        note=f"{cells} have no items of their own and borrow from others.",
    )


class FittedInNotebooks:
    """Add a table of what a fit found to the picture of an estimator that scikit-learn draws."""

    @abstractmethod
    def _fitted_html(self) -> str:
        """Return the table; empty before the fit."""

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._fitted_html()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:  # not where scikit-learn is configured to show text
            bundle["text/html"] += self._fitted_html()
        return bundle
