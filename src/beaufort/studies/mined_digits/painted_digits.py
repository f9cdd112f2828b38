"""Digits in color: on plain grounds, which classifiers learn, and with nuisances, which they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort.mining import BUILT_IN, SURFACES, ConditionPair

SIZE = 32
PAIRS = tuple(
    ConditionPair(str(digit), kind, nuisance)
    for kind, names in BUILT_IN.items()
    for nuisance in names
    for digit in range(10)
)
"""Every digit with every built-in nuisance."""


def placed(digits: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float32]:
    """Digits `(n, 28, 28)` as masks `(n, 32, 32)` from 0 to 1, each moved by up to two pixels."""
    masks = np.zeros((len(digits), SIZE, SIZE), np.float32)
    for mask, digit, (y, x) in zip(masks, digits, rng.integers(0, 5, (len(digits), 2)), strict=True):
        mask[y : y + 28, x : x + 28] = digit / np.float32(255)
    return masks


def paint(
    digits: NDArray[np.uint8], labels: NDArray[np.int64], *, seed: int = 0
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Each digit with a nuisance drawn at random: images `(n, 32, 32, 3)`, and the place of each in `PAIRS`.

    On a background the digit has a color that stands out from it. A texture or material covers the digit, on
    gray: parts of it are lighter than the ground, and parts darker.
    """
    rng = np.random.default_rng([seed, len(digits)])
    nuisances = [(kind, nuisance) for kind, names in BUILT_IN.items() for nuisance in names]
    chosen = rng.integers(len(nuisances), size=len(digits))
    images = np.empty((len(digits), SIZE, SIZE, 3), np.uint8)
    for place, mask in enumerate(placed(digits, rng)):
        kind, nuisance = nuisances[chosen[place]]
        surface = SURFACES[nuisance](SIZE, rng)
        front: NDArray[Any]
        back: NDArray[Any]
        if kind == "background":
            bright = float(surface.mean()) < 0.5
            front, back = rng.uniform(0, 0.25, 3) + (0.75 if bright else 0.0), surface
        else:
            front, back = surface, np.full(3, 0.5)  # gray, as composite has it
        made = mask[..., None] * front + (1 - mask[..., None]) * back
        images[place] = (made.clip(0, 1) * 255).round()
    return images, chosen.astype(np.int64) * 10 + labels
