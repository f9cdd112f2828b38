"""Sequences in which pixels do not move: noise, blur, weather, light."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from beaufort._core.arrays import Images
from beaufort.corruptions.rng import Random
from beaufort.corruptions.sequences._perturbation import FRAMES, View, perturbation


@perturbation(
    {"imagenet": (0.03, 0.05, 0.08), "tiny": (0.025, 0.05, 0.075), "cifar": (0.02, 0.04, 0.06)},
    random=True,
)
def gaussian_noise(view: View, sigma: float, random: Random) -> Iterator[Images]:
    """Add new normal noise to the clean image in each frame but the first."""
    shape = view.middle.shape[1:]
    return _anew(view, lambda clean: view.ops.add_noise(clean, random.tensor_normal(shape), sigma))


@perturbation(
    {"imagenet": (300, 120, 60), "tiny": (500, 250, 125), "cifar": (700, 400, 200)},
    random=True,
)
def shot_noise(view: View, rate: int, random: Random) -> Iterator[Images]:
    """Replace values by new Poisson counts in each frame but the first."""
    table = (np.arange(rate + 1) / rate * 255).astype(np.uint8)  # larger counts are as bright as the last
    return _anew(view, lambda clean: random.poisson_levels(clean, rate, table))


@perturbation(
    {"imagenet": (0.05, 0.1, 0.15), "tiny": (0.05, 0.1, 0.15), "cifar": (0.05, 0.07, 0.1)},
    random=True,
)
def speckle_noise(view: View, sigma: float, random: Random) -> Iterator[Images]:
    """Add new normal noise in proportion to each value in each frame but the first."""
    shape = view.middle.shape[1:]
    return _anew(view, lambda clean: view.ops.multiply_noise(clean, random.normal(shape), sigma))


def _anew(view: View, noisy: Callable[[Images], Images]) -> Iterator[Images]:
    """Yield the clean image, then frames with noise of their own."""
    clean = view.middle
    yield clean
    for _ in range(FRAMES - 1):
        yield noisy(clean)


class Motion(NamedTuple):
    """A rotating motion blur."""

    radius: float
    sigma: float
    degrees: Sequence[float]


@perturbation(
    {
        "imagenet": [Motion(10, 3, [4 * (i - 30) for i in range(31)])],
        "tiny": [Motion(14, 3, [5 * (i - 30) for i in range(31)])],
        "cifar": [Motion(6, 1.8, [9 * (i - 20) for i in range(21)])],
    },
    lengths={"cifar": 21},
)
def motion_blur(view: View, p: Motion, random: Random) -> Iterator[Images]:
    """Blur the image in one direction, which rotates."""
    clean = view.middle
    for angle in p.degrees:
        yield view.ops.motion(clean, p.radius, p.sigma, np.full(len(clean), float(angle)))


class Snow(NamedTuple):
    """The flakes."""

    spread: float
    zoom: float
    radius: float
    sigma: float


@perturbation(
    {"imagenet": [Snow(0.3, 3, 14, 4)], "tiny": [Snow(0.28, 2, 10, 2.5)], "cifar": [Snow(0.3, 2, 10, 2)]},
    random=True,
)
def snow(view: View, p: Snow, random: Random) -> Iterator[Images]:
    """Let the same flakes fall from a different direction in each frame."""
    clean = view.middle
    flakes = view.ops.flakes(random.normal(clean.shape[1:3], np.float64), 0.05, p.spread, p.zoom, 0.5)
    for i in range(FRAMES):
        layer = view.ops.motion(flakes, p.radius, p.sigma, np.full(len(clean), 4.0 * i - 150))
        yield view.ops.snowfall(clean, layer[..., 0], 0.85)


@perturbation({"imagenet": (0.02,), "tiny": (0.02,), "cifar": (0.015,)})
def brightness(view: View, step: float, random: Random) -> Iterator[Images]:
    """Increase the brightness from frame to frame."""
    clean = view.middle
    for i in range(FRAMES):
        yield view.ops.brighten(clean, step * (i - 15))


@perturbation({"imagenet": [(0.25, 0.035)], "tiny": [(0.35, 0.014)], "cifar": [(0.3, 0.015)]})
def gaussian_blur(view: View, p: tuple[float, float], random: Random) -> Iterator[Images]:
    """Blur the image more and more."""
    clean = view.middle
    for i in range(FRAMES):
        yield view.ops.gaussian(clean, p[0] + p[1] * i)


class Drops(NamedTuple):
    """Drops of water that run down."""

    mean: float
    spread: float
    """Mean and standard deviation of the noise that drops are cut from."""
    sigma: float
    """Standard deviation of the Gaussian that sets the size of drops."""
    threshold: float
    run: Mapping[int, float]
    """Weights of the rows above, by their distance, in the next frame."""


_QUICK, _SLOW = {-1: 0.05, 0: 0.1, 1: 0.15, 2: 0.7}, {0: 0.2, 1: 0.8}
_WATER = (175.0, 238.0, 238.0)


@perturbation(
    {
        "imagenet": [Drops(0.65, 0.27, 3.7, 0.69, _QUICK)],
        "tiny": [Drops(0.6, 0.25, 1.75, 0.7, _SLOW)],
        "cifar": [Drops(0.6, 0.265, 1.75, 0.7, _SLOW)],
    },
    random=True,
)
def spatter(view: View, p: Drops, random: Random) -> Iterator[Images]:
    """Let drops of water run down.

    Published frames without drops are black because of a division of zero by zero; here they are clean.
    """
    clean = view.middle
    # In double precision on both backends: a value cut off differently can change the light of every drop.
    normals = view.ops.real(random.normal(clean.shape[1:3], np.float64))
    layer = view.ops.smooth(normals * p.spread + p.mean, p.sigma)
    layer = layer * (layer >= p.threshold)
    color = (
        _WATER
        if clean.shape[-1] == 3
        else (sum(w * c for w, c in zip((0.299, 0.587, 0.114), _WATER, strict=True)),)
    )
    for _ in range(FRAMES):
        drops = view.ops.water_drops(layer, 0.0, 1.0, 0.0, 0.0, 0.6)
        yield view.ops.paint(clean, drops, color, cover=False)
        layer = view.ops.run_down(layer, p.run)
