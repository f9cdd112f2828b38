"""The gallery as one picture: a row a corruption, a column a severity."""

from __future__ import annotations

from PIL import Image, ImageDraw, ImageFont

from beaufort._core.text import counted
from beaufort.corruptions import SEVERITIES
from beaufort.report.gallery._exhibit import Exhibit, ExhibitRow

_TILE, _GAP, _MARGIN = 168, 6, 20
_NAMES, _HEAD = 190, 84
_PAPER, _INK, _FAINT, _ACCENT = (250, 250, 248), (28, 32, 38), (112, 118, 126), (214, 92, 34)


def sheet(exhibit: Exhibit) -> Image.Image:
    """The contact sheet, RGB."""
    columns = 1 + len(SEVERITIES)
    width = 2 * _MARGIN + _NAMES + columns * (_TILE + _GAP) - _GAP
    height = 2 * _MARGIN + _HEAD + len(exhibit.rows) * (_TILE + _GAP) - _GAP
    canvas = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(canvas)
    _head(draw, exhibit)
    for number, row in enumerate(row for rows in exhibit.groups.values() for row in rows):
        top = _MARGIN + _HEAD + number * (_TILE + _GAP)
        _row(canvas, top, row, exhibit)
    return canvas


def _head(draw: ImageDraw.ImageDraw, exhibit: Exhibit) -> None:
    draw.text((_MARGIN, _MARGIN - 4), "Beaufort", font=ImageFont.load_default(28), fill=_INK)
    told = f"{counted(len(exhibit.rows), 'corruption')}, {exhibit.scales}, seed {exhibit.seed}"
    if any(row.marked for row in exhibit.rows):
        told += "; framed: the severity that was published"
    draw.text((_MARGIN, _MARGIN + 32), told, font=ImageFont.load_default(14), fill=_FAINT)
    for column, label in enumerate(("clean", *(f"severity {s}" for s in SEVERITIES))):
        middle = _left(column) + _TILE / 2
        draw.text(
            (middle, _MARGIN + _HEAD - 10), label, font=ImageFont.load_default(15), fill=_INK, anchor="ms"
        )


def _row(canvas: Image.Image, top: int, row: ExhibitRow, exhibit: Exhibit) -> None:
    draw = ImageDraw.Draw(canvas)
    middle = top + _TILE / 2
    name = row.name.replace("_", " ")
    draw.text((_MARGIN, middle - 4), name, font=ImageFont.load_default(18), fill=_INK, anchor="ls")
    note = row.group if len(row.pictures) > 1 else f"{row.group}, one strength"
    draw.text((_MARGIN, middle + 18), note, font=ImageFont.load_default(13), fill=_FAINT, anchor="ls")
    canvas.paste(_tile(exhibit.clean, exhibit), (_left(0), top))
    for severity, picture in row.pictures.items():
        left = _left(severity)
        canvas.paste(_tile(picture, exhibit), (left, top))
        if severity == row.marked:
            draw.rectangle((left - 2, top - 2, left + _TILE + 1, top + _TILE + 1), outline=_ACCENT, width=2)


def _left(column: int) -> int:
    return _MARGIN + _NAMES + column * (_TILE + _GAP)


def _tile(picture: Image.Image, exhibit: Exhibit) -> Image.Image:
    how = Image.Resampling.NEAREST if exhibit.pixelated else Image.Resampling.LANCZOS
    return picture.convert("RGB").resize((_TILE, _TILE), how)
