"""What the reports of a selection and of an evaluation have in common: CSV tables and a page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort._core.files import write_output
from beaufort._core.pages import render
from beaufort._core.text import csv_text
from beaufort.data.images import FORMATS, encode
from beaufort.metrics.stats import Estimate
from beaufort.mining.selection import NuisanceFailures

MARK = "surrogate"
"""What a model that chose the images is called beside its name."""
_THUMBNAIL = 160
_QUALITY = 85


class EstimateColumn(NamedTuple):
    """A column of estimates, which is written as four: value, bounds, and what the interval is over."""

    name: str
    over: str = "images"


def write_table(path: Path, header: Sequence[str | EstimateColumn], rows: Sequence[Sequence[Any]]) -> None:
    """Write a CSV file; numbers with six digits, nothing for None."""
    names: list[str] = []
    for column in header:
        if isinstance(column, EstimateColumn):
            name, over = column
            names += [name, f"{name}_low", f"{name}_high", f"{name}_{over}"]
        else:
            names.append(column)
    lines = []
    for row in rows:
        line: list[Any] = []
        for column, value in zip(header, row, strict=True):
            if not isinstance(column, EstimateColumn):
                line.append(value)
            elif value is None:
                line += [None] * 4
            else:
                line += [value.value, value.low, value.high, value.n]
        lines.append(["" if x is None else f"{x:.6g}" if isinstance(x, float) else x for x in line])
    write_output(path, csv_text(names, lines).encode())


def role(model: str, surrogates: Sequence[str]) -> str:
    """Return what a model was, for a table."""
    return MARK if model in surrogates else "evaluated"


def marked_name(model: str, surrogates: Sequence[str]) -> str:
    """Return a model's name for the head of a column; surrogates are never listed without a mark."""
    return f"{model} ({MARK})" if model in surrogates else model


class PageCell(NamedTuple):
    """A cell of a table."""

    text: str
    small: str = ""
    """Small print after it, as an interval."""
    heat: float | None = None
    """How strongly it is colored, from 0 to 1."""


class PageImage(NamedTuple):
    """An image with its caption."""

    address: str
    caption: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class PageChart:
    """Estimates of fractions from left to right, as dots with bars."""

    label: str
    names: tuple[str, ...]
    values: tuple[Estimate, ...]

    @property
    def dots(self) -> list[dict[str, float | str]]:
        """Positions of dots and bars, on a canvas of 640 × 260."""
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


class _Fact(NamedTuple):
    name: str
    values: tuple[str, ...]


def write_page(path: Path, template: str, *, facts: Mapping[str, str], **values: Any) -> None:
    """Write a self-contained page from a template."""
    text = render(
        template,
        styles=["mining/mining.css"],
        eyebrow="mining",
        facts=[_Fact(name, (value,)) for name, value in facts.items()],
        **values,
    )
    write_output(path, text.encode())


def estimate_cell(estimate: Estimate | None, *, heat: bool = False) -> PageCell:
    """Return a fraction in percent with its interval."""
    if estimate is None:
        return PageCell("none")
    value, _, interval = f"{estimate:.1%}".partition(" %")
    return PageCell(f"{value} %", interval.strip(), estimate.value if heat else None)


def thumbnail(pixels: Bytes) -> str:
    """Return an image `(h, w, 1 or 3)` in small as a data URL."""
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).convert("RGB")
    kind = "png"
    if max(image.size) > _THUMBNAIL:
        image.thumbnail((_THUMBNAIL, _THUMBNAIL), Image.Resampling.LANCZOS)
        kind = "jpeg"
    return f"data:image/{kind};base64,{b64encode(encode(image, FORMATS[kind], _QUALITY)).decode()}"


# Failures by nuisance


def write_nuisances(path: Path, found: Sequence[NuisanceFailures], surrogates: Sequence[str]) -> None:
    """Write `nuisances.csv`."""
    write_table(
        path,
        ["kind", "nuisance", "model", "role", EstimateColumn("failures")],
        [[one.kind, one.nuisance, one.model, role(one.model, surrogates), one.failures] for one in found],
    )


def nuisance_table(
    found: Sequence[NuisanceFailures], surrogates: Sequence[str]
) -> tuple[Sequence[str], list[Sequence[PageCell]]]:
    """Return header and rows of a table with a row for each nuisance and a column for each model."""
    rows: dict[tuple[str, str], dict[str, Estimate]] = {}
    for one in found:
        rows.setdefault((one.kind, one.nuisance), {})[one.model] = one.failures
    models = dict.fromkeys(one.model for one in found)
    return ["Nuisance", "images", *(marked_name(model, surrogates) for model in models)], [
        [
            PageCell(nuisance or f"every {kind or 'image'}", kind if nuisance else ""),
            PageCell(f"{next(iter(row.values())).n:,}"),
            *(estimate_cell(row[model], heat=True) for model in models),
        ]
        for (kind, nuisance), row in rows.items()
    ]
