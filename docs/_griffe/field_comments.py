"""Show on API pages what is written behind a field: ``name: type  #: what it is``."""

import re
from pathlib import Path
from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Take a comment that begins with ``#:`` for the description of its field."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Describe an attribute that has no docstring."""
        text = _behind(attr) or _above(attr)
        if attr.docstring is None and text:
            attr.docstring = griffe.Docstring(text, lineno=attr.lineno, parent=attr)


def _behind(attr: griffe.Attribute) -> str:
    """Return the comment on the attribute's own line."""
    found = re.search(r"#:\s+(.*)$", attr.source)
    return found[1] if found else ""


def _above(attr: griffe.Attribute) -> str:
    """Return the comment on the lines right above, where it did not fit behind."""
    if not isinstance(attr.filepath, Path) or attr.lineno is None:
        return ""
    lines = []
    for line in reversed(attr.lines_collection[attr.filepath][: attr.lineno - 1]):
        if not line.strip().startswith("#:"):
            break
        lines.append(line.strip().removeprefix("#:").strip())
    return " ".join(reversed(lines))
