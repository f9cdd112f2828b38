"""Corruptions one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from beaufort import corrupt
from beaufort._core.errors import OptionError
from beaufort.corruptions import Chain, Corrupt, corruptions
from beaufort.data.writers.variants import variants
from beaufort.suites.conditions import Condition
from beaufort.testing._contracts import digit, example_image

PHOTOS = np.stack([example_image(40, 48, variant=i) for i in range(3)])


def test_links_are_done_in_their_order() -> None:
    chain = Chain.parse("contrast@2+brightness@3")
    first = corruptions["contrast"](PHOTOS, 2)
    np.testing.assert_array_equal(chain(PHOTOS), corruptions["brightness"](first, 3))
    other = Chain.parse("brightness@3+contrast@2")
    assert (other(PHOTOS) != chain(PHOTOS)).any()


@pytest.mark.parametrize("ids", [None, [0, "b", 7]])
def test_the_first_link_is_the_corruption_alone(ids: list[int | str] | None) -> None:
    alone = corruptions["gaussian_noise"](PHOTOS, 2, ids=ids, seed=3)
    made = Chain.parse("gaussian_noise@2+contrast@1")(PHOTOS, ids=ids, seed=3)
    np.testing.assert_array_equal(made, corruptions["contrast"](alone, 1))


def test_each_link_has_random_numbers_of_its_own() -> None:
    """Twice the same corruption at the same severity is not twice the same noise."""
    flat = np.full((64, 64, 3), 128, np.uint8)
    once = corruptions["gaussian_noise"](flat, 1, ids=["a"]).astype(int) - 128
    twice = Chain.parse("gaussian_noise@1+gaussian_noise@1")(flat, ids=["a"]).astype(int) - 128
    second = twice - once
    assert abs(np.corrcoef(once.ravel(), second.ravel())[0, 1]) < 0.05
    assert 1.3 < twice.std() / once.std() < 1.5  # √2 where they are independent, 2 where they are the same


def test_links_draw_from_the_reference_stream() -> None:
    flat = np.full((64, 64, 3), 128, np.uint8)
    chain = Chain.parse("gaussian_noise@1+gaussian_noise@1")
    twice = chain(flat, seed=5, stream="reference")
    np.testing.assert_array_equal(twice, chain(flat, seed=5, stream="reference"))
    once = corruptions["gaussian_noise"](flat, 1, seed=5, stream="reference").astype(int) - 128
    assert 1.3 < (twice.astype(int) - 128).std() / once.std() < 1.5


def test_a_seed_that_is_none_spoils_no_later_call() -> None:
    chain = Chain.parse("gaussian_noise@1+fog@2")
    for seed in (1978.0, [1978], None):
        with pytest.raises(OptionError, match=r"seed.*integer"):
            chain(PHOTOS, seed=seed)  # type: ignore[arg-type]
    assert chain(PHOTOS, seed=1978).shape == PHOTOS.shape


def test_alone_as_in_a_batch() -> None:
    chain = Chain.parse("fog@2+shot_noise@1.5+jpeg_compression@3")
    for ids in (None, ["a", "b", "c"]):
        batch = chain(PHOTOS, ids=ids, seed=5)
        for i, photo in enumerate(PHOTOS):
            np.testing.assert_array_equal(chain(photo, ids=ids and [ids[i]], seed=5), batch[i])


def test_both_backends_agree() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    chain = Chain.parse("gaussian_noise@2.5+jpeg_compression@3")
    images = np.ascontiguousarray(PHOTOS)
    np.testing.assert_array_equal(
        chain(images, ids=[1, 2, 3], backend="torch"), chain(images, ids=[1, 2, 3], backend="cpu")
    )


def test_as_a_condition_and_by_one_call() -> None:
    text = "gaussian_noise@2+jpeg_compression@3"
    made = Condition.parse(f"photos/{text}").apply(PHOTOS[:1], ids=["a"], seed=2)
    np.testing.assert_array_equal(corrupt(PHOTOS[0], text, image_id="a", seed=2), made[0])
    with pytest.raises(OptionError, match=r"severity .*jpeg_compression.*got 3"):
        corrupt(PHOTOS[0], text, 3)


def test_a_chain_has_a_severity_at_each_link_wherever_it_is_made() -> None:
    """Every link requires a severity; one beside the chain does not count."""
    photo, says = example_image(40, 48), r"fog requires a severity .*'fog\+snow@2'"
    for make in (
        lambda: corrupt(photo, "fog+snow@2"),
        lambda: Corrupt("fog+snow@2", 4)(photo),
        lambda: Corrupt(["contrast", "fog+snow@2"], 4, scale="imagenet"),
        lambda: variants(["fog+snow@2"], [4], "imagenet"),
    ):
        with pytest.raises(OptionError, match=says):
            make()
    assert corrupt(digit(), "fog+stripe").shape == (28, 28, 1)  # published ones
    assert Corrupt("fog@2+inverse", scale="relative")(photo).shape == photo.shape  # has one for all


def test_a_severity_in_the_name() -> None:
    """`fog@2.5` is a severity like any other."""
    photo = np.tile(np.arange(0, 250, 5, dtype=np.uint8)[:, None, None], (1, 50, 3))
    named = corrupt(photo, "fog@2.5", image_id="a")
    assert np.array_equal(named, corrupt(photo, "fog", 2.5, image_id="a"))
    with pytest.raises(OptionError, match=r"severity .*'fog@2\.5'.*got 3"):
        corrupt(photo, "fog@2.5", 3)
