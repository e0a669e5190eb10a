"""Change model files in every way one can think of, and write them with the right checksum."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as to_bytes

from hocal.calibration.persistence import VERSION, _checksum

Tensors = dict[str, NDArray[Any]]
Generator = np.random.Generator

# Numbers that are free within their rules: what a fit found could have been another legal value,
# and no rule can tell.  A file that changes them must still answer with valid numbers.
FREE_ARRAYS = (
    "mixtures.points",
    "mixtures.weights",
    "seen.fingerprints",
    "seen.inputs",
    "predicted",
    "levels.aleatoric.predicted",
    "levels.epistemic.predicted",
    "reference.",
    "sets.",
    "source",
    "partition.",
    "items.",
)
FREE_VALUES = ("temperature", "diagnostics", "inputs", "notes", "parameters", "module")

HOSTILE_NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 2.0, 1e300, -1e300, 0.0, 1e-320)
HOSTILE_INTEGERS = (-1, -(2**63), 2**62, 2**31, 10**6, 0, 1)
HOSTILE_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**70, 1.5, -0.0, "", "items", "cells", "__class__", [], [1, 2],
    {}, {"__dict__": {}}, [[[[]]]], "x" * 10_000,
)  # fmt: skip


def write_forged(tensors: Tensors, header: Any, extra: dict[str, str] | None = None) -> bytes:
    """Return a file whose checksum is right, whatever it holds."""
    text = header if isinstance(header, str) else json.dumps(header, sort_keys=True)
    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    metadata = {"format": "hocal-calibrator", "version": str(VERSION), "header": text}
    return to_bytes(arrays, {**metadata, "checksum": _checksum(arrays, text), **(extra or {})})


def mutate_bytes(content: bytes, generator: Generator) -> bytes:
    """Flip, cut, repeat or insert bytes."""
    array = np.frombuffer(content, dtype=np.uint8).copy()
    place, other = np.sort(generator.integers(0, len(array), 2))
    kind = generator.integers(4)
    if kind == 0:
        places = generator.integers(0, len(array), generator.integers(1, 20))
        array[places] ^= generator.integers(1, 256, len(places)).astype(np.uint8)
        return array.tobytes()
    if kind == 1:
        return array[:place].tobytes()
    if kind == 2:
        return array[:place].tobytes() + array[other:].tobytes()
    return array[:place].tobytes() + generator.bytes(8) + array[place:].tobytes()


def mutate_array(tensors: Tensors, generator: Generator) -> tuple[Tensors, str]:
    """Change one array, or two, and say which."""
    forged = dict(tensors)
    name = str(generator.choice(sorted(tensors)))
    change = ARRAY_CHANGES[generator.integers(len(ARRAY_CHANGES))]
    forged[name] = change(tensors[name], generator)
    return forged, name


def mutate_names(tensors: Tensors, generator: Generator) -> tuple[Tensors, str]:
    """Drop an array, add one, or exchange two."""
    forged = dict(tensors)
    name, other = generator.choice(sorted(tensors), 2, replace=False)
    kind = generator.integers(3)
    if kind == 0:
        del forged[name]
    elif kind == 1:
        forged[f"{name}{generator.choice(['.', '_', '.__dict__', 'x'])}"] = forged[other]
    else:
        forged[name], forged[other] = forged[other], forged[name]
    return forged, str(name)


def mutate_header(header: dict[str, Any], generator: Generator) -> tuple[Any, str]:
    """Change a value somewhere in the header, or the header's form; say which key it was under."""
    kind = generator.integers(8)
    if kind == 0:
        return change_text(json.dumps(header, sort_keys=True), generator), "header"
    forged = json.loads(json.dumps(header))
    place, path = forged, []
    while True:
        key = str(generator.choice(sorted(place)))
        path.append(key)
        if not isinstance(place[key], dict) or not place[key] or generator.random() < 0.2:
            break
        place = place[key]
    value = HOSTILE_VALUES[generator.integers(len(HOSTILE_VALUES))]
    if kind == 1:
        del place[key]
    elif kind == 2:
        place[str(generator.choice(["__dict__", "fit", "n_cells_", "extra", "_locate"]))] = value
    else:
        place[key] = value
    return forged, ".".join(path)


def change_text(text: str, generator: Generator) -> str:
    """Return a header in another form: deep, long, repeated, or no JSON at all."""
    forms = (
        "[" * 100_000,
        "[" * 500 + "]" * 500,
        text[:-1],
        text + " ",
        text.replace(": ", ":"),
        text[:-1] + ', "parameters": {}}',
        "null",
        "1" * 10_000,
        text.replace('"method"', '"Method"'),
    )
    return forms[generator.integers(len(forms))]


def _set_entry(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    changed = array.copy()
    hostile = HOSTILE_NUMBERS if array.dtype.kind == "f" else HOSTILE_INTEGERS
    if array.size:
        value = hostile[generator.integers(len(hostile))]
        information = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        if information is not None:
            value = min(max(value, information.min), information.max)
        changed.reshape(-1)[generator.integers(array.size)] = value
    return changed


def _add_one(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    changed = array.copy()
    if array.size:
        place = generator.integers(array.size)
        with np.errstate(all="ignore"):
            changed.reshape(-1)[place] += array.dtype.type(1)
    return changed


def _scale(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        factor = generator.choice([-1.0, 0.0, 0.5, 1.001, 2.0, 1e30])
        if array.dtype.kind == "f":
            return np.asarray(array * factor).astype(array.dtype)
        return np.asarray(array * array.dtype.type(2))


def _shorten(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    if array.ndim == 0:
        return array.reshape(1)
    axis = int(generator.integers(array.ndim))
    return np.take(array, np.arange(max(array.shape[axis] - 1, 0)), axis=axis)


def _lengthen(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    if array.ndim == 0:
        return np.stack([array, array])
    axis = int(generator.integers(array.ndim))
    return np.concatenate([array, array], axis=axis)


def _retype(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    kind = generator.choice(["f4", "f8", "f2", "i8", "i4", "u8", "u1", "bool"])
    with np.errstate(all="ignore"):
        return array.astype(kind)


def _reshape(array: NDArray[Any], generator: Generator) -> NDArray[Any]:  # noqa: ARG001
    return array.T if array.ndim > 1 else array.reshape(-1, 1)


def _reverse(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    if array.ndim == 0:
        return array
    return np.flip(array, axis=int(generator.integers(array.ndim))).copy()


def _shuffle(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    return generator.permutation(array.reshape(-1)).reshape(array.shape)


ARRAY_CHANGES: tuple[Callable[[NDArray[Any], Generator], NDArray[Any]], ...] = (
    _set_entry, _set_entry, _add_one, _scale, _shorten, _lengthen, _retype, _reshape, _reverse,
    _shuffle,
)  # fmt: skip
