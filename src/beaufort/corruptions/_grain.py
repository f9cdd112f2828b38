"""Noise with grains larger than a pixel, for scale `relative`."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from beaufort.corruptions import Field, Images, Random
from beaufort.corruptions._kernels import ops_of


class Grained(Protocol):
    """Constants of a noise that has a grain."""

    @property
    def grain(self) -> float:
        """Side of the squares that share one value, in pixels."""


def draw_normals(random: Random, images: Images, p: Grained) -> Field:
    """Draw one normal number per grain and channel."""
    return random.normal(coarse_shape(images, p.grain))


def coarse_shape(images: Images, grain: float) -> tuple[int, int, int]:
    """Return the rows and columns of grains that cover an image, and its channels."""
    height, width, channels = images.shape[1:]
    return math.ceil(height / grain), math.ceil(width / grain), channels


def enlarge(field: Field, images: Images, grain: float) -> Field:
    """Repeat the value of each grain over its pixels; return the field itself for grains of one pixel."""
    height, width = images.shape[1:3]
    if field.shape[1:3] == (height, width):
        return field
    rows = (np.arange(height) / grain).astype(np.intp)
    columns = (np.arange(width) / grain).astype(np.intp)
    return ops_of(images).pick(field, rows, columns)


def sample(images: Images, grain: float) -> Images:
    """Return the pixel in the middle of each grain."""
    rows, columns, _ = coarse_shape(images, grain)
    if (rows, columns) == images.shape[1:3]:
        return images
    y = np.minimum(((np.arange(rows) + 0.5) * grain).astype(np.intp), images.shape[1] - 1)
    x = np.minimum(((np.arange(columns) + 0.5) * grain).astype(np.intp), images.shape[2] - 1)
    return ops_of(images).pick(images, y, x)
