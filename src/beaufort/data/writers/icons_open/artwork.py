"""Artwork of icons-open: 823 subtypes of 50 classes, found in npm packages and rasterized on white.

A package is a tarball with SVG in one JSON file, as published by iconify.design, or with WebP files named
by code points.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort._core.errors import AssetError, ImageFileError
from beaufort._core.optional import require
from beaufort.data._files import tar_contents
from beaufort.data.images import decode_image, flatten


class IconSubtype(NamedTuple):
    """A motif that several styles have an icon of."""

    kind: str
    """Name of the class."""
    subtype: str
    codepoints: tuple[str, ...]
    """Lower-case hexadecimal digits, without variation selectors."""
    name: str
    """Name of the emoji in Unicode, with words joined by _."""
    published: bool
    """Whether Icons-50 has it."""


@cache
def icon_subtypes() -> tuple[IconSubtype, ...]:
    """Return all subtypes, ordered by class."""
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


_IMAGE = re.compile(r"[^/]+/assets/([0-9a-f-]+)\.webp")
_VARIATION = "fe0f"


@dataclass(frozen=True)
class Artwork:
    """The icons of one package."""

    path: Path

    def find(self, icon: IconSubtype) -> bytes | None:
        """Return the SVG or WebP file of an icon; None if the package has none."""
        if self._images:
            return self._images.get(icon.codepoints)
        by_points, by_name = self._names
        if by_points:
            name = by_points.get(icon.codepoints)
        else:
            name = by_name.get(_plain(icon.name)) or by_name.get(_plain(icon.subtype))
        return None if name is None else self._svg(name)

    @cached_property
    def _images(self) -> dict[tuple[str, ...], bytes]:
        """WebP files by code points."""
        return {
            _points(match[1]): content
            for name, content in self._files.items()
            if (match := _IMAGE.fullmatch(name))
        }

    @cached_property
    def _names(self) -> tuple[dict[tuple[str, ...], str], dict[str, str]]:
        """Names of icons by code points, and by name without separators."""
        points = {_points(text): str(name) for text, name in self._json("chars.json").items()}
        every = [*self._set["icons"], *(name for name in self._aliases if name not in self._set["icons"])]
        return points, {_plain(name): name for name in reversed(every)}

    def _svg(self, name: str) -> bytes:
        icons = self._set
        while name not in icons["icons"] and name in self._aliases:
            name = self._aliases[name]
        icon = icons["icons"].get(name)
        if icon is None:
            raise AssetError(f"icon {name!r} not found in {self.path.name}")
        width, height = (icon.get(side, icons.get(side, 16)) for side in ("width", "height"))
        head = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        return f'{head}viewBox="0 0 {width} {height}">{icon["body"]}</svg>'.encode()

    @cached_property
    def _set(self) -> dict[str, Any]:
        return self._json("icons.json")

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """Other names of icons, without those of rotated or mirrored icons."""
        aliases: dict[str, dict[str, str]] = self._set.get("aliases", {})
        return {name: one["parent"] for name, one in aliases.items() if set(one) == {"parent"}}

    def _json(self, name: str) -> dict[str, Any]:
        try:
            return dict(json.loads(self._files[f"package/{name}"]))
        except (KeyError, TypeError, ValueError) as error:
            raise AssetError(f"cannot read the JSON object {name} in {self.path.name}: {error}") from None

    @cached_property
    def _files(self) -> dict[str, bytes]:
        """JSON and WebP files of the package by their path in it."""
        try:
            return tar_contents(self.path, lambda name: name.endswith((".json", ".webp")))
        except ImageFileError as error:
            raise AssetError(f"cannot read the npm package {self.path}: {error}") from None


def _points(text: str) -> tuple[str, ...]:
    return tuple(point for point in text.lower().split("-") if point != _VARIATION)


def _plain(name: str) -> str:
    """Return a name without separators, which differ between packages.

    >>> _plain("alarm_clock"), _plain("alarm-clock"), _plain("alarmclock")
    ('alarmclock', 'alarmclock', 'alarmclock')
    """
    return re.sub(r"[^a-z0-9]", "", name.lower())


SIDE = 120
"""Width and height of an icon in pixels, as in most of Icons-50."""
SAME = 4.0
"""Maximum mean absolute difference of two equal renditions, at 32 × 32 pixels."""


def rasterizer() -> str:
    """Return name and version of the SVG renderer; raise a `MissingExtraError` if it is not installed."""
    found = require("resvg_py", "icons", what="icons")
    return f"resvg {found.__resvg_version__}"


def rasterize(content: bytes) -> Image.Image:
    """Return the image of an SVG or WebP file, RGB on white, `SIDE` × `SIDE` pixels.

    System fonts are not used, so that all machines give the same image.
    """
    drawn = _drawn(content) if content.lstrip().startswith(b"<svg") else decode_image(content)
    if drawn.mode == "RGBA" and not np.asarray(drawn)[..., 3].any():
        raise ImageFileError("the image is empty: every pixel is transparent")
    image = flatten(drawn).convert("RGB")
    return image if image.size == (SIDE, SIDE) else image.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def _drawn(content: bytes) -> Image.Image:
    resvg = require("resvg_py", "icons", what="icons")
    try:
        drawn = resvg.svg_to_bytes(
            svg_string=content.decode(), width=SIDE, height=SIDE, skip_system_fonts=True
        )
        image = Image.open(io.BytesIO(bytes(drawn)))
        image.load()
    except Exception as error:  # the errors of the library are not documented
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ImageFileError(f"cannot rasterize the SVG: {reason:.200}") from None
    return image


def thumbnail(image: Image.Image) -> Bytes:
    """Return the image at 32 × 32 pixels."""
    return np.asarray(image.resize((32, 32), Image.Resampling.BILINEAR))


def difference(first: Bytes, second: Bytes) -> float:
    """Return the mean absolute difference of two thumbnails, in levels from 0 to 255."""
    return float(np.abs(first.astype(np.int16) - second).mean())
