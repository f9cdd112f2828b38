"""Generated style images: textures and colors that a network learns to paint with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.validation import validate_integer

STYLES = 16
"""Number of style images."""

Floats = NDArray[np.float64]


def style_image(number: int, side: int = 256) -> Bytes:
    """Return a style image, uint8 `(side, side, 3)`; deterministic.

    >>> style_image(3, 64).shape
    (64, 64, 3)
    """
    validate_integer("number", number, 0, STYLES - 1)
    rng = np.random.default_rng([20_240, number])
    heights = _DRAWINGS[number % len(_DRAWINGS)](rng, side)
    return _colored(heights, _palette(rng))


def _colored(heights: Floats, palette: Floats) -> Bytes:
    """Map heights from 0 to 1 to colors of a palette."""
    place = np.clip(heights, 0, 1) * (len(palette) - 1)
    low = np.minimum(place.astype(int), len(palette) - 2)
    portion = (place - low)[..., None]
    mixed = palette[low] * (1 - portion) + palette[low + 1] * portion
    colors: Bytes = np.rint(np.clip(mixed, 0, 255)).astype(np.uint8)
    return colors


def _palette(rng: np.random.Generator) -> Floats:
    """Return five strong colors, from dark to bright."""
    colors = rng.uniform(0, 255, (5, 3))
    return np.asarray(colors[np.argsort(colors @ [0.3, 0.59, 0.11])])


def _grid(side: int) -> tuple[Floats, Floats]:
    y, x = np.mgrid[:side, :side] / side
    return y, x


def _strokes(rng: np.random.Generator, side: int) -> Floats:
    """Short brush strokes that follow a smooth flow."""
    y, x = _grid(side)
    angle = 2 * np.pi * (np.sin(rng.uniform(2, 6) * x + rng.uniform(0, 6)) + np.cos(rng.uniform(2, 6) * y))
    canvas = np.full((side, side), 0.5)
    for top, left, tone in zip(*rng.uniform(0, 1, (3, 1500)), strict=True):
        turn = angle[int(top * (side - 1)), int(left * (side - 1))]
        along = (x - left) * np.cos(turn) + (y - top) * np.sin(turn)
        across = (y - top) * np.cos(turn) - (x - left) * np.sin(turn)
        canvas[(np.abs(along) < 0.05) & (np.abs(across) < 0.008)] = tone
    return canvas


def _cells(rng: np.random.Generator, side: int) -> Floats:
    """Stained glass: flat cells with dark seams."""
    y, x = _grid(side)
    seeds = rng.uniform(0, 1, (60, 2))
    far = np.sort(np.hypot(y[..., None] - seeds[:, 0], x[..., None] - seeds[:, 1]), axis=-1)
    owner = np.hypot(y[..., None] - seeds[:, 0], x[..., None] - seeds[:, 1]).argmin(axis=-1)
    tones = rng.uniform(0.25, 1, 60)
    return np.where(far[..., 1] - far[..., 0] < 0.012, 0.0, tones[owner])


def _waves(rng: np.random.Generator, side: int) -> Floats:
    """Bent bands, as of wood or water."""
    y, x = _grid(side)
    bend = sum(np.sin(rng.uniform(3, 14) * x + rng.uniform(3, 14) * y + rng.uniform(0, 6)) for _ in range(4))
    return np.asarray(0.5 + 0.5 * np.sin(2 * np.pi * (rng.uniform(8, 16) * y + 0.35 * bend)))


def _dots(rng: np.random.Generator, side: int) -> Floats:
    """Points of paint on a light ground."""
    y, x = _grid(side)
    canvas = np.full((side, side), 0.9)
    for top, left, tone, size in zip(*rng.uniform(0, 1, (4, 900)), strict=True):
        canvas[np.hypot(y - top, x - left) < 0.006 + 0.012 * size] = tone
    return canvas


_DRAWINGS: tuple[Callable[[np.random.Generator, int], Floats], ...] = (_strokes, _cells, _waves, _dots)
