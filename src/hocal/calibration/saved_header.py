"""The header of a model file: JSON of known keys, each value checked as an argument would be."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from hocal._base.errors import InputError
from hocal._base.validation import check_choice, check_integer, check_number
from hocal.calibration.calibrator import METHODS, THINNINGS, SnapshotCalibrator
from hocal.calibration.inputs import InputShape
from hocal.uncertainty.decomposition import check_panel_size

__all__ = [
    "check_diagnostics",
    "check_header_size",
    "check_inputs",
    "check_notes",
    "check_parameters",
    "check_temperature",
    "parse_header",
]

MOST_CHARACTERS = 1 << 24  # 16 MB: the names of a hundred thousand classes
DEEPEST = 20  # lists in lists: what is saved has five levels
MOST_NUMBERS = 1 << 24  # members x classes of one item: 128 MB
KEYS = {"parameters", "partition", "shape", "diagnostics", "inputs", "temperature", "levels"}
PARTITION_KEYS = {"class", "module", "parameters", "learned"}
SOLVER_KEYS = {"scales", "gap", "n_iterations"}  # diagnostics of mixtures that were estimated


def parse_header(text: str) -> dict[str, Any]:
    """Return the header of a file, in the one form in which `save` writes it."""
    check_header_size(text)
    try:
        header = json.loads(text)
        canonical = json.dumps(header, sort_keys=True)
    except (ValueError, RecursionError) as error:
        raise InputError("header", "must be JSON", value=str(error)) from error
    if canonical != text:
        raise InputError("header", "must be JSON as it was written")
    _check_depth(header)
    _check_keys(header, KEYS, {"notes", "sets"}, "header")
    _check_keys(header["partition"], PARTITION_KEYS, (), "partition")
    for name in ("class", "module"):
        if not isinstance(header["partition"][name], str):
            raise InputError("partition", f"must name its {name}")
    for name in ("parameters", "learned"):
        _check_kind(header["partition"][name], dict, name)
    for name, length in (("shape", 2), ("inputs", 3)):
        _check_kind(header[name], list, name)
        if len(header[name]) != length:
            raise InputError(name, f"must have {length} entries", value=header[name])
    check_notes(header.get("notes", {}))
    return dict(header)


def check_header_size(text: str) -> None:
    """Refuse a header that no calibrator has."""
    if len(text) > MOST_CHARACTERS:
        rule = f"must have at most {MOST_CHARACTERS:,} characters with all notes"
        raise InputError("notes", rule, value=f"{len(text):,}")


def check_notes(notes: Any) -> dict[str, str]:
    """Return notes after checking that they map text to text."""
    if not isinstance(notes, Mapping):
        raise InputError("notes", "must map str to str", value=type(notes).__name__)
    for key, value in notes.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InputError(
                "notes",
                "must map str to str",
                value=f"{key!r}: {value!r}",
                remedy="Turn values into text first.",
            )
    return dict(notes)


def check_parameters(parameters: Any) -> dict[str, Any]:
    """Return the parameters of a calibrator, whose partition is kept elsewhere."""
    _check_keys(parameters, SnapshotCalibrator().get_params(deep=False), (), "parameters")
    if parameters["partition"] is not None:
        raise InputError("parameters", "must have no partition", value=parameters["partition"])
    check_choice(parameters["method"], "method", METHODS)
    check_choice(parameters["thinning"], "thinning", THINNINGS)
    if parameters["panel_size"] is not None:
        check_panel_size(parameters["panel_size"])
    for name, minimum in (("k", 1), ("random_state", 0)):
        if parameters[name] is not None:
            check_integer(parameters[name], name, minimum=minimum)
    return dict(parameters)


def check_diagnostics(diagnostics: Any, calibrator: SnapshotCalibrator) -> dict[str, Any]:
    """Return how the fit went; "empirical" is about snapshots of a size that labels allow."""
    if calibrator.method != "empirical":
        _check_keys(diagnostics, SOLVER_KEYS, (), "diagnostics")
        _check_kind(diagnostics["scales"], dict, "scales")
        numbers = [*diagnostics["scales"].values(), diagnostics["gap"]]
        for number in numbers:
            _check_kind(number, float, "diagnostics")
        check_integer(diagnostics["n_iterations"], "n_iterations", minimum=0)
        return dict(diagnostics)
    _check_keys(diagnostics, {"k"}, (), "diagnostics")
    smallest = calibrator.statistics_.smallest_total
    size = smallest if calibrator.k is None else calibrator.k
    k = check_integer(diagnostics["k"], "k", minimum=1, maximum=smallest)
    points = calibrator.cell_mixtures_.support * k
    if k != size or np.abs(points - np.round(points)).max() > 1e-9 * k:
        raise InputError("k", f"must be {size}, the size of the snapshots", value=k)
    return dict(diagnostics)


def check_inputs(inputs: list[Any], n_classes: int) -> InputShape:
    """Return what a calibrator expects of items."""
    n_members = check_integer(inputs[0], "n_members", minimum=1, maximum=MOST_NUMBERS // n_classes)
    check_integer(inputs[1], "n_classes", minimum=n_classes, maximum=n_classes)
    n_features = check_integer(inputs[2], "n_features", minimum=0, maximum=MOST_NUMBERS)
    return InputShape(n_members, n_classes, n_features)


def check_temperature(temperature: Any) -> float:
    """Return the temperature, NaN where it is not known."""
    if temperature is None:
        return math.nan
    return check_number(temperature, "temperature", minimum=0, strict=True)


def _check_keys(found: Any, wanted: Collection[str], allowed: Collection[str], name: str) -> None:
    _check_kind(found, dict, name)
    wrong = sorted((set(found) ^ set(wanted)) - set(allowed))
    if wrong:
        raise InputError(name, f"must have {', '.join(sorted(wanted))} alone", value=wrong)


def _check_kind(found: Any, kind: type, name: str) -> None:
    if not isinstance(found, kind):
        raise InputError(name, f"must be a {kind.__name__}", value=type(found).__name__)


def _check_depth(value: Any) -> None:
    """Refuse lists in lists beyond what is ever saved, level by level."""
    level = [value]
    for _ in range(DEEPEST):
        inside = [part for part in level if isinstance(part, dict | list)]
        level = [x for part in inside for x in (part.values() if isinstance(part, dict) else part)]
        if not level:
            return
    raise InputError("header", f"must have at most {DEEPEST} levels")
