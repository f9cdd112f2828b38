"""Canny's edges, in torch."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from beaufort._core.device import constant
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.borders import border_index


def outline(images: Tensor, sigma: float, low: float, high: float) -> Tensor:
    """Canny's edges in white on black, with scikit-image's smoothing, slopes and ties.

    In double precision and without fused products: a symmetric digit has ties, and rounding decides them.
    """
    count, height, width, channels = images.shape
    # A quotient by a constant may become a product with its inverse, so the 256 of them are looked up.
    planes = images.movedim(3, 1).flatten(0, 1).contiguous().long()
    values = constant(np.arange(256) / 255.0, images.device)[planes]
    smooth = framed(_blur(values, _taps(sigma)) / _weights(height, width, sigma, images.device), "nearest")
    fall, rise = smooth[:, 2:] - smooth[:, :-2], smooth[:, :, 2:] - smooth[:, :, :-2]
    down = fall[:, :, 1:-1] * 2.0 + (fall[:, :, :-2] + fall[:, :, 2:])
    across = rise[:, 1:-1] * 2.0 + (rise[:, :-2] + rise[:, 2:])
    steep = _root(down * down + across * across)
    labels = _ridges(down, across, steep, low, high)
    edges = (connect(labels) == 2).byte() * 255
    return edges.view(count, channels, height, width).movedim(1, 3).contiguous()


@lru_cache(maxsize=64)
def _weights(height: int, width: int, sigma: float, device: torch.device) -> Tensor:
    """Return the part of the Gaussian inside the image, `(1, h, w)`; never 0."""
    inside = _blur(torch.ones((1, height, width), dtype=torch.float64), _taps(sigma))
    return (inside + float(np.finfo(np.float64).eps)).to(device)


def _taps(sigma: float) -> list[float]:
    radius = int(4.0 * sigma + 0.5)
    taps = np.exp(-0.5 / (sigma * sigma) * np.arange(radius + 1) ** 2)
    taps /= np.concatenate([taps[:0:-1], taps]).sum()
    return [float(tap) for tap in taps]


def _blur(values: Tensor, taps: list[float]) -> Tensor:
    """Gaussian smoothing of fields `(n, h, w)`, black outside, the far taps first."""
    radius = len(taps) - 1
    for axis in (1, 2):
        size = values.shape[axis]
        wide = pad(values, (0, 0, radius, radius) if axis == 1 else (radius, radius))
        values = values * taps[0]
        for k in range(radius, 0, -1):
            pair = wide.narrow(axis, radius - k, size) + wide.narrow(axis, radius + k, size)
            values = values + pair * taps[k]
    return values


def _root(values: Tensor) -> Tensor:
    """The square root, rounded correctly; on the CPU torch's own may be off by a bit."""
    return torch.from_numpy(np.sqrt(values.numpy())) if values.device.type == "cpu" else values.sqrt()


def _ridges(down: Tensor, across: Tensor, steep: Tensor, low: float, high: float) -> Tensor:
    """Labels for `connect`: 1 where the slope is not less than the two beside it, 2 if above `high`.

    Those two lie along the slope, between neighbors; the outermost pixels have none.
    """
    height, width = steep.shape[1:]
    around = pad(steep, (1, 1, 1, 1))

    def near(rows: int, columns: int) -> Tensor:
        return around[:, 1 + rows : 1 + rows + height, 1 + columns : 1 + columns + width]

    upright = down.abs() >= across.abs()
    falling = (down >= 0) == (across >= 0)
    least, most = torch.minimum(down.abs(), across.abs()), torch.maximum(down.abs(), across.abs())
    t = torch.where(most > 0, least / most, 0.0)
    ridge = (steep >= low) & (steep > 0)
    for way in (1, -1):
        straight = torch.where(upright, near(way, 0), near(0, way))
        aslant = torch.where(upright, near(way, -way), near(-way, way))
        aslant = torch.where(falling, near(way, way), aslant)
        ridge &= straight * (1 - t) + aslant * t <= steep
    ridge[:, 0] = ridge[:, -1] = ridge[:, :, 0] = ridge[:, :, -1] = False
    return ridge.byte() + (ridge & (steep >= high)).byte()


def connect(labels: Tensor) -> Tensor:
    """Return labels `(n, h, w)` with every 1 replaced by 2 that a chain of ones connects to a 2.

    0 is no edge, 1 an edge if it is connected to one, 2 an edge; neighbors on diagonals count.
    """
    if kernels := triton_kernels("canny_edges", labels):
        return kernels.connect(labels)
    while True:
        near = torch.nn.functional.pad(labels == 2, (1, 1, 1, 1))
        near = near[:, :-2] | near[:, 1:-1] | near[:, 2:]
        near = near[:, :, :-2] | near[:, :, 1:-1] | near[:, :, 2:]
        grown = torch.where(near & (labels == 1), 2, labels)
        if torch.equal(grown, labels):
            return labels
        labels = grown


def framed(images: Tensor, border: str) -> Tensor:
    """Images `(n, h, w)` with a frame of one pixel around them."""
    rows, columns = (constant(border_index(size, 1, 1, border), images.device) for size in images.shape[1:])
    return images[:, rows][:, :, columns]
