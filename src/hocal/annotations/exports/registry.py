"""The tools that are known, by name; `register_tool` adds one."""

from __future__ import annotations

from hocal._base.errors import InputError
from hocal.annotations.exports.argilla import Argilla
from hocal.annotations.exports.crowds import MechanicalTurk, Toloka
from hocal.annotations.exports.doccano import Doccano
from hocal.annotations.exports.label_studio import LabelStudio
from hocal.annotations.exports.lewidi import Lewidi
from hocal.annotations.exports.potato import Potato
from hocal.annotations.exports.prodigy import Prodigy
from hocal.annotations.exports.protocol import AnnotationTool

__all__ = ["find_tool", "known_tools", "register_tool"]

_TOOLS: dict[str, AnnotationTool] = {}


def register_tool(tool: AnnotationTool) -> None:
    """Make the exports of a tool readable, in Python and on the command line.

    Parameters
    ----------
    tool : AnnotationTool
        What recognises and reads its exports. A tool of the same name is replaced.

    Examples
    --------
    >>> from hocal.annotations.exports import known_tools
    >>> "argilla" in known_tools()
    True
    """
    _TOOLS[tool.name] = tool


def known_tools() -> list[str]:
    """Return the names of the tools whose exports can be read, sorted."""
    return sorted(_TOOLS)


def find_tool(name: str) -> AnnotationTool:
    """Return the tool of a name, in whatever case and with whatever between its words."""
    wanted = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    if wanted not in _TOOLS:
        rule = f"must be one of {', '.join(known_tools())}"
        raise InputError("tool", rule, value=repr(name))
    return _TOOLS[wanted]


for _tool in (
    LabelStudio(),
    Argilla(),
    Doccano(),
    Prodigy(),
    MechanicalTurk(),
    Toloka(),
    Potato(),
    Lewidi(),
):
    register_tool(_tool)
