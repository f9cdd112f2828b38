"""Given the reference's own random numbers, the pixels are the reference's.

At least 99.9 % of the values of each output within one level, and none further than 8.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort import corruptions, get_corruption_names

FILES = {"imagenet": "imagenet_c_224", "cifar": "cifar_c_32", "tiny": "tiny_imagenet_c_64"}


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, tuple[Any, Any]]:
    folder = shared / "golden"
    names = [*FILES.values(), "mnist_c"]
    return {
        name: (np.load(folder / f"{name}.npz"), json.loads((folder / f"{name}.json").read_text()))
        for name in names
    }


def assert_close(out: np.ndarray, reference: np.ndarray, what: str) -> None:
    off = np.abs(out.astype(int) - reference)
    assert (off <= 1).mean() >= 0.999, f"{what}: {(off > 1).mean():.2%} of the values off by more than 1"
    assert off.max() <= 8, f"{what}: off by {off.max()}"


@pytest.mark.parametrize("scale", FILES)
@pytest.mark.parametrize("name", get_corruption_names("all"))
def test_photos(golden: dict[str, tuple[Any, Any]], scale: str, name: str) -> None:
    stored, manifest = golden[FILES[scale]]
    pictures = dict(zip(manifest["inputs"], stored["inputs"], strict=True))
    entries = [key.removeprefix("out/") for key in stored.files if key.startswith(f"out/{name}/")]
    assert len(entries) == {"imagenet": 8, "cifar": 20, "tiny": 10}[scale]
    for entry in entries:
        _, severity, picture = entry.split("/")
        modern = f"out_modern/{entry}"
        reference = stored[modern if modern in stored.files else f"out/{entry}"]
        seed = manifest["seeds"][entry]
        out = corruptions[name](pictures[picture], int(severity), seed=seed, scale=scale, stream="reference")
        assert_close(out, reference, entry)


@pytest.mark.parametrize("name", get_corruption_names("mnist-c-all"))
def test_digits(golden: dict[str, tuple[Any, Any]], name: str) -> None:
    stored, _ = golden["mnist_c"]
    modern = f"out_modern/{name}"
    reference = stored[modern if modern in stored.files else f"out/{name}"]
    seeds = stored["seed_values"][list(stored["seed_keys"]).index(name)]
    assert len(reference) == 64
    for digit, wanted, seed in zip(stored["inputs"], reference, seeds, strict=True):
        out = corruptions[name](digit, scale="mnist", seed=int(seed), stream="reference")
        assert_close(out, wanted, name)


@pytest.mark.parametrize("name", ["snow", "glass_blur", "motion_blur", "impulse_noise"])
def test_a_batch_goes_on_drawing(golden: dict[str, tuple[Any, Any]], name: str) -> None:
    """Successive draws of one generator, as the published scripts make them: the stored statistics follow."""
    stored, manifest = golden["cifar_c_32"]
    picture = stored["inputs"][0]
    entry = f"{name}/3/astronaut"
    seed = 500_000_000 + manifest["seeds"][entry]
    batch = np.stack([picture] * 256)
    draws = corruptions[name](batch, 3, seed=seed, scale="cifar", stream="reference")
    ours = draws.reshape(256, -1, 3).mean(axis=1)
    assert np.abs(ours - stored[f"stat/{entry}/draw_mean"].reshape(ours.shape)).max() < 0.3
