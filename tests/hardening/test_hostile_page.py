"""A page of hostile names and texts in a real browser: nothing runs, nothing is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hocal
from hocal.report import Report, summarise
from report.browser import CHROMIUM, browse

ATTACKS = [
    "<svg onload=alert(1)>",
    "\"><iframe src='https://example.org'></iframe>",
    "javascript:alert(1)",
    "</style><style>@import 'https://example.org/x.css'</style>",
    "' autofocus onfocus='alert(1)",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "\u2028alert(1)\u2029",
    "{{constructor.constructor('alert(1)')()}}",
]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_nothing_of_the_data_runs_in_the_page(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    p = generator.dirichlet(np.ones(len(ATTACKS)), size=40)
    counts = generator.multinomial(3, p)
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), method="empirical")
    texts = [ATTACKS[row % len(ATTACKS)] for row in range(40)]
    summary = summarise(
        calibrator.fit(p, counts), p, classes=ATTACKS, texts=texts, items=[*texts[:39], "last"],
        title=" ".join(ATTACKS), planning=False, n_gallery=8,
    )  # fmt: skip
    page = Report(summary).save(tmp_path / "report.html")
    (tmp_path / "profile").mkdir()

    with browse(tmp_path / "profile") as browser:
        browser.screen(1280)
        browser.open(page)
        browser.run("new Promise(done => setTimeout(done, 300))")
        asked = {each for each in browser.requests if not each.startswith("data:")}

    assert browser.dialogs == []
    assert browser.messages == []
    assert asked == {page.as_uri()}
