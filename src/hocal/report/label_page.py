"""Render a summary of labels as one page that needs no network."""

from __future__ import annotations

from hocal.report import label_words, words
from hocal.report.charts import draw_forecast, draw_labels_spread
from hocal.report.label_schema import LabelSummary
from hocal.report.page import SMALLEST_SCALE, render_template

__all__ = ["render_labels_page"]

FINDINGS = ("dissents", "class use", "agrees", "nothing")
VERDICTS = ("disputed", "open", "agreed")


def render_labels_page(summary: LabelSummary) -> str:
    """Return the HTML page of a summary of labels; every text of the user is escaped."""
    forecast = summary["forecast"]
    drawn = None if forecast is None or not forecast["now"] else draw_forecast(forecast)
    return render_template(
        "labels.html.j2",
        summary=summary,
        numbers=summary,
        words=words,
        say=label_words,
        spread=draw_labels_spread(summary["aleatoric_steps"], summary["unit"]),
        forecast=drawn,
        scale=max([SMALLEST_SCALE, *(item["upper"] for item in summary["items"])]),
        findings=FINDINGS,
        verdicts=VERDICTS,
    )
