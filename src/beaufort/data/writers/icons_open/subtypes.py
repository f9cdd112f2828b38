"""What is to be drawn: 823 subtypes of 50 classes, each with its code points and its name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple


class IconSubtype(NamedTuple):
    """What several styles have an icon of."""

    kind: str
    """The class."""
    subtype: str
    codepoints: tuple[str, ...]
    """In lower-case hexadecimal digits, without variation selectors."""
    name: str
    """Of the emoji in Unicode, words joined by _."""
    published: bool
    """Whether Icons-50 has it."""


@cache
def icon_subtypes() -> tuple[IconSubtype, ...]:
    """Every subtype, by class."""
    text = (files("beaufort.data.writers.icons_open") / "data" / "subtypes.txt").read_text(encoding="utf-8")
    found, kind = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif not line.startswith("#"):
            subtype, codepoints, *name = line.split("\t")
            plain = subtype.removeprefix("+")
            points = tuple(point for point in codepoints.split() if point != "fe0f")
            found.append(IconSubtype(kind, plain, points, name[0] if name else plain, plain == subtype))
    return tuple(found)
