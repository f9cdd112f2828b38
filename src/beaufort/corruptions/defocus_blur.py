"""Defocus blur: a lens that is out of focus turns points into disks."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes
from beaufort.corruptions._corruption import Pixels, corruption
from beaufort.ops import Ops


class Params(NamedTuple):
    """The disk."""

    radius: Pixels
    softness: Pixels
    """Standard deviation of the small Gaussian that smooths the disk's rim."""


@lru_cache(maxsize=64)
def disk(radius: float, softness: float) -> NDArray[np.float32]:
    """A flat disk with a soft rim on a square grid, without empty rows and columns around it.

    The rim is smoothed by 3 taps (5 beyond radius 8) with the grid mirrored at its edge. Where the
    disk touches that edge, at radius 8 and above, this adds mass, and the picture brightens by one
    percent; published, so kept.

    >>> round(float(disk(8, 0.5).sum()), 4)
    1.013
    """
    reach = 8 if radius <= 8 else math.ceil(radius)
    at = np.arange(-reach, reach + 1)
    flat = (at[:, None] ** 2 + at**2 <= radius**2).astype(np.float32)
    flat /= flat.sum()
    half = 1 if radius <= 8 else 2
    taps = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * softness**2))
    taps /= taps.sum()
    for axis in (0, 1):
        padded = np.pad(flat, [(half, half) if axis == a else (0, 0) for a in (0, 1)], mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=axis)
        flat = (windows @ taps).astype(np.float32)
    full = np.flatnonzero(flat.max(axis=0) > 1e-12)
    return np.ascontiguousarray(flat[full[0] : full[-1] + 1, full[0] : full[-1] + 1])


_PHOTOS = [Params(3, 0.1), Params(4, 0.5), Params(6, 0.5), Params(8, 0.5), Params(10, 0.5)]


@corruption(
    "blur",
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(4, 0.1), Params(5, 0.5), Params(7, 0.5), Params(10, 0.5), Params(12, 0.5)],
        "tiny": [Params(0.5, 0.6), Params(1, 0.1), Params(1.5, 0.1), Params(2.5, 0.01), Params(3, 0.1)],
        "cifar": [Params(0.3, 0.4), Params(0.4, 0.5), Params(0.5, 0.6), Params(1, 0.2), Params(1.5, 0.1)],
    },
)
def defocus_blur(images: Bytes, p: Params, ops: Ops) -> Bytes:
    """Spread each pixel over a disk."""
    return ops.defocus(images, disk(p.radius, p.softness))


@defocus_blur.at("mnist", levels=_PHOTOS, published=1)
def digits(images: Bytes, p: Params, ops: Ops) -> Bytes:
    """As for photos, rounded."""
    return ops.defocus(images, disk(p.radius, p.softness), nearest=True)
