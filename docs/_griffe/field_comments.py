"""Let the API pages show what is written behind the fields of a result: ``name: type  #: what it is``."""

import re
from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Take a comment that begins with ``#:`` for the description of its field."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Describe an attribute that has no docstring."""
        found = re.search(r"#:\s+(.*)$", attr.source)
        if attr.docstring is None and found:
            attr.docstring = griffe.Docstring(found[1], lineno=attr.lineno, parent=attr)
