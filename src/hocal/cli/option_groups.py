"""Options that belong together, one value for each group; typer sees every option by itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, get_type_hints

import typer

from hocal._base.errors import InputError
from hocal.cli import options

__all__ = [
    "LabelColumns",
    "PredictionColumns",
    "Rules",
    "grouped",
    "idle_of_labels",
    "refuse_idle",
    "refuse_without_labels",
    "was_typed",
]

Reasons = Mapping[str, str | None]


class LabelColumns(NamedTuple):
    """What LABELS is: a table with these columns, or the export of a tool."""

    label: options.Label = None
    annotator: options.Annotator = None
    count_columns: options.CountColumns = None
    tool: options.Tool = None
    question: options.Question = None
    several: options.Several = "error"
    names: options.Names = None

    @property
    def named(self) -> bool:
        """Whether columns of a table are named."""
        return self.label is not None or self.count_columns is not None


class Rules(NamedTuple):
    """Which rows of LABELS may be left out."""

    missing: options.Missing = "error"
    unknown: options.Unknown = "error"
    duplicates: options.Duplicates = "error"
    unpredicted: options.Unpredicted = "error"


class PredictionColumns(NamedTuple):
    """What PROBABILITIES has for a model where it is not as in the fit, and what is beside it."""

    item: options.ItemOfModel = None
    probability_columns: options.ColumnsOfModel = None
    cell: options.CellOfModel = None
    by: options.ByOfModel = None
    features: options.FeaturesOfModel = None
    ensemble: options.Ensemble = None
    probability_names: options.ProbabilityNames = None


_TYPED: ContextVar[frozenset[str]] = ContextVar("options that were typed")
_GROUPS = (LabelColumns, Rules, PredictionColumns)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take groups of options, each of which typer shows and reads by itself.

    It also lets the command ask which options were typed.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if kind in _GROUPS}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parameters += _fields(groups[name]) if name in groups else [_flat(parameter, hints[name])]

    @functools.wraps(command)
    def call(context: typer.Context, **values: Any) -> None:
        made = {}
        _TYPED.set(_typed_options(context))
        for name, kind in groups.items():
            made[name] = kind(**{field: values.pop(field) for field in kind._fields})
        command(**values, **made)

    named = inspect.Parameter.KEYWORD_ONLY
    parameters.append(inspect.Parameter("context", named, annotation=typer.Context))
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _fields(kind: type[Any]) -> list[inspect.Parameter]:
    """Return the options of a group as parameters of a command."""
    hints = get_type_hints(kind, include_extras=True)
    named = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(name, named, default=kind._field_defaults[name], annotation=hints[name])
        for name in kind._fields
    ]


def _flat(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    # keyword-only, so that one without a default may follow one with
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint)


def was_typed(option: str) -> bool:
    """Tell whether an option of this command was typed; one that it does not have was not."""
    return option in _TYPED.get()


def _typed_options(context: typer.Context) -> frozenset[str]:
    """Return all spellings of the options that were typed."""
    typed: set[str] = set()
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE":
            typed.update(parameter.opts)
            typed.update(parameter.secondary_opts)
    return frozenset(typed)


def refuse_idle(reasons: Reasons) -> None:
    """Refuse options that were typed and would do nothing: for each, why; None where it counts."""
    for option, reason in reasons.items():
        if reason is not None and was_typed(option):
            raise InputError(option, f"must be left out {reason}")


def idle_of_labels(columns: LabelColumns, *, export: bool) -> Reasons:
    """Return why options about LABELS would do nothing, by what LABELS is."""
    if export:
        of_export = "for an export, which says who judged what"
        return {"--annotator": of_export, "--names": of_export}
    of_table = "for a table: it is about exports of tools"
    counted = columns.count_columns is not None
    of_counts = "with --count-columns, which know nobody" if counted else None
    one_column = len(options.split_list(columns.label, "--label") or []) == 1
    nobody = one_column and columns.annotator is None
    return {
        "--question": of_table,
        "--several": of_table,
        "--annotator": of_counts,
        "--unknown": "with --count-columns, which are the classes" if counted else None,
        "--duplicates": "without --annotator, which tells who judged twice" if nobody else None,
    }


_WITHOUT_LABELS: Reasons = dict.fromkeys(
    [f"--{name.replace('_', '-')}" for name in (*LabelColumns._fields, *Rules._fields)],
    "without --labels, which it is about",
)


def refuse_without_labels(labels: Any, *others: str) -> None:
    """Refuse options about LABELS, and others that need them, where there are none."""
    if labels is None:
        refuse_idle({**_WITHOUT_LABELS, **dict.fromkeys(others, "without --labels")})
