"""Show results in notebooks and terminals: small tables with everything escaped, and lines that fit."""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["FittedInNotebooks", "bar", "fitted_table", "fold", "table"]

TERMINAL = 80  # columns
_COLOURS = (
    "#0072b2",
    "#d55e00",
)  # aleatoric and epistemic, told apart by colour-blind eyes as well


def fold(text: str) -> str:
    """Return a repr in lines that fit a terminal."""
    return "\n".join(
        textwrap.wrap(text, TERMINAL, subsequent_indent="    ", break_long_words=False)
    )


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    before: str = "",
    note: str = "",
) -> str:
    """Return an HTML table; the first entry of a row is its name, `before` is HTML, all else is text.

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
    share = 100 * aleatoric / whole if whole > 0 else 0.0
    words = (
        f"{share:.0f}% aleatoric, {100 - share:.0f}% epistemic" if whole > 0 else "no uncertainty"
    )
    parts = ((0.0, share, _COLOURS[0]), (share, 100 - share, _COLOURS[1])) if whole > 0 else ()
    marks = "".join(
        f'<rect x="{x:.2f}" width="{width:.2f}" height="8" fill="{fill}"/>'
        for x, width, fill in parts
    )
    return (
        f'<svg role="img" aria-label="{words}" width="300" height="8" viewBox="0 0 100 8" preserveAspectRatio="none">'
        f"{marks}</svg>"
    )


def fitted_table(statistics: Any, parts: Mapping[str, Any], *, n_borrowed: int) -> str:
    """Return a table of a fitted calibrator: its cell statistics and the parts of the uncertainty of each cell."""
    n_items = statistics.n_items
    means = {name: float(part @ n_items / n_items.sum()) for name, part in parts.items()}
    return table(
        f"Calibrated on {statistics.n_labels.sum():,} labels of {n_items.sum():,} items",
        ["mean over calibration items, nats"],
        [(name, f"{mean:.4g}") for name, mean in means.items()],
        before=bar(means["aleatoric"], means["epistemic"]),
        note=f"{n_borrowed} of {len(n_items)} cells have no items of their own and borrow from others.",
    )


class FittedInNotebooks:
    """Add a table of what a fit found to the picture that scikit-learn draws of an estimator in a notebook."""

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
