"""Spatter: rain or mud on the lens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Field, Images, Ops, Pixels, Random, corruption

WATER = (175, 238, 238)
"""Pale turquoise, RGB."""
MUD = (63, 42, 20)


class Params(NamedTuple):
    """Size and number of the drops."""

    mean: float
    spread: Pixels
    """Mean and standard deviation of the noise that is thresholded to drops."""
    sigma: Pixels
    """Standard deviation of the Gaussian that sets the size of drops."""
    threshold: float
    """Minimum noise value of a drop."""
    strength: float = 0.0
    """For water: brightness of the brightest drop."""
    rim: Pixels = 0.0
    """For mud: standard deviation of the Gaussian that rounds the spots; 0 for water."""

    def leads_to(self, higher: Params) -> bool:
        """Return whether constants can be interpolated: not between water and mud."""
        return bool(self.rim) == bool(higher.rim)


def draw(random: Random, images: Images, p: Params) -> Field:
    """Draw one normal number per pixel."""
    return random.normal(images.shape[1:3], np.float64)


def _color(rgb: tuple[int, int, int], channels: int) -> tuple[float, ...]:
    """Return the color; its gray value for grayscale images."""
    return rgb if channels == 3 else (0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2],)


def _water(*rows: tuple[float, float, float, float, float]) -> list[Params]:
    return [Params(*row) for row in rows]


def _muddy(*rows: tuple[float, float, float, float, float]) -> list[Params]:
    return [Params(*row[:4], rim=row[4]) for row in rows]


@corruption(
    "weather",
    draw=draw,
    levels={
        "imagenet": [
            *_water((0.65, 0.3, 4, 0.69, 0.6), (0.65, 0.3, 3, 0.68, 0.6), (0.65, 0.3, 2, 0.68, 0.5)),
            *_muddy((0.65, 0.3, 1, 0.65, 1.5), (0.67, 0.4, 1, 0.65, 1.5)),
        ],
        "inception": [
            *_water((0.65, 0.3, 4, 0.69, 0.9), (0.65, 0.3, 3.5, 0.68, 0.9), (0.65, 0.3, 3, 0.68, 0.8)),
            *_muddy((0.65, 0.3, 1.2, 0.65, 1.8), (0.67, 0.4, 1.2, 0.65, 1.8)),
        ],
        "tiny": [
            *_water((0.62, 0.1, 0.7, 0.7, 0.6), (0.65, 0.1, 0.8, 0.7, 0.6), (0.65, 0.3, 1, 0.69, 0.6)),
            *_muddy((0.65, 0.1, 0.7, 0.68, 0.6), (0.65, 0.1, 0.5, 0.67, 0.6)),
        ],
        "cifar": [
            *_water((0.62, 0.1, 0.7, 0.7, 0.5), (0.65, 0.1, 0.8, 0.7, 0.5), (0.65, 0.3, 1, 0.69, 0.5)),
            *_muddy((0.65, 0.1, 0.7, 0.69, 0.6), (0.65, 0.1, 0.5, 0.68, 0.6)),
        ],
    },
)
def spatter(images: Images, p: Params, normals: Field, ops: Ops) -> Images:
    """Add drops of water at severities 1 to 3, cover with mud at 4 and 5."""
    channels = images.shape[-1]
    if p.rim:
        mud = ops.mud_spots(normals, p.mean, p.spread, p.sigma, p.threshold, p.rim)
        return ops.paint(images, mud, _color(MUD, channels), cover=True)
    drops = ops.water_drops(normals, p.mean, p.spread, p.sigma, p.threshold, p.strength)
    return ops.paint(images, drops, _color(WATER, channels), cover=False)


@spatter.at(
    "mnist",
    draw=draw,
    levels=_muddy(
        (0.65, 0.3, 4, 0.69, 0.6),
        (0.65, 0.3, 3, 0.68, 0.6),
        (0.65, 0.3, 2, 0.68, 0.5),
        (0.65, 0.3, 1, 0.65, 1.5),
        (0.67, 0.4, 1, 0.65, 1.5),
    ),
    published=4,
)
def digits(images: Images, p: Params, normals: Field, ops: Ops) -> Images:
    """Cover with dark gray mud at every severity, rounded."""
    mud = ops.mud_spots(normals, p.mean, p.spread, p.sigma, p.threshold, p.rim)
    return ops.paint(images, mud, (float(MUD[0]),) * images.shape[-1], cover=True, nearest=True)
