"""Measure how much the damage of each corruption changes from one image size to the next.

    python tools/size_steps.py [--scale auto] [--sides 16:80] [--severities 1,3,5] [--draws 64] [NAME …]

The damage is the mean squared difference to the clean image, averaged over three photos, each resized to
every side, and over random draws. A step is the ratio of the damages at two consecutive sides. The largest
steps of each corruption and severity are printed with their standard errors over draws.
"""

from __future__ import annotations

import argparse
import math
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort import get_corruption_names
from beaufort.corruptions import corruptions

__all__ = ["Damage", "damage", "photos", "steps"]

NEGLIGIBLE = 0.25
"""Smaller mean squared differences, half a level per value, are invisible and count as this."""

Damage = dict[int, tuple[float, float]]
"""By side, the mean squared difference and its standard error."""


@cache
def photos() -> tuple[Image.Image, ...]:
    """Return a portrait, a cup and a cat, square."""
    from skimage import data as stored

    data: Any = stored  # it has no types

    found = []
    for pixels in (data.astronaut(), data.coffee(), data.chelsea()):
        side = min(pixels.shape[:2])
        found.append(Image.fromarray(pixels[:side, :side]))
    return tuple(found)


@cache
def resized(side: int) -> NDArray[np.uint8]:
    """Return the photos at a side, `(3, side, side, 3)`."""
    return np.stack([np.asarray(photo.resize((side, side), Image.Resampling.LANCZOS)) for photo in photos()])


def damage(name: str, severity: int, side: int, *, scale: str, draws: int) -> tuple[float, float]:
    """Return the mean squared difference to the clean photos, and its standard error over draws."""
    clean = resized(side)
    corruption = corruptions[name]
    rounds = draws if corruption.random else 1
    means = []
    for seed in range(rounds):
        made = corruption(clean, severity, scale=scale, seed=seed, ids=[f"{side}/{i}" for i in range(3)])
        means.append(float(((made.astype(np.float32) - clean) ** 2).mean()))
    return float(np.mean(means)), float(np.std(means) / math.sqrt(max(rounds - 1, 1)))


def steps(found: Damage) -> list[tuple[float, float, int]]:
    """Return the step to each side from the previous one, a ratio of at least 1, its error, and the side."""
    result = []
    sides = sorted(found)
    for before, side in pairwise(sides):
        (a, a_error), (b, b_error) = found[before], found[side]
        a_floor, b_floor = max(a, NEGLIGIBLE), max(b, NEGLIGIBLE)
        ratio = max(a_floor, b_floor) / min(a_floor, b_floor)
        result.append((ratio, ratio * math.hypot(a_error / a_floor, b_error / b_floor), side))
    return result


def main() -> None:
    """Print the largest steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=get_corruption_names("all"))
    parser.add_argument("--scale", default="auto")
    parser.add_argument("--sides", default="16:80", help="ranges including their ends: 16:80,127:130")
    parser.add_argument("--severities", default="1,3,5")
    parser.add_argument("--draws", type=int, default=64)
    options = parser.parse_args()
    ranges = [tuple(map(int, some.split(":"))) for some in options.sides.split(",")]
    for name in options.names:
        for severity in map(int, options.severities.split(",")):
            found: list[tuple[float, float, int]] = []
            for first, last in ranges:
                found += steps(
                    {
                        side: damage(name, severity, side, scale=options.scale, draws=options.draws)
                        for side in range(first, last + 1)
                    }
                )
            worst = sorted(found, key=lambda step: step[1] * 2 - step[0])[:3]
            steps_found = ", ".join(f"{ratio:.3f} ± {error:.3f} at {side}" for ratio, error, side in worst)
            print(f"{name:18s} {severity}  {steps_found}", flush=True)


if __name__ == "__main__":
    main()
