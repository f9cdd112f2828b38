"""Caustic refraction: the image on the floor of a pool, under waves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Pixels, Random, corruption
from beaufort.corruptions._geometry import sample

_SIDE = 224
"""Short side at which slopes are in levels per pixel."""

_TURN = 6.28318530718
"""2π to twelve digits, as published."""


class Params(NamedTuple):
    """Height of the waves."""

    magnitude: float
    """Displacement in units of 5 percent of the short side, for a sine of the refraction of 1."""
    sigma: Pixels = 1.0
    """Standard deviation of the Gaussian that smooths the waves."""


class Water(NamedTuple):
    """Waves of each image."""

    time: Array
    size: Array
    """Size of the pattern as a fraction of the short side."""


def draw(random: Random, images: Images, p: Params) -> Water:
    """Draw the time and the size of the pattern."""
    host = random.host
    return Water(host.uniform((), 0.5, 2, np.float64), host.uniform((), 0.75, 1.25, np.float64))


def _caustics(images: Images, drawn: Water, ops: Ops) -> Any:
    """Return the pattern of light on the floor, from 0 to 1, `(n, h, w)`."""
    rows, columns = ops.grid(images)
    time, size = (ops.lift(one[:, None, None], images) for one in drawn)
    size = size * min(images.shape[1:3])
    y, x = ((at / size) % 1 * _TURN - 250 for at in (rows, columns))
    v, u = y + 0 * x, x + 0 * y
    light: Any = 1.0
    for n in range(5):
        t = time * (1 - 3.5 / (n + 1))
        v, u = y + ops.cos(t - v) + ops.sin(t + u), x + ops.sin(t - u) + ops.cos(t + v)
        light += 1 / ops.sqrt((y * 0.005 / ops.sin(v + t)) ** 2 + (x * 0.005 / ops.cos(u + t)) ** 2)
    return ops.clip(abs(1.17 - ops.power(light / 5, 1.4)) ** 8, 0, 1)


def _smooth(field: Any, sigma: float, images: Images, ops: Ops) -> Any:
    """Smooth by a Gaussian in double precision; the field is mirrored at the borders."""
    radius = int(4 * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    for axis in (1, 2):
        size = field.shape[axis]
        total: Any = 0.0
        for shift, weight in zip(range(-radius, radius + 1), weights / weights.sum(), strict=True):
            at = (np.arange(size) + shift) % (2 * size)
            at = ops.lift(np.minimum(at, 2 * size - 1 - at), images)
            total = total + float(weight) * (field[:, at] if axis == 1 else field[:, :, at])
        field = total
    return field


def _slopes(field: Any) -> tuple[Any, Any]:
    """Return vertical and horizontal central differences; the field is zero outside."""
    down, across = 0 * field, 0 * field
    down[:, :-1] += field[:, 1:]
    down[:, 1:] -= field[:, :-1]
    across[:, :, :-1] += field[:, :, 1:]
    across[:, :, 1:] -= field[:, :, :-1]
    return down, across


@corruption(
    "unseen", moves=True, draw=draw, levels={"imagenet": [Params(m) for m in (2.35, 3.2, 4.9, 6.6, 9.15)]}
)
def caustic_refraction(images: Images, p: Params, drawn: Water, ops: Ops) -> Images:
    """Move pixels by the refraction of waves, and brighten the slopes of the waves.

    There are no waves outside the image, so its border acts as a steep slope.
    """
    side = min(images.shape[1:3])
    field = _smooth(_caustics(images, drawn, ops), p.sigma, images, ops) * (side / _SIDE)
    down, across = _slopes(field)
    steep = ops.sqrt(down**2 + across**2)
    cosine = 1 / ops.sqrt(1 + steep**2)
    angle = ops.arccos(cosine)
    moved = ops.sin(angle - ops.arcsin(ops.sin(angle) / 4)) * (0.05 * p.magnitude * side)
    moved = ops.where(cosine >= 0.999, 0 * moved, moved / ops.where(steep > 0, steep, 1 + steep))
    rows, columns = ops.grid(images)
    at = (rows + ops.rint(moved * down * 1000) / 1000, columns + ops.rint(moved * across * 1000) / 1000)
    values = ops.real(ops.real(images, np.float32) / np.float32(255).item())
    lit = sample(values, *at, ops) + (0.2 * p.magnitude * (down - across))[..., None]
    return ops.to_bytes(ops.clip(lit, 0, 1) * 255)
