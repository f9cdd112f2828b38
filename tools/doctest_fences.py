"""Doctests of the API reference as code: in a docstring they stand in the text, without a section."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

__all__ = ["DoctestFences"]

_DOCTEST = re.compile(r"^>>>.*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


class DoctestFences(Extension):
    """Puts every block of `>>>` lines and its output between fences."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for every object that is read."""
        if obj.docstring is not None:
            obj.docstring.value = _DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
