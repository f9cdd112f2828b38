"""Pixels are equal to those that were compared with the reference implementations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort.corruptions import Corruption, corruptions
from beaufort.testing._contracts import digit, example_image

PINS = Path(__file__).parent.parent / "golden" / "pins.npz"


def outputs(name: str) -> dict[str, np.ndarray]:
    """All pinned outputs of a corruption, by what made them."""
    corruption = corruptions[name]
    if corruption.group == "unseen":
        return _outputs_of_c_bar(corruption)
    photo, small, digits = (
        example_image(48, 40),
        example_image(32, 32),
        np.stack([digit(variant=i) for i in range(2)]),
    )
    made = {}
    for stream in ("keyed", "reference"):
        options: dict[str, Any] = {"seed": 11, "stream": stream}
        if "imagenet" in corruption.recipes:
            key = f"{name}/imagenet/3/{stream}"
            made[key] = corruption(photo, 3, ids=["pin"], scale="imagenet", **options)
        if "cifar" in corruption.recipes:
            for severity in (1, 5):
                key = f"{name}/cifar/{severity}/{stream}"
                made[key] = corruption(small, severity, ids=["pin"], scale="cifar", **options)
        if "mnist" in corruption.recipes:
            made[f"{name}/mnist/{stream}"] = corruption(digits, ids=[0, 1], scale="mnist", **options)
    return made


def _outputs_of_c_bar(corruption: Corruption) -> dict[str, np.ndarray]:
    """Return outputs at both scales and with both streams for a small image that is not square."""
    return {
        f"{corruption.name}/{scale}/3/{stream}": corruption(
            example_image(20, 24), 3, ids=["pin"], seed=11, scale=scale, stream=stream
        )
        for scale in corruption.recipes
        for stream in ("keyed", "reference")
    }


@pytest.mark.parametrize("name", corruptions)
def test_pins(name: str) -> None:
    with np.load(PINS) as pins:
        found = outputs(name)
        assert {key for key in pins.files if key.startswith(f"{name}/")} == set(found)
        for key, out in found.items():
            assert np.array_equal(out, pins[key]), key


if __name__ == "__main__":
    made: dict[str, Any] = {}
    for name in corruptions:
        made |= outputs(name)
    np.savez_compressed(PINS, **made)
    print(f"{len(made)} outputs, {PINS.stat().st_size} bytes")
