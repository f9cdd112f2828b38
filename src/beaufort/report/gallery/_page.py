"""The gallery as one HTML file that needs nothing else."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from PIL import Image

from beaufort._core.pages import render
from beaufort._core.text import counted
from beaufort.data.images import FORMATS, encode
from beaufort.report.gallery._exhibit import Exhibit, ExhibitRow

_QUALITY = 88


def page(exhibit: Exhibit) -> str:
    """The page's text."""
    return render(
        "report/gallery.html",
        styles=["report/gallery.css"],
        title="Beaufort: the corruptions",
        eyebrow="gallery",
        pixelated=exhibit.pixelated,
        about=_about(exhibit),
        navigation={row.name: _words(row) for row in exhibit.rows},
        groups={group: [_row(row, exhibit) for row in rows] for group, rows in exhibit.groups.items()},
    )


def _about(exhibit: Exhibit) -> str:
    picture = "a painted picture" if exhibit.origin == "painted" else exhibit.origin
    many = counted(len(exhibit.rows), "corruption")
    marked = " The severity that was published is marked." if any(row.marked for row in exhibit.rows) else ""
    return f"{many} of {picture}; constants of the {exhibit.scales}, seed {exhibit.seed}.{marked}"


def _row(row: ExhibitRow, exhibit: Exhibit) -> dict[str, Any]:
    """What the template shows of one corruption."""
    name, several = _words(row), len(row.pictures) > 1
    figures = [_figure(exhibit.clean, "clean", f"the clean picture, before {name}")]
    for severity, picture in row.pictures.items():
        told = f"severity {severity}" if several else "one strength"
        marked = severity == row.marked
        figures.append(_figure(picture, told, f"{name}, {told}", marked=marked))
    return {
        "name": row.name,
        "title": name,
        "kind": "random" if row.random else "not random",
        "summary": row.summary,
        "details": row.details,
        "figures": figures,
        "constants": {severity: text for severity, text in row.constants.items() if text},
    }


def _figure(picture: Image.Image, caption: str, alt: str, *, marked: bool = False) -> dict[str, Any]:
    width, height = picture.size
    shown = {"address": _address(picture), "width": width, "height": height}
    return {**shown, "caption": caption, "alt": alt, "marked": marked}


def _words(row: ExhibitRow) -> str:
    return row.name.replace("_", " ")


def _address(picture: Image.Image) -> str:
    """A picture as an address that holds it: a small one without loss, a photo as JPEG."""
    kind = "png" if picture.mode == "L" else "jpeg"
    content = b64encode(encode(picture, FORMATS[kind], _QUALITY)).decode()
    return f"data:image/{kind};base64,{content}"
