"""Large fractals row by row: the bits of the whole map, without the map."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from beaufort.corruptions import corruptions, rng
from beaufort.corruptions._kernels import cpu_ops
from beaufort.corruptions._kernels.cpu.plasma_rows import plasma_rows
from beaufort.corruptions.rng import FieldKey, Key

OPS = cpu_ops()
NOISE = FieldKey(Key.of(0, "fog", 1, 3), np.array([7, 11732030946585132122], np.uint64), 5)


@pytest.mark.parametrize("side", [2, 4, 8, 16, 64, 512])
@pytest.mark.parametrize("decay", [1.4, 1.7, 2, 3])
def test_rows_are_those_of_the_map(side: int, decay: float) -> None:
    noise = OPS.philox_uniform(NOISE, (side**2 - 1,), -1, 1)
    for height, width in ((side, side), (side // 2 + 1, 1), (1, side)):
        whole = OPS.plasma(noise, side, decay, height, width)
        np.testing.assert_array_equal(plasma_rows(NOISE, side, decay, height, width), whole)


@pytest.mark.parametrize("backend", ["cpu", "torch"])
@pytest.mark.parametrize("shape", [(20, 70, 3), (70, 20, 1)])
def test_fog_is_the_same_either_way(
    shape: tuple[int, ...], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "torch":
        pytest.importorskip("torch")
    images = np.random.default_rng(0).integers(0, 256, (3, *shape), dtype=np.uint8)
    fog = corruptions["fog"]
    held = [
        fog(images, severity, ids=["a", "b", 3], scale="imagenet", backend=backend) for severity in (1, 5)
    ]
    monkeypatch.setattr(rng, "_MANY", 1)
    monkeypatch.setattr(rng, "_MANY_ELSEWHERE", 1)
    for severity, before in zip((1, 5), held, strict=True):
        after = fog(images, severity, ids=["a", "b", 3], scale="imagenet", backend=backend)
        if backend == "cpu":
            np.testing.assert_array_equal(after, before)
        else:  # the last square of a row is rounded another way there
            assert np.abs(after.astype(int) - before).max() <= 1


PEAK = """
import resource
import numpy as np
from beaufort.corruptions import corruptions
fog, image = corruptions["fog"], np.zeros((16, 9000, 3), np.uint8)
fog(image[:, :64], 3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fog(image, 3)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_long_images_need_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50 * 1024  # KiB; the map alone would be a million
