"""Pages of tables and pictures, in the style of the report."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort._core.files import write_output
from beaufort._core.pages import render
from beaufort.data.images import FORMATS, encode, read_image
from beaufort.metrics.stats import Estimate

_THUMBNAIL = 160
_QUALITY = 85


@dataclass(frozen=True)
class PageCell:
    """A cell of a table."""

    text: str
    small: str = ""
    """What follows in small print: an interval."""
    heat: float | None = None
    """From 0 to 1: how strongly it is colored."""


@dataclass(frozen=True)
class PageImage:
    """A picture with its caption."""

    address: str
    caption: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class PageChart:
    """Estimates from left to right, as dots with bars; shares."""

    label: str
    names: tuple[str, ...]
    values: tuple[Estimate, ...]

    @property
    def dots(self) -> list[dict[str, float | str]]:
        """Where dots and bars are, on a canvas of 640 × 260."""
        step = 560 / max(1, len(self.values))
        return [
            {
                "x": round(60 + step * (place + 0.5), 1),
                "y": round(220 - 200 * one.value, 1),
                "top": round(220 - 200 * one.high, 1),
                "bottom": round(220 - 200 * one.low, 1),
                "name": name,
            }
            for place, (name, one) in enumerate(zip(self.names, self.values, strict=True))
        ]


@dataclass(frozen=True)
class PageSection:
    """A part of a page: what it shows in a sentence, then a chart, a table, pictures."""

    id: str
    title: str
    lead: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[PageCell, ...], ...] = ()
    images: tuple[PageImage, ...] = ()
    chart: PageChart | None = None


@dataclass(frozen=True)
class PageFact:
    """How the page was made."""

    name: str
    values: tuple[str, ...]


def write_page(
    path: Path,
    *,
    title: str,
    sentence: str,
    about: str,
    sections: Sequence[PageSection],
    facts: Mapping[str, str],
) -> None:
    """Write a page that needs nothing else."""
    text = render(
        "mining/page.html",
        styles=["mining/mining.css"],
        title=title,
        eyebrow="mining",
        sentence=sentence,
        about=about,
        navigation={section.id: section.title for section in sections},
        sections=sections,
        facts=[PageFact(name, (value,)) for name, value in facts.items()],
    )
    write_output(path, text.encode())


def share_cell(share: Estimate | None, *, heat: bool = False) -> PageCell:
    """A share in percent with its interval."""
    if share is None:
        return PageCell("none")
    value, _, interval = f"{share:.1%}".partition(" %")
    return PageCell(f"{value} %", interval.strip(), share.value if heat else None)


def picture(path: Path) -> str:
    """An image file, made small, as an address that holds it."""
    return _address(read_image(path).convert("RGB"))


def pixels_address(pixels: Bytes) -> str:
    """The same of an array `(h, w, 1 or 3)`."""
    return _address(Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).convert("RGB"))


def _address(shown: Image.Image) -> str:
    if max(shown.size) > _THUMBNAIL:
        shown.thumbnail((_THUMBNAIL, _THUMBNAIL), Image.Resampling.LANCZOS)
        content, kind = encode(shown, FORMATS["jpeg"], _QUALITY), "jpeg"
    else:
        buffer = io.BytesIO()
        shown.save(buffer, "PNG")
        content, kind = buffer.getvalue(), "png"
    return f"data:image/{kind};base64,{b64encode(content).decode()}"
