"""Show doctests in the API reference as code, although docstrings have no section for them."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

__all__ = ["DoctestFences"]

_DOCTEST = re.compile(r"^>>>.*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


class DoctestFences(Extension):
    """Enclose every block of `>>>` lines and its output in a code fence."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object when it is loaded."""
        if obj.docstring is not None:
            obj.docstring.value = _DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
