"""Tables and pages of the reports of a selection and an evaluation."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
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

_THUMBNAIL = 160
_QUALITY = 85
GALLERY = 48
"""Largest number of images on a page."""


class EstimateColumn(NamedTuple):
    """A column of estimates, written as four columns: value, bounds, and sample size."""

    name: str
    over: str = "images"


def write_table(path: Path, header: Sequence[str | EstimateColumn], rows: Sequence[Sequence[Any]]) -> None:
    """Write a CSV file, with numbers to six digits and nothing for None."""
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


class ModelRoles(NamedTuple):
    """Names of the models that selected the images; a report never lists them without a mark."""

    surrogates: Sequence[str]

    def role(self, model: str) -> str:
        """Return the role of a model for a column of a CSV file."""
        return "surrogate" if model in self.surrogates else "evaluated"

    def header(self, model: str) -> str:
        """Return the name of a model for the header of a column."""
        return f"{model} (surrogate)" if model in self.surrogates else model

    def cell(self, model: str) -> PageCell:
        """Return the name of a model for the first cell of a row."""
        return PageCell(model, "surrogate" if model in self.surrogates else "")


class PageCell(NamedTuple):
    """A cell of a table."""

    text: str
    small: str = ""
    """Small print after the text, such as an interval."""
    heat: float | None = None
    """Strength of the background color, from 0 to 1."""


class PageImage(NamedTuple):
    """An image with its caption."""

    address: str
    caption: str
    lines: tuple[str, ...] = ()


def chart_dots(estimates: Mapping[str, Estimate]) -> list[dict[str, float | str]]:
    """Return positions of dots and bars of estimates of fractions, on a canvas of 640 × 260."""
    step = 560 / max(1, len(estimates))
    return [
        {
            "x": round(60 + step * (place + 0.5), 1),
            "y": round(220 - 200 * one.value, 1),
            "top": round(220 - 200 * one.high, 1),
            "bottom": round(220 - 200 * one.low, 1),
            "name": name,
        }
        for place, (name, one) in enumerate(estimates.items())
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
    """Return a small version of an image `(h, w, 1 or 3)` as a data URL."""
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).convert("RGB")
    kind = "png"
    if max(image.size) > _THUMBNAIL:
        image.thumbnail((_THUMBNAIL, _THUMBNAIL), Image.Resampling.LANCZOS)
        kind = "jpeg"
    return f"data:image/{kind};base64,{b64encode(encode(image, FORMATS[kind], _QUALITY)).decode()}"


def write_nuisances(path: Path, failures: Sequence[NuisanceFailures], roles: ModelRoles) -> dict[str, Any]:
    """Write `nuisances.csv`, and return the same table for a page: a row for each, models as columns."""
    write_table(
        path,
        ["kind", "nuisance", "model", "role", EstimateColumn("failures")],
        [[one.kind, one.nuisance, one.model, roles.role(one.model), one.failures] for one in failures],
    )
    rows: dict[tuple[str, str], dict[str, Estimate]] = {}
    for one in failures:
        rows.setdefault((one.kind, one.nuisance), {})[one.model] = one.failures
    models = dict.fromkeys(one.model for one in failures)
    return {
        "nuisance_header": ["Nuisance", "images", *map(roles.header, models)],
        "nuisances": [
            (
                PageCell(nuisance or f"every {kind or 'image'}", kind if nuisance else ""),
                PageCell(f"{next(iter(row.values())).n:,}"),
                *(estimate_cell(row[model], heat=True) for model in models),
            )
            for (kind, nuisance), row in rows.items()
        ],
    }
