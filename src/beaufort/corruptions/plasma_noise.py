"""Plasma noise: colored waves that distort each other, as in a plasma lamp."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption


class Params(NamedTuple):
    """Strength of the waves."""

    magnitude: float
    """Amplitude in units of 6.4 levels; the image fades by the same amount."""


class Plasma(NamedTuple):
    """Random parameters of each image, `(n,)`."""

    time: Array
    bends: Array
    """Number of times that the waves bend each other, 4 to 6."""
    sharpness: Array
    """How much weaker finer waves are."""
    size: Array
    """Length of the waves as a fraction of the short side."""


def draw(random: Random, images: Images, p: Params) -> Plasma:
    """Draw the parameters of the waves."""
    host = random.host
    return Plasma(
        host.uniform((), 0, 6 * np.pi, np.float64),
        host.integers((), 4, 7),
        host.uniform((), 0.5, 1, np.float64),
        host.uniform((), 0.075, 0.2, np.float64),
    )


@corruption("unseen", draw=draw, levels={"imagenet": [Params(m) for m in (4.75, 7, 8.5, 9.25, 10)]})
def plasma_noise(images: Images, p: Params, drawn: Plasma, ops: Ops) -> Images:
    """Mix in sine waves of coordinates that are repeatedly distorted by sine waves."""
    time, bends, sharpness, size = (ops.lift(one[:, None, None], images) for one in drawn)
    rows, columns = ops.grid(images)
    size = size * min(images.shape[1:3])
    a, b = columns / size + 0 * rows, rows / size + 0 * columns
    frequency = slowness = 1.0
    damping = 1.0 + 0 * sharpness
    for bend in range(int(drawn.bends.max())):
        u = ops.cos(b * frequency + time / slowness) / damping
        v = ops.sin(a * frequency + time / slowness) / damping
        there = bend < bends
        a, b = a + there * (u - 0.3 * v), b + there * (v + 0.3 * u)
        frequency, slowness, damping = frequency * 1.93, slowness * 1.15, damping * (2.25 - sharpness)
    noise = (ops.sin(a - time), ops.sin((a + b + ops.sin(time)) / 2), ops.sin(b + time))
    weight = 6.4 * p.magnitude
    out = (1 - weight / 255) * ops.real(images)
    for color in range(images.shape[3]):
        out[..., color] += weight * noise[color]
    return ops.to_bytes(out)
