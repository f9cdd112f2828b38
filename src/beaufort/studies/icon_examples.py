"""A sheet of example icons by style, from the freely licensed set `icons-open`, never Icons-50."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from beaufort._core.errors import OptionError
from beaufort.data import ICON_PACKAGES
from beaufort.studies.study_file import definition

_CLASSES = ("airplane", "bird", "clock", "drinks", "feline", "flower", "hand", "heart", "lock", "tree")
_TILE, _GAP, _NAMES, _HEAD = 48, 4, 130, 22
_MANIFEST = "manifest.csv"
_SHARE_ALIKE = "CC-BY-SA-4.0"
_PACKAGES = {one.package: one for one in ICON_PACKAGES}

Row = dict[str, str]
"""A line of the manifest."""


class ExampleSheet(NamedTuple):
    """An image that may be published, with the credits that its licenses require."""

    png: bytes
    credits: tuple[str, ...]
    """Author, source and license of each rendition of a style."""

    @property
    def about(self) -> str:
        text: str = definition("icons-50")["examples_text"]
        if any(credit.endswith(_SHARE_ALIKE) for credit in self.credits):
            text += f" Some of it is under {_SHARE_ALIKE}, so the image as a whole is, too."
        return text


def example_sheet(folder: Path) -> ExampleSheet:
    """Draw one row per rendition of a style and one column per class, with gaps for missing icons.

    A column has the subtype that most renditions have, so that rows differ mostly in style. Only icons that
    the manifest lists with a license and a matching digest are drawn.
    """
    icons = _select(_read_manifest(folder))
    renditions = sorted({rendition for rendition, _ in icons})
    size = _NAMES + len(_CLASSES) * (_TILE + _GAP), _HEAD + len(renditions) * (_TILE + _GAP)
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for column, name in enumerate(_CLASSES):
        draw.text((_NAMES + column * (_TILE + _GAP), 4), name, "black", font)
    for row, rendition in enumerate(renditions):
        top = _HEAD + row * (_TILE + _GAP)
        draw.text((_GAP, top + _TILE // 2 - 6), _title(*rendition), "black", font)
        for column, name in enumerate(_CLASSES):
            if icon := icons.get((rendition, name)):
                sheet.paste(_read_icon(folder, icon), (_NAMES + column * (_TILE + _GAP), top))
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    first = {rendition: icon for (rendition, _), icon in reversed(icons.items())}
    return ExampleSheet(file.getvalue(), tuple(_credit(one, first[one]) for one in renditions))


def _credit(rendition: tuple[str, str], row: Row) -> str:
    package = _PACKAGES[row["package"]]
    return f"{_title(*rendition)}: {package.author}, {package.home}, {row['license']}"


def _title(style: str, version: str) -> str:
    return style if version == "0" else f"{style}, version {version}"


def _read_manifest(folder: Path) -> list[Row]:
    path = folder / _MANIFEST
    if not path.is_file():
        raise OptionError(
            f"{path} not found; icons-open must be a directory created by `beaufort make icons-open`"
        )
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["class"] in _CLASSES]
    return [row for row in rows if row["license"] and row["package"] in _PACKAGES]


def _select(rows: list[Row]) -> dict[tuple[tuple[str, str], str], Row]:
    """Return the icon of each rendition and class, of the most frequent subtype that there is."""
    common = Counter((row["class"], row["subtype"]) for row in rows)
    icons: dict[tuple[tuple[str, str], str], Row] = {}
    for row in sorted(rows, key=lambda row: (-common[row["class"], row["subtype"]], row["subtype"])):
        icons.setdefault(((row["style"], row["version"]), row["class"]), row)
    return icons


def _read_icon(folder: Path, row: Row) -> Image.Image:
    content = (folder / row["class"] / Path(row["file"]).name).read_bytes()
    if hashlib.sha256(content).hexdigest() != row["sha256"]:
        raise OptionError(f"{row['file']} in {folder} does not have the digest in {_MANIFEST}")
    with Image.open(io.BytesIO(content), formats=["PNG"]) as icon:
        return icon.convert("RGB").resize((_TILE, _TILE), Image.Resampling.BILINEAR)
