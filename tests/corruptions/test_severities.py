"""Severities between the published ones."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from doc_tables import digits
from size_steps import resized

from beaufort._core.catalog import pull
from beaufort._core.errors import AssetError
from beaufort.corruptions import SCALES, SEVERITIES, Corruption, corruptions
from beaufort.corruptions._kernels import cpu_ops
from beaufort.corruptions._sizes import between_severities
from beaufort.corruptions.rng import Key, Keyed
from beaufort.suites.conditions import Condition
from beaufort.testing._contracts import example_image

STEPS = np.arange(1, 5.01, 0.25)

every_corruption = pytest.mark.parametrize("name", corruptions)


class Constants(NamedTuple):
    """Constants of each kind that a package may have."""

    amount: float
    rounds: int
    kind: str = "wet"
    whole: bool = False


def test_the_rule() -> None:
    low, high = Constants(0.1, 2), Constants(0.3, 5, "dry", whole=True)
    assert between_severities(low, high, 0.25, 224) == Constants(0.15, 3)
    assert between_severities(low, high, 0.5, 224).rounds == 4  # 3.5: halves go toward the higher severity
    assert between_severities(high, low, 0.5, 224) == Constants(0.2, 3, "dry", whole=True)


def test_published_constants() -> None:
    noise, blur, jpeg = (corruptions[name] for name in ("gaussian_noise", "glass_blur", "jpeg_compression"))
    assert noise.params(2.5).sigma == 0.15
    assert noise.params(1.25, "cifar").sigma == 0.045
    assert blur.params(4.5) == (1.3, 4, 2)
    assert [jpeg.params(severity).quality for severity in (2, 2.25, 2.5, 2.75, 3)] == [18, 17, 16, 16, 15]
    spatter = corruptions["spatter"]
    assert spatter.params(3.75) == spatter.params(3)  # water is water until there is mud
    assert spatter.params(4.5).mean == 0.66


def test_images_are_mixed_where_constants_interact() -> None:
    snow, photo = corruptions["zoom_blur"], example_image(64, 64)
    low, high = (snow(photo, severity).astype(np.float64) for severity in (2, 3))
    made = snow(photo, 2.25)
    assert np.abs(made - (0.75 * low + 0.25 * high)).max() <= 0.5
    facts = Condition("x", "zoom_blur", 2.25).facts(scale="imagenet")
    assert facts["params"]["low"] == snow.params(2)._asdict()
    assert facts["params"]["share"] == 0.25
    assert json.loads(json.dumps(facts)) == facts


@every_corruption
def test_integers_are_the_published_severities(name: str) -> None:
    """Equal numbers of any type give the same constants, key and pixels."""
    corruption = corruptions[name]
    for scale in corruption.recipes:
        for severity in SEVERITIES:
            published = corruption.recipes[scale].level(severity)
            for same in (severity, float(severity), np.float32(severity), np.int8(severity)):
                chosen = corruption.choose(same, scale=scale, side=SCALES[scale])  # type: ignore[arg-type]
                assert chosen.params == published
                assert chosen.recipe is corruption.recipes[scale]


def test_the_key_has_the_severity() -> None:
    assert Key.of(0, "fog", 1, 2.5) != Key.of(0, "fog", 1, 2)
    flat = np.full((32, 32, 3), 128, np.uint8)
    noise = corruptions["gaussian_noise"]
    np.testing.assert_array_equal(noise(flat, 3.0, ids=[1]), noise(flat, 3, ids=[1]))


@every_corruption
def test_any_size_at_any_severity(name: str) -> None:
    """Both rules together, on both ways between the published sizes."""
    _needs(name)
    corruption = corruptions[name]
    for side in (20, 48, 100):
        photo = example_image(side, side + 7)
        for scale in ("auto", "relative"):
            assert corruption(photo, 2.4, ids=[1], scale=scale).shape == photo.shape


def _needs(name: str) -> None:
    try:
        for file in corruptions[name].files:
            pull(file)
    except AssetError as error:
        pytest.skip(str(error))


def _damage(corruption: Corruption, images: np.ndarray, severity: float, scale: str) -> float:
    """The mean squared change, with the same random numbers at every severity."""
    ops = cpu_ops()
    _, recipe, params = corruption.choose(severity, scale=scale, side=SCALES[scale])
    key, ids = Key.of(0, corruption.name, 1, 0), np.arange(len(images), dtype=np.uint64)
    made = recipe.run(images, params, lambda: Keyed(key, ids, ops), ops)
    return float(np.mean((np.asarray(made, np.float32) - images) ** 2))


TOLERANCE = {"pixelate": 0.3}
"""The share by which the damage may fall from one quarter to the next, else 0.04. Pixelate does more where
the edges of its cells fall between pixels in a short rhythm, as with 128 cells on 224 pixels."""


@pytest.mark.parametrize("scale", ["cifar", "imagenet", "mnist"])
@every_corruption
def test_damage_rises_where_it_does_from_one_whole_severity_to_the_next(name: str, scale: str) -> None:
    corruption = corruptions[name]
    if scale not in corruption.recipes or len(corruption.recipes[scale].levels) == 1:
        pytest.skip(f"{name} has no five severities at the scale {scale}")
    _needs(name)
    photos = digits() if scale == "mnist" else resized(SCALES[scale])
    images = np.concatenate([photos[:2]] * 2) if scale == "imagenet" else np.concatenate([photos] * 4)
    found = {float(s): _damage(corruption, images, s, scale) for s in STEPS}
    for low, high in pairwise(SEVERITIES):
        if found[high] < found[low]:
            continue  # the published constants themselves do less
        for a, b in pairwise([found[s] for s in np.arange(low, high + 0.01, 0.25)]):
            assert b >= a * (1 - TOLERANCE.get(name, 0.04)), (low, found)


@pytest.mark.parametrize("name", ["defocus_blur", "fog", "glass_blur", "snow", "spatter", "zoom_blur"])
def test_backends_agree(name: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    photo = np.stack([example_image(64, 64), example_image(64, 64, variant=2)])
    options: dict[str, Any] = {"ids": [1, 2], "seed": 3}
    for severity, scale in ((1.5, "auto"), (3.75, "imagenet")):
        here = corruptions[name](photo, severity, scale=scale, backend="cpu", **options).astype(int)
        there = corruptions[name](photo, severity, scale=scale, backend="torch", **options)
        off = np.abs(here - there)
        assert off.max() <= 1
        assert (off > 0).mean() < 1e-3


def test_mixed_images_use_the_same_reference_numbers() -> None:
    """As in the keyed stream; the next image continues the stream."""
    snow, photo = corruptions["snow"], example_image(120, 120)

    def made(severity: float, *photos: Any) -> Any:
        return snow(np.stack(photos), severity, scale="imagenet", seed=7, stream="reference")

    between = made(2.5, photo, photo)
    mixed = cpu_ops().mix([made(2, photo), made(3, photo)], [0.5, 0.5])
    np.testing.assert_array_equal(between[:1], mixed)
    assert (between[0] != between[1]).any()
