"""Building of icons-open: rasterize the icons of all packages, remove duplicates and write PNG files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from beaufort._core.arrays import Bytes
from beaufort._core.catalog import fetch
from beaufort._core.errors import BeaufortError
from beaufort._core.files import write_bytes
from beaufort._core.text import csv_text
from beaufort.data._catalog_entries import ICON_PACKAGES, IconPackage
from beaufort.data.images import FORMATS, encode
from beaufort.data.writers.icons_open.artwork import (
    SAME,
    SIDE,
    Artwork,
    IconSubtype,
    difference,
    icon_subtypes,
    rasterize,
    rasterizer,
    thumbnail,
)
from beaufort.data.writers.output_folder import Failure, Outcome, Progress, claim_folder, stop_reason

MANIFEST, DATASHEET = "manifest.csv", "README.md"
_VERSION = 1
"""Must be raised when the same packages give other images."""


class _Candidate(NamedTuple):
    icon: IconSubtype
    package: IconPackage
    content: bytes

    @property
    def file(self) -> str:
        return f"{self.icon.kind}/{self.package.style}_{self.package.rendition}_{self.icon.subtype}.png"


def make_icons_open(
    output: Path | str,
    *,
    packages: Sequence[IconPackage] = ICON_PACKAGES,
    progress: Progress | None = None,
) -> Outcome:
    """Make icons-open; packages are downloaded if they are not in the cache.

    Builds are identical, byte for byte; existing files that differ are written again. Renditions of a style
    that look the same are written once, and so are subtypes of a class with the same drawing in a style.

    Args:
        output: a directory; created if missing.
        packages: sources of the artwork.
        progress: called with the number of finished icons and their total.
    """
    folder = Path(output)
    settings = {
        "command": "make",
        "dataset": "icons-open",
        "version": _VERSION,
        "side": SIDE,
        "rasterizer": rasterizer(),
        "packages": [f"{one.package}@{one.release}" for one in packages],
    }
    if full := claim_folder(folder, settings, ()):
        return Outcome(stopped=full)
    artwork = [Artwork(fetch(one.file)) for one in packages]
    candidates = list(_candidates(packages, artwork))
    return _Build(folder, len(candidates), progress).run(candidates, packages)


def _candidates(packages: Sequence[IconPackage], artwork: Sequence[Artwork]) -> Iterator[_Candidate]:
    """Yield icons in the order of classes and subtypes; the current rendition of a style comes first."""
    for icon in icon_subtypes():
        for package, drawings in zip(packages, artwork, strict=True):
            content = None if icon.kind in package.without else drawings.find(icon)
            if content is not None:
                yield _Candidate(icon, package, content)


@dataclass
class _Build:
    """The state of a build."""

    folder: Path
    total: int
    progress: Progress | None
    done: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)
    rows: list[ManifestRow] = field(default_factory=list)
    renditions: dict[tuple[str, str], list[Bytes]] = field(default_factory=dict)
    """Thumbnails by style and subtype."""
    drawings: set[tuple[str, str, bytes]] = field(default_factory=set)
    """Class, style and sha256 of the pixels."""
    alike: int = 0

    def run(self, candidates: Sequence[_Candidate], packages: Sequence[IconPackage]) -> Outcome:
        for number, candidate in enumerate(candidates, start=1):
            try:
                self._process(candidate)
            except BeaufortError as error:
                origin = f"{candidate.package.package} {candidate.package.release}"
                self.failures.append(Failure(candidate.file, f"{error} (from {origin})"))
            except OSError as error:
                if reason := stop_reason(self.folder / candidate.file, error):
                    return self._outcome(reason)
                self.failures.append(Failure(candidate.file, str(error.strerror or error)))
            if self.progress:
                self.progress(number, self.total)
        if not self.failures:
            write_bytes(self.folder / MANIFEST, manifest(self.rows).encode())
            write_bytes(self.folder / DATASHEET, datasheet(self.rows, packages, self.alike).encode())
        return self._outcome(None)

    def _process(self, candidate: _Candidate) -> None:
        image = rasterize(candidate.content)
        style, icon = candidate.package.style, candidate.icon
        before = self.renditions.setdefault((style, icon.subtype), [])
        drawing = (icon.kind, style, hashlib.sha256(image.tobytes()).digest())
        small = thumbnail(image)
        if drawing in self.drawings or any(difference(small, one) <= SAME for one in before):
            self.alike += 1
            return
        path, content = self.folder / candidate.file, encode(image, FORMATS["png"])
        exists = path.is_file() and path.read_bytes() == content
        if not exists:
            write_bytes(path, content)
        self.done += not exists
        self.skipped += exists
        before.append(small)
        self.drawings.add(drawing)
        self.rows.append(
            ManifestRow(candidate.file, icon, candidate.package, hashlib.sha256(content).hexdigest())
        )

    def _outcome(self, stopped: str | None) -> Outcome:
        return Outcome(self.done, self.skipped, tuple(sorted(self.failures)), 0, stopped)


class ManifestRow(NamedTuple):
    """An icon that was written."""

    file: str
    icon: IconSubtype
    package: IconPackage
    sha256: str


def manifest(rows: Sequence[ManifestRow]) -> str:
    """Return a CSV table of all icons with origin, license and sha256."""
    about = ("class", "style", "version", "subtype", "in_icons_50", "codepoints")
    head = ("file", *about, "package", "release", "license", "sha256")
    return csv_text(head, map(_line, sorted(rows, key=lambda row: row.file.encode())))


def _line(row: ManifestRow) -> tuple[object, ...]:
    icon, package = row.icon, row.package
    about = (icon.kind, package.style, package.rendition, icon.subtype, int(icon.published))
    origin = (package.package, package.release, package.license)
    return (row.file, *about, "-".join(icon.codepoints).upper(), *origin, row.sha256)


def datasheet(rows: Sequence[ManifestRow], packages: Sequence[IconPackage], alike: int) -> str:
    """Return a description of the dataset in Markdown."""
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
