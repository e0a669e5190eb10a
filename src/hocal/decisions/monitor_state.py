"""What a monitor has seen so far: in memory, and in a file."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError
from hocal._base.files import write_atomically
from hocal._base.typing import Array, Index
from hocal._base.validation import check_fraction
from hocal.guarantees.shift_evidence import N_MEANS, STAKES, Means, Wealth

__all__ = ["MonitorState", "read_state", "write_state"]

FORMAT = "hocal-monitor"
VERSION = "1"
BEFORE = -math.log(2)  # log-evidence of a mean before its first value
_PAIR = (2, len(STAKES))
# arrays of a file, with the shape of each row's part
SHAPES: dict[str, tuple[int, ...]] = {
    "log_invested": (2, N_MEANS, len(STAKES)),
    "walk": _PAIR,
    "lowest": _PAIR,
    "since": _PAIR,
    "n_values": (),
    "log_evidence": (2,),
    "sums": (),
}
WHOLE = ("rows", "since", "n_values")  # arrays of whole numbers


class MonitorState(NamedTuple):
    """Capital and evidence of every watched mean, and the path of the evidence."""

    wealth: Wealth  #: of the bets on each row
    log_evidence: Array  #: (n_rows, 2) for a rise and a fall
    sums: Array  #: (n_rows,) of the values
    path: Array  #: (n_items, 3) log-evidence after each item: pooled, disagreement, mean

    @classmethod
    def start(cls, n_rows: int) -> MonitorState:
        """Return the state before any item."""
        logs = np.full((n_rows, 2), BEFORE)
        return cls(Wealth.start(n_rows), logs, np.zeros(n_rows), np.empty((0, 3)))

    def keep(self, rows: Index | slice, wealth: Wealth, logs: Array, totals: Array) -> None:
        """Remember what further values did to rows."""
        self.wealth.put(rows, wealth)
        self.log_evidence[rows] = logs
        self.sums[rows] += totals

    def extended(self, path: Array) -> MonitorState:
        """Return the state with the evidence after further items."""
        return self._replace(path=np.concatenate([self.path, path]))


def write_state(
    path: str | os.PathLike[str], state: MonitorState, means: Means, confidence: float
) -> None:
    """Write a state to a file, whole or not at all."""
    from safetensors.numpy import save as to_bytes

    rows = np.flatnonzero(state.wealth.n_values).astype(np.int64)
    arrays: dict[str, NDArray[Any]] = {"rows": rows, "path": np.ascontiguousarray(state.path)}
    parts = state.wealth._asdict() | {"log_evidence": state.log_evidence, "sums": state.sums}
    arrays |= {name: parts[name][rows] for name in SHAPES}
    header = json.dumps({"confidence": confidence, "model": _model(means)})
    checksum = _checksum(header, arrays)
    metadata = {"format": FORMAT, "version": VERSION, "header": header, "checksum": checksum}
    write_atomically(Path(path), to_bytes(arrays, metadata))


def read_state(path: str | os.PathLike[str], means: Means) -> tuple[MonitorState, float]:
    """Return the state and the confidence of a file after checking all of it."""
    metadata, arrays = _read(Path(path))
    if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
        raise _bad("must name a file written by Monitor.save", "another file", path)
    header = metadata.get("header", "")
    if metadata.get("checksum") != _checksum(header, arrays):
        raise _bad("must name an unaltered file", "a wrong checksum", path)
    said = _parse(header, path)
    if said["model"] != _model(means):
        rule = "must name the state of a monitor of this model"
        raise _bad(rule, "that of another", path, "Start a new state after a new fit.")
    _check_arrays(arrays, len(means.n_values), path)
    return _rebuild(arrays, len(means.n_values)), float(said["confidence"])


def _rebuild(arrays: dict[str, NDArray[Any]], n_rows: int) -> MonitorState:
    state = MonitorState.start(n_rows)
    wealth = Wealth(*(arrays[name] for name in Wealth._fields))
    state.keep(arrays["rows"], wealth, arrays["log_evidence"], arrays["sums"])
    return state.extended(arrays["path"])


def _check_arrays(
    arrays: dict[str, NDArray[Any]], n_rows: int, path: str | os.PathLike[str]
) -> None:
    """Refuse arrays that no monitor of so many rows can have."""
    rows = arrays.get("rows", np.empty(0, dtype=np.int64))
    n_items = len(arrays["path"]) if "path" in arrays else 0
    shapes = {name: (len(rows), *shape) for name, shape in SHAPES.items()}
    shapes |= {"rows": (len(rows),), "path": (n_items, 3)}
    for name, shape in shapes.items():
        kind = np.int64 if name in WHOLE else np.float64
        found = arrays.get(name)
        if found is None or found.shape != shape or found.dtype != kind:
            raise _bad(f"must hold `{name}` of shape {shape}", "another content", path)
        if np.isnan(found).any() or (found == np.inf).any():
            raise _bad(f"must hold numbers in `{name}`", "others", path)
    rising = (np.diff(rows) > 0).all() and ((rows >= 0) & (rows < n_rows)).all()
    counts = arrays["n_values"]
    if set(arrays) != set(shapes) or not rising or ((counts < 1) | (counts > n_items)).any():
        raise _bad("must hold what a monitor has seen", "rows or counts that no monitor has", path)


def _parse(header: str, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what the header says."""
    try:
        said = json.loads(header)
        check_fraction(said["confidence"], "confidence")
        return {"confidence": said["confidence"], "model": said["model"]}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _bad("must have a sound header", str(error), path) from error


def _model(means: Means) -> str:
    """Return a fingerprint of what is watched."""
    return _checksum("", means._asdict())


def _checksum(header: str, arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _read(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"No monitor at {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise _bad("must name a whole file written by Monitor.save", str(error), path) from error


def _bad(
    rule: str, value: str, path: str | os.PathLike[str], remedy: str = "Start a new state."
) -> InputError:
    return InputError("path", rule, value=value, where=f"in {path}", remedy=remedy)
