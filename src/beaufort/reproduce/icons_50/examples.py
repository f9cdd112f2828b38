"""A sheet of example icons by style, from artwork that may be shown: the set `icons-open`, never Icons-50."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from beaufort.datasets import Dataset, resized

__all__ = ["example_sheet"]

_CLASSES = (
    "airplane",
    "bird",
    "clock",
    "drinks",
    "feline",
    "flower",
    "hand",
    "heart",
    "lock",
    "tree",
    "vehicle",
)
_TILE, _GAP, _NAMES, _HEAD = 48, 4, 130, 22


def example_sheet(icons: Dataset) -> bytes:
    """A PNG: a row a style, an icon of each of some classes; a gap where a style has none."""
    icons = resized(icons, _TILE)
    styles, classes = icons.column("style"), icons.column("class")
    first: dict[tuple[str, str], int] = {}
    for place, pair in enumerate(zip(styles, classes, strict=True)):
        first.setdefault(pair, place)
    names = sorted(set(styles))
    size = _NAMES + len(_CLASSES) * (_TILE + _GAP), _HEAD + len(names) * (_TILE + _GAP)
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for column, name in enumerate(_CLASSES):
        draw.text((_NAMES + column * (_TILE + _GAP), 4), name, "black", font)
    for row, style in enumerate(names):
        top = _HEAD + row * (_TILE + _GAP)
        draw.text((_GAP, top + _TILE // 2 - 6), style, "black", font)
        for column, name in enumerate(_CLASSES):
            if (style, name) in first:
                picture = Image.fromarray(np.asarray(icons[first[style, name]].image))
                sheet.paste(picture, (_NAMES + column * (_TILE + _GAP), top))
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()
