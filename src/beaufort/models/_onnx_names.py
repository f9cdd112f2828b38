"""What an ONNX file may say in its metadata: names of classes, and how images are brought to its size."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

RESIZE = "beaufort.resize"
"""The entry of a file that a training wrote: height and width that images are resized to, in JSON."""

_KEYS = ("names", "class_names", "classes", "labels")
"""What exporters call the entry."""


def names_in(metadata: Mapping[str, str], count: int | None) -> tuple[str, ...] | None:
    """The name of each output, in order; None if the metadata have no list of as many names.

    A list, a dictionary by number (in JSON, or as Python prints it), or names separated by commas or lines.

    >>> names_in({"names": "{0: 'cat', 1: 'dog'}"}, 2)
    ('cat', 'dog')
    """
    for key in _KEYS:
        names = _listed(metadata[key]) if key in metadata else ()
        if names and len(names) == count:
            return names
    return None


def resize_in(metadata: Mapping[str, str]) -> Any:
    """What the entry `RESIZE` says, unchecked; None if there is none.

    >>> resize_in({"beaufort.resize": "[32, 32]"})
    (32, 32)
    """
    found = _parsed(metadata[RESIZE]) if RESIZE in metadata else None
    return tuple(found) if isinstance(found, list) else found


def _listed(text: str) -> tuple[str, ...]:
    found = _parsed(text)
    if isinstance(found, dict):
        try:
            numbered = {int(key): name for key, name in found.items()}
        except (TypeError, ValueError):
            return ()
        found = [numbered[place] for place in sorted(numbered)] if min(numbered, default=1) == 0 else []
    if isinstance(found, str):
        found = [name.strip() for name in found.split("\n" if "\n" in found else ",")]
    good = isinstance(found, list | tuple) and all(isinstance(name, str) and name for name in found)
    return tuple(found) if good else ()


def _parsed(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text
