"""Painted surfaces for the built-in nuisances: seeded, of any size, no files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.float32]
"""Height × width × 3, from 0 to 1."""

Rng = np.random.Generator


def _clouds(size: int, rng: Rng, cell: int) -> Pixels:
    """Smooth noise from 0 to 1, one channel; `cell` is the width of a bump in pixels."""
    few = max(2, size // cell + 2)
    field = rng.random((few, few)).astype(np.float32)
    smooth = Image.fromarray(field).resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(smooth, np.float32).clip(0, 1)


def _between(field: Pixels, first: tuple[float, float, float], second: tuple[float, float, float]) -> Pixels:
    weight = field[..., None]
    mixed = (1 - weight) * np.array(first, np.float32) + weight * np.array(second, np.float32)
    return np.asarray(mixed, np.float32)


def _two_colors(field: Pixels, rng: Rng) -> Pixels:
    first = rng.random(3)
    second = 1 - first + rng.uniform(-0.1, 0.1, 3)
    return _between(field, tuple(first), tuple(second)).clip(0, 1)


def _turned(size: int, rng: Rng) -> tuple[Pixels, Pixels]:
    """Coordinates from 0 to 1, turned by a random angle."""
    y, x = np.mgrid[:size, :size].astype(np.float32) / size
    angle = rng.uniform(0, np.pi)
    c, s = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    return c * x - s * y, s * x + c * y


def _sky(size: int, rng: Rng) -> Pixels:
    return _between(_clouds(size, rng, max(2, size // 4)) ** 2, (0.35, 0.6, 0.9), (1, 1, 1))


def _sand(size: int, rng: Rng) -> Pixels:
    return _between(_clouds(size, rng, 2), (0.76, 0.64, 0.42), (0.93, 0.84, 0.64))


def _snow(size: int, rng: Rng) -> Pixels:
    return _between(_clouds(size, rng, max(2, size // 8)), (0.82, 0.87, 0.93), (1, 1, 1))


def _night(size: int, rng: Rng) -> Pixels:
    stars = (rng.random((size, size)) > 0.995).astype(np.float32)
    return np.maximum(
        _between(_clouds(size, rng, size), (0.01, 0.01, 0.05), (0.08, 0.08, 0.2)), stars[..., None]
    )


def _striped(size: int, rng: Rng) -> Pixels:
    along, _ = _turned(size, rng)
    return _two_colors((np.floor(along * rng.integers(6, 14)) % 2).astype(np.float32), rng)


def _checkered(size: int, rng: Rng) -> Pixels:
    along, across = _turned(size, rng)
    count = rng.integers(5, 11)
    return _two_colors(((np.floor(along * count) + np.floor(across * count)) % 2).astype(np.float32), rng)


def _dotted(size: int, rng: Rng) -> Pixels:
    along, across = (axis * rng.integers(5, 10) % 1 - 0.5 for axis in _turned(size, rng))
    return _two_colors((along**2 + across**2 < 0.09).astype(np.float32), rng)


def _blotchy(size: int, rng: Rng) -> Pixels:
    return _two_colors((_clouds(size, rng, max(2, size // 6)) > 0.5).astype(np.float32), rng)


def _wood(size: int, rng: Rng) -> Pixels:
    along, across = _turned(size, rng)
    bend = _clouds(size, rng, max(2, size // 2))
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * (12 * along + 2 * bend + 0.3 * across))
    return _between(rings.astype(np.float32), (0.42, 0.25, 0.12), (0.72, 0.5, 0.28))


def _metal(size: int, rng: Rng) -> Pixels:
    lines = np.repeat(rng.random((size, 1)).astype(np.float32), size, axis=1)
    shine = _clouds(size, rng, max(2, size // 2))
    return _between((0.3 * lines + 0.7 * shine).astype(np.float32), (0.4, 0.42, 0.45), (0.95, 0.96, 0.98))


SURFACES: dict[str, Callable[[int, Rng], Pixels]] = {
    "sky": _sky,
    "sand": _sand,
    "snow": _snow,
    "night": _night,
    "striped": _striped,
    "checkered": _checkered,
    "dotted": _dotted,
    "blotchy": _blotchy,
    "wood": _wood,
    "metal": _metal,
}
