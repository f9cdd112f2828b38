"""Error galleries, as in the paper's Figures 5 to 8: digits that a model does not recognize."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from beaufort.studies.mnist_c.mnist_models import CLEAN, MnistSettings
from beaufort.studies.mnist_c.mnist_runs import test_digits
from beaufort.studies.predictions import StudyPredictions

_COLUMNS, _SCALE, _GAP, _NAMES, _HEAD = 12, 2, 4, 110, 30
_TILE = 28 * _SCALE
_LINE = _TILE + 16


def error_gallery(title: str, answers: StudyPredictions, settings: MnistSettings) -> bytes:
    """A PNG: a row a condition, the first digits that are wrong, under each its label and the answer."""
    digits = test_digits(settings)
    names = [name for name in (CLEAN, *settings.benchmark) if name in answers.conditions]
    width = _NAMES + _COLUMNS * (_TILE + _GAP) + _GAP
    sheet = Image.new("RGB", (width, _HEAD + len(names) * (_LINE + _GAP)), "white")
    draw = ImageDraw.Draw(sheet)
    draw.text((_GAP, 6), f"{title}: the first digits it gets wrong (label, answer)", "black", _font(13))
    for number, name in enumerate(names):
        top = _HEAD + number * (_LINE + _GAP)
        share = 1 - answers.row(name).mean()
        draw.text((_GAP, top + 16), name.replace("_", " "), "black", _font(12))
        draw.text((_GAP, top + 32), f"{share:.1%} wrong", "dimgray", _font(11))
        for column, place in enumerate(np.flatnonzero(~answers.row(name))[:_COLUMNS]):
            left = _NAMES + column * (_TILE + _GAP)
            picture = Image.fromarray(digits.images[name][int(place), 0].cpu().numpy())
            sheet.paste(picture.resize((_TILE, _TILE), Image.Resampling.NEAREST), (left, top))
            said = answers.predicted[answers.conditions.index(name), place]
            draw.text((left, top + _TILE), f"{answers.labels[place]}, {said}", "black", _font(11))
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
