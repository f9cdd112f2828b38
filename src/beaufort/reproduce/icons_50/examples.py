"""A sheet of example icons by style, from artwork that may be shown: the set `icons-open`, never Icons-50."""

from __future__ import annotations

import csv
import hashlib
import io
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from beaufort.errors import OptionError

__all__ = ["example_sheet"]

_CLASSES = ("airplane", "bird", "clock", "drinks", "feline", "flower", "hand", "heart", "lock", "tree")
_TILE, _GAP, _NAMES, _HEAD = 48, 4, 130, 22
_MANIFEST = "manifest.csv"


def example_sheet(folder: Path) -> bytes:
    """A PNG: a row a style, an icon of each of some classes; a gap where a style has none.

    Only icons are shown that the set's manifest lists with a license, and whose bytes are those it lists.
    """
    icons = _listed(folder)
    names = sorted({style for style, _ in icons})
    size = _NAMES + len(_CLASSES) * (_TILE + _GAP), _HEAD + len(names) * (_TILE + _GAP)
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for column, name in enumerate(_CLASSES):
        draw.text((_NAMES + column * (_TILE + _GAP), 4), name, "black", font)
    for row, style in enumerate(names):
        top = _HEAD + row * (_TILE + _GAP)
        draw.text((_GAP, top + _TILE // 2 - 6), style, "black", font)
        for column, name in enumerate(_CLASSES):
            if (style, name) in icons:
                sheet.paste(_picture(icons[style, name]), (_NAMES + column * (_TILE + _GAP), top))
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()


def _listed(folder: Path) -> dict[tuple[str, str], bytes]:
    """The first icon of each style and class, as a file's bytes."""
    path = folder / _MANIFEST
    if not path.is_file():
        raise OptionError(
            f"icons-open must be a folder that `beaufort make icons-open` made, got {folder}, which has no "
            f"{_MANIFEST}"
        )
    found: dict[tuple[str, str], bytes] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            pair = row["style"], row["class"]
            if pair in found or row["class"] not in _CLASSES or not row["license"]:
                continue
            content = (folder / row["class"] / Path(row["file"]).name).read_bytes()
            if hashlib.sha256(content).hexdigest() != row["sha256"]:
                raise OptionError(
                    f"{row['file']} of {folder} must be the icon that {_MANIFEST} lists, got another"
                )
            found[pair] = content
    return found


def _picture(content: bytes) -> Image.Image:
    with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
        return picture.convert("RGB").resize((_TILE, _TILE), Image.Resampling.BILINEAR)
