"""The pixels of today are the pixels of the day they were compared with the reference implementations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beaufort import get_corruption_names
from beaufort.corruptions import corruptions
from beaufort.testing._contracts import digit, picture

PINS = Path(__file__).parent.parent / "golden" / "pins.npz"


def outputs(name: str) -> dict[str, np.ndarray]:
    """All pinned outputs of a corruption, by what made them."""
    corruption = corruptions[name]
    photo, small, digits = picture(48, 40), picture(32, 32), np.stack([digit(variant=i) for i in range(2)])
    made = {}
    for stream in ("keyed", "reference"):
        options = {"seed": 11, "stream": stream}
        if "imagenet" in corruption.recipes:
            key = f"{name}/imagenet/3/{stream}"
            made[key] = corruption(photo, 3, ids=["pin"], scale="imagenet", **options)
            for severity in (1, 5):
                key = f"{name}/cifar/{severity}/{stream}"
                made[key] = corruption(small, severity, ids=["pin"], scale="cifar", **options)
        made[f"{name}/mnist/{stream}"] = corruption(digits, ids=[0, 1], scale="mnist", **options)
    return made


@pytest.mark.parametrize("name", get_corruption_names("mnist-c-all"))
def test_pins(name: str) -> None:
    with np.load(PINS) as pins:
        found = outputs(name)
        assert {key for key in pins.files if key.startswith(f"{name}/")} == set(found)
        for key, out in found.items():
            assert np.array_equal(out, pins[key]), key


if __name__ == "__main__":
    made: dict[str, np.ndarray] = {}
    for name in corruptions:
        made |= outputs(name)
    np.savez_compressed(PINS, **made)
    print(f"{len(made)} outputs, {PINS.stat().st_size} bytes")
