"""Geometric sequences: the image moves, turns, tilts, grows and slants; the outside is black."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from beaufort._core.arrays import Images
from beaufort.corruptions.rng import Random
from beaufort.corruptions.sequences._perturbation import View, perturbation


def _about(view: View) -> tuple[float, float]:
    """Return the published center of rotation: half a pixel right of and below the middle."""
    height, width = view.whole.shape[1:3]
    return width / 2 + 0.5, height / 2 + 0.5


def _steps(count: int, first: float, step: float) -> list[Sequence[float]]:
    return [[first + step * i for i in range(count)]]


_DEGREES = _steps(31, -15, 1)
_BY_ANGLE = {"imagenet": _DEGREES, "tiny": _DEGREES, "cifar": _DEGREES}


@perturbation(
    {"imagenet": _steps(41, -20, 1), "tiny": _steps(31, -15, 1), "cifar": _steps(16, -7, 1)},
    lengths={"imagenet": 41, "cifar": 16},
)
def translate(view: View, pixels: Sequence[float], random: Random) -> Iterator[Images]:
    """Move the image from left to right by one pixel per frame."""
    whole: Any = view.whole
    width, margin = whole.shape[2], round((whole.shape[2] - view.side) / 2)
    for move in map(int, pixels):
        start, stop = margin - move, margin - move + view.side  # of the window that is shown
        frame: Any = view.middle * 0
        shown = slice(max(start, 0), min(stop, width))
        frame[:, :, shown.start - start : shown.stop - start] = view.crop(whole, shown)
        yield frame


@perturbation(_BY_ANGLE)
def rotate(view: View, degrees: Sequence[float], random: Random) -> Iterator[Images]:
    """Rotate the image clockwise, from -15 to 15 degrees."""
    for angle in np.deg2rad(degrees):
        turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        yield view.affine(turn, _about(view))


@perturbation(
    {"imagenet": _steps(31, 0.4, 0.025), "tiny": _steps(31, 0.4, 0.025), "cifar": _steps(31, 0.7, 0.02)}
)
def scale(view: View, factors: Sequence[float], random: Random) -> Iterator[Images]:
    """Enlarge the image from frame to frame."""
    for factor in factors:
        yield view.affine(np.eye(2) / factor, _about(view))


@perturbation(_BY_ANGLE)
def shear(view: View, degrees: Sequence[float], random: Random) -> Iterator[Images]:
    """Shear the image, which also reduces its height a little."""
    for angle in np.deg2rad(degrees):
        yield view.affine(np.array([[1, math.tan(angle)], [0, 1 / math.cos(angle)]]), _about(view))


@perturbation({**_BY_ANGLE, "cifar": _steps(31, -11.25, 0.75)})
def tilt(view: View, degrees: Sequence[float], random: Random) -> Iterator[Images]:
    """Tilt the image about both axes; it lies one pixel behind the plane, so no frame is clean."""
    height, width = view.whole.shape[1:3]
    far = math.hypot(width, height)
    to_middle = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    to_image = np.array([[far, 0, width / 2], [0, far, height / 2], [0, 0, 1]])
    away = np.diag([0, 0, far])
    for angle in np.deg2rad(degrees):
        cosine, sine = math.cos(angle), math.sin(angle)
        upright = np.array([[cosine, 0, -sine], [0, 1, 0], [sine, 0, cosine]])
        level = np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
        yield view.perspective(np.linalg.inv(to_image @ (level @ upright @ to_middle + away)))


_ZOOM = _steps(31, 1, 0.004)


@perturbation({"imagenet": _ZOOM, "tiny": _ZOOM, "cifar": _ZOOM})
def zoom_blur(view: View, factors: Sequence[float], random: Random) -> Iterator[Images]:
    """Average the image with more and more of its enlargements; the first frame is clean."""
    total = view.ops.real(view.middle * 0, np.float32)
    for number, factor in enumerate(factors, 1):
        yield view.ops.add_frame(total, view.whole, np.eye(2) / factor, _about(view), number)
