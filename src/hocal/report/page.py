"""Render a summary as one page that needs no network: styles, script and pictures are inside."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any, cast

from hocal.report import headroom_words, item_words, words
from hocal.report.charts import draw_disagreement, draw_gains, draw_map, draw_spread
from hocal.report.contrast_words import tell_contrast
from hocal.report.schema import Summary

__all__ = ["SMALLEST_SCALE", "render_page", "render_template"]

SMALLEST_SCALE = 1e-6  # nats: what fills a bar where everything is 0
_TEMPLATES = (
    "frame.html.j2",
    "page.html.j2",
    "contrast.html.j2",
    "labels.html.j2",
    "macros.html.j2",
)


def render_page(summary: Summary) -> str:
    """Return the HTML page of a summary; every text of the user is escaped."""
    return render_template(
        "page.html.j2",
        summary=summary,
        numbers=_without_pictures(summary),
        words=words,
        gaining=headroom_words,
        gains=draw_gains(summary["headroom"]["gains"]),
        contrasts=[(tell_contrast(told), told["card"]) for told in summary["contrast"]],
        item_words=item_words,
        map=draw_map(summary["parts"]["map"]),
        spread=draw_spread(summary["parts"]),
        disagreement=draw_disagreement(summary["cells"]),
        scale=_largest_part(summary),
    )


def render_template(name: str, **content: Any) -> str:
    """Return the page of a template, with styles and script inside."""
    styles = _read("page.css")
    script = _read("page.js")
    page = _environment().get_template(name)
    policy = _policy(styles, script)
    text: str = page.render(policy=policy, styles=styles, script=script, **content)
    return text


def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('The page of a report needs jinja2: pip install "hocal[app]"') from error
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({name: _read(name) for name in _TEMPLATES}),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"fixed": words.fixed, "percent": words.percent, "whole": words.whole}
    return environment


def _read(name: str) -> str:
    return files("hocal.report").joinpath("templates", name).read_text(encoding="utf-8")


def _policy(styles: str, script: str) -> str:
    """Return a content security policy: the page's own styles and script, and no address at all."""
    rules = [
        "default-src 'none'",
        "img-src data:",
        f"style-src {_digest(styles)}",
        f"script-src {_digest(script)}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _without_pictures(summary: Summary) -> Summary:
    """Return what the page keeps as its numbers, which need not hold the pictures twice."""
    galleries = [
        gallery | {"cards": [card | {"image": None} for card in gallery["cards"]]}
        for gallery in summary["galleries"]
    ]
    contrast = [told | {"card": told["card"] | {"image": None}} for told in summary["contrast"]]
    return cast("Summary", {**summary, "galleries": galleries, "contrast": contrast})


def _largest_part(summary: Summary) -> float:
    """Return the value that fills a bar, the same in the whole page."""
    parts = summary["parts"]
    listed = [card["item"] for gallery in summary["galleries"] for card in gallery["cards"]]
    by_labels = [item["aleatoric"] for item in [*summary["items"], *listed]]
    largest = max(parts["aleatoric"]["maximum"], parts["epistemic"]["maximum"], SMALLEST_SCALE)
    return max(largest, *by_labels, 0.0)
