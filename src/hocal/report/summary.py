"""Compute the summary that every format of a report renders."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import hocal
from hocal._base.validation import check_flag, check_integer, check_random_state
from hocal.report.cells import describe_cells, describe_confusions
from hocal.report.classes import describe_classes
from hocal.report.headroom import describe_headroom, measure_gains
from hocal.report.independence import design_effect, read_check
from hocal.report.items import (
    ChosenItems,
    describe_contrast,
    describe_galleries,
    describe_items,
)
from hocal.report.media import Images, Texts, check_rows
from hocal.report.parts import describe_parts
from hocal.report.planning import describe_planning
from hocal.report.schema import Data, Summary
from hocal.report.study import Study
from hocal.report.trust import measure, trust

__all__ = ["FORMAT", "summarise"]

FORMAT = "hocal-report/1"


def summarise(
    calibrator: Any,
    probabilities: Any,
    counts: Any = None,
    *,
    features: ArrayLike | None = None,
    cells: ArrayLike | None = None,
    classes: Any = None,
    items: Any = None,
    images: Any = None,
    texts: Any = None,
    check: Any = None,
    title: str = "Uncertainty report",
    confidence: float = 0.95,
    k: int | None = None,
    n_listed: int = 200,
    n_gallery: int = 24,
    planning: bool = True,
    random_state: Any = 0,
) -> Summary:
    """Say what a model's uncertainty is made of, how far to trust the numbers, and where to act.

    Every item has an uncertainty of its own; from a million items the summary takes those that
    stand out. It holds plain values only and can be written as JSON.

    Parameters
    ----------
    calibrator : SnapshotCalibrator or HigherOrderCalibratedClassifier
        Fitted.
    probabilities : array of shape (n_items, n_classes) or (n_items, n_members, n_classes)
        Predictions for the items of the report; for a classifier the features X of the items.
    counts : array or sparse matrix of shape (n_items, n_classes), optional
        Labels of the same items that were not used to fit. Without them nothing is measured, only
        certified. Items may have none. At most 10,000 items are measured, drawn at random, and
        fewer with more than 25 classes: 250,000 predicted probabilities. Items that the
        calibrator was fitted on are left out, or the figure is said to be one of training. What
        is said about an item takes its labels into account; averages do not.
    features : array of shape (n_items, n_features), optional
        What else the calibrator was fitted on.
    cells : array of shape (n_items,), optional
        Goes with a PrecomputedPartition.
    classes : sequence of n_classes names, optional
        By default those of the classifier, else 0, 1, 2, ...
    items : sequence of n_items names, optional
        By default the row numbers.
    images : uint8 array or sequence, optional
        Pictures for the gallery: an array (n_items, height, width[, 3 or 4]), or a sequence of
        paths, bytes, arrays or None. Scaled to 128 pixels.
    texts : sequence of str, optional
        Texts for the gallery.
    check : AnnotationCheck or dict, optional
        What is known about the independence of the labels. Where it warns of dependence, limits are
        widened by its design effect.
    title : str
        Title of the report.
    confidence : float, default=0.95
        Of the certificate.
    k : int, optional
        Labels in the snapshots of the calibration error: pairs by default, for "empirical" those of
        its fit. Items with fewer are not measured.
    n_listed : int, default=200
        Items in each of the three lists: by what the model does not know, by people's
        disagreement, and by the expected gain of one more label. An item that people agree on is
        not in the second, nor one with less than a twentieth of the possible uncertainty in the
        first two.
    n_gallery : int, default=24
        Items in each of the two galleries.
    planning : bool, default=True
        Whether to forecast what more labels would bring, which takes seconds.
    random_state : int, Generator or None
        For the items measured, the noise floor and the simulated budget.

    Returns
    -------
    Summary
        A dict; its keys are documented in `hocal.report.Summary`.

    Examples
    --------
    >>> import hocal
    >>> from hocal.datasets import make_mixture_world
    >>> from hocal.report import summarise
    >>> world = make_mixture_world(600, 3, random_state=0)
    >>> counts = world.draw(3, random_state=1)
    >>> calibrator = hocal.SnapshotCalibrator().fit(world.predictions[:300], counts[:300])
    >>> classes = ["cat", "dog", "fox"]
    >>> summary = summarise(calibrator, world.predictions[300:], classes=classes, planning=False)
    >>> parts = summary["parts"]
    >>> whole = parts["aleatoric"]["mean"] + parts["epistemic"]["mean"]
    >>> bool(abs(parts["predictive"]["mean"] - whole) < 1e-5)
    True
    """
    check_flag(planning, "planning")
    checked = read_check(check)
    effect = design_effect(checked)
    study = Study.of(
        calibrator, probabilities, counts, features, cells, classes, confidence, effect
    )
    generator = check_random_state(random_state)
    view = _View.of(items, images, texts, n_listed, n_gallery, len(study.cells))
    measurement = measure(study, k, generator)
    gained = measure_gains(study, generator)
    described, leaders = describe_cells(study, measurement)
    chosen = ChosenItems.of(study, max(view.n_listed, view.n_drawn))
    return {
        "format": FORMAT,
        "hocal": hocal.__version__,
        "title": str(title),
        "unit": "nats",
        "data": _data(study),
        "headroom": describe_headroom(study, gained),
        "parts": describe_parts(study),
        "classes": describe_classes(study, gained),
        "trust": trust(study, measurement, checked),
        "cells": described,
        "leaders": leaders,
        "confusions": describe_confusions(study),
        "items": describe_items(chosen, view.names, view.n_listed),
        "galleries": describe_galleries(chosen, view.names, view.n_drawn, view.images, view.texts),
        "contrast": describe_contrast(chosen, view.names, view.images, view.texts),
        "planning": describe_planning(study, generator) if planning else None,
    }


class _View(NamedTuple):
    """How items are shown, and how many."""

    names: Any  #: one per item; None for row numbers
    images: Images
    texts: Texts
    n_listed: int  #: in each of the lists
    n_drawn: int  #: in each of the galleries

    @classmethod
    def of(
        cls, names: Any, images: Any, texts: Any, n_listed: Any, n_gallery: Any, n_items: int
    ) -> _View:
        """Check that there is one of each for every item."""
        return cls(
            check_rows(names, "items", n_items),
            Images(images, n_items),
            Texts(texts, n_items),
            check_integer(n_listed, "n_listed", minimum=0),
            check_integer(n_gallery, "n_gallery", minimum=0),
        )


def _data(study: Study) -> Data:
    statistics = study.calibrator.statistics_
    totals = statistics.observed.totals
    return {
        "n_items": len(study.cells),
        "n_classes": len(study.classes),
        "classes": list(study.classes),
        "n_cells": statistics.n_cells,
        "n_cells_used": len(study.used),
        "partition": str(study.calibrator.partition_),
        "method": study.calibrator.method,
        "panel_size": study.calibrator.panel_size,
        "calibration_items": int(statistics.n_items.sum()),
        "calibration_labels": int(statistics.n_labels.sum()),
        "fewest_labels": int(np.min(totals)),
        "most_labels": int(np.max(totals)),
    }
