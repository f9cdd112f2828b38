"""What lies beside the icons: a line for each file, and a page about the data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from beaufort._core.catalog import IconPackage
from beaufort._core.text import csv_text
from beaufort.data.writers.icons_open.raster import SAME, SIDE
from beaufort.data.writers.icons_open.subtypes import IconSubtype


class ManifestRow(NamedTuple):
    """An icon that was written."""

    file: str
    icon: IconSubtype
    package: IconPackage
    sha256: str


def manifest(rows: Sequence[ManifestRow]) -> str:
    """A CSV table of all icons, with where each is from, under which license, and the sha256 of its file."""
    about = ("class", "style", "version", "subtype", "in_icons_50", "codepoints")
    head = ("file", *about, "package", "release", "license", "sha256")
    return csv_text(head, map(_line, sorted(rows, key=lambda row: row.file.encode())))


def _line(row: ManifestRow) -> tuple[object, ...]:
    icon, package = row.icon, row.package
    about = (icon.kind, package.style, package.rendition, icon.subtype, int(icon.published))
    origin = (package.package, package.release, package.license)
    return (row.file, *about, "-".join(icon.codepoints).upper(), *origin, row.sha256)


def datasheet(rows: Sequence[ManifestRow], packages: Sequence[IconPackage], alike: int) -> str:
    """A page about the data set, in Markdown."""
    counts = Counter((row.package.style, row.package.rendition) for row in rows)
    lines = [
        f"| {one.style} | {one.rendition} | {counts[one.style, one.rendition]:,} | {one.package} "
        f"{one.release} | {one.author}, {one.home} | {one.license} |"
        for one in packages
    ]
    classes = len({row.icon.kind for row in rows})
    subtypes = len({row.icon.subtype for row in rows})
    published = len({row.icon.subtype for row in rows if row.icon.published})
    page = (files("beaufort.data.writers.icons_open") / "data" / "datasheet.md").read_text(encoding="utf-8")
    return page.format(
        icons=len(rows),
        classes=classes,
        subtypes=subtypes,
        published=published,
        styles=len({one.style for one in packages}),
        side=SIDE,
        same=f"{SAME:g}",
        alike=alike,
        table="\n".join(lines),
    )
