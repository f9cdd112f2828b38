"""A sheet of example icons by style, from artwork that may be shown: the set `icons-open`, never Icons-50."""

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

_CLASSES = ("airplane", "bird", "clock", "drinks", "feline", "flower", "hand", "heart", "lock", "tree")
_TILE, _GAP, _NAMES, _HEAD = 48, 4, 130, 22
_MANIFEST = "manifest.csv"
_SHARE_ALIKE = "CC-BY-SA-4.0"
_PACKAGES = {one.package: one for one in ICON_PACKAGES}

Row = dict[str, str]
"""A line of the manifest, by column."""


class ExampleSheet(NamedTuple):
    """Pictures that may be shown, and to whom they are owed."""

    png: bytes
    credits: tuple[str, ...]
    """For each rendition of a style its author, where it is from and its license, as licenses ask for."""

    @property
    def about(self) -> str:
        """What must be said beside it, before the credits."""
        told = "Not from Icons-50 itself, but from artwork under free licenses, made smaller, on white."
        if any(credit.endswith(_SHARE_ALIKE) for credit in self.credits):
            told += f" As some of it is under {_SHARE_ALIKE}, the picture as a whole is, too."
        return told


def example_sheet(folder: Path) -> ExampleSheet:
    """A row a rendition of a style, an icon of each of some classes; a gap where there is none.

    A column has one subtype, the one that most renditions have, so that rows differ in style alone as far as
    possible. Only icons are shown that the set's manifest lists with a license, and whose bytes are those it
    lists; the author is known of those from a package of the catalog.
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
        draw.text((_GAP, top + _TILE // 2 - 6), _title(style, version), "black", font)
        for column, name in enumerate(_CLASSES):
            if icon := icons.get(((style, version), name)):
                sheet.paste(_picture(folder, icon), (_NAMES + column * (_TILE + _GAP), top))
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return ExampleSheet(file.getvalue(), tuple(_credit(icons, rendition) for rendition in names))


def _credit(icons: dict[tuple[tuple[str, str], str], Row], rendition: tuple[str, str]) -> str:
    row = next(row for (one, _), row in icons.items() if one == rendition)
    package = _PACKAGES[row["package"]]
    return f"{_title(*rendition)}: {package.author}, {package.home}, {row['license']}"


def _title(style: str, version: str) -> str:
    return style if version == "0" else f"{style}, version {version}"


def _listed(folder: Path) -> list[Row]:
    """The rows of the manifest that may be shown, of the classes that are shown."""
    path = folder / _MANIFEST
    if not path.is_file():
        raise OptionError(
            f"icons-open must be a folder that `beaufort make icons-open` made, got {folder}, which has no "
            f"{_MANIFEST}"
        )
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["class"] in _CLASSES]
    return [row for row in rows if row["license"] and row["package"] in _PACKAGES]


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
