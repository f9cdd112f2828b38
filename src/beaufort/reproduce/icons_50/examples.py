"""A sheet of example icons by style, from artwork that may be shown: the set `icons-open`, never Icons-50."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from beaufort.errors import OptionError

__all__ = ["example_sheet"]

_CLASSES = ("airplane", "bird", "clock", "drinks", "feline", "flower", "hand", "heart", "lock", "tree")
_TILE, _GAP, _NAMES, _HEAD = 48, 4, 130, 22
_MANIFEST = "manifest.csv"

Row = dict[str, str]
"""A line of the manifest, by column."""


def example_sheet(folder: Path) -> bytes:
    """A PNG: a row a rendition of a style, an icon of each of some classes; a gap where there is none.

    A column has one subtype, the one that most renditions have, so that rows differ in style alone as far as
    possible. Only icons are shown that the set's manifest lists with a license, and whose bytes are those it
    lists.
    """
    icons = _chosen(_listed(folder))
    names = sorted({rendition for rendition, _ in icons})
    size = _NAMES + len(_CLASSES) * (_TILE + _GAP), _HEAD + len(names) * (_TILE + _GAP)
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for column, name in enumerate(_CLASSES):
        draw.text((_NAMES + column * (_TILE + _GAP), 4), name, "black", font)
    for row, (style, version) in enumerate(names):
        top = _HEAD + row * (_TILE + _GAP)
        told = style if version == "0" else f"{style}, version {version}"
        draw.text((_GAP, top + _TILE // 2 - 6), told, "black", font)
        for column, name in enumerate(_CLASSES):
            if icon := icons.get(((style, version), name)):
                sheet.paste(_picture(folder, icon), (_NAMES + column * (_TILE + _GAP), top))
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()


def _listed(folder: Path) -> list[Row]:
    """The rows of the manifest that may be shown, of the classes that are shown."""
    path = folder / _MANIFEST
    if not path.is_file():
        raise OptionError(
            f"icons-open must be a folder that `beaufort make icons-open` made, got {folder}, which has no "
            f"{_MANIFEST}"
        )
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["class"] in _CLASSES and row["license"]]


def _chosen(rows: list[Row]) -> dict[tuple[tuple[str, str], str], Row]:
    """The icon of each rendition and class: of the subtype that is most frequent, if there is one of it."""
    common = Counter((row["class"], row["subtype"]) for row in rows)
    found: dict[tuple[tuple[str, str], str], Row] = {}
    for row in sorted(rows, key=lambda row: (-common[row["class"], row["subtype"]], row["subtype"])):
        found.setdefault(((row["style"], row["version"]), row["class"]), row)
    return found


def _picture(folder: Path, row: Row) -> Image.Image:
    content = (folder / row["class"] / Path(row["file"]).name).read_bytes()
    if hashlib.sha256(content).hexdigest() != row["sha256"]:
        raise OptionError(f"{row['file']} of {folder} must be the icon that {_MANIFEST} lists, got another")
    with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
        return picture.convert("RGB").resize((_TILE, _TILE), Image.Resampling.BILINEAR)
