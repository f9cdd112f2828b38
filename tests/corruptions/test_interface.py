"""Names, severities, scales, ids, streams and error messages of public calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from beaufort import corrupt, get_corruption_names
from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, OptionError, UnknownNameError
from beaufort.corruptions import SCALES, SUBSETS, Corruption, corruptions, expand_names, members_of
from beaufort.corruptions._backends import _pieces
from beaufort.corruptions._kernels import Ops
from beaufort.testing._contracts import digit, example_image

PHOTO = example_image(64, 64)


class _Nothing(NamedTuple):
    """No constants."""


def test_subsets() -> None:
    sizes = {
        "common": 15,
        "validation": 4,
        "all": 19,
        "noise": 3,
        "blur": 4,
        "weather": 4,
        "digital": 4,
        "mnist-c": 15,
        "mnist-c-extra": 16,
        "mnist-c-all": 31,
        "imagenet-c-bar": 10,
        "cifar10-c-bar": 10,
    }
    for subset, size in sizes.items():
        names = get_corruption_names(subset)
        assert len(names) == len(set(names)) == size
        assert set(names) <= set(corruptions)
    assert get_corruption_names() == get_corruption_names("common")
    unseen = {name for name, one in corruptions.items() if one.group == "unseen"}
    assert {*get_corruption_names("imagenet-c-bar"), *get_corruption_names("cifar10-c-bar")} == unseen
    assert set(get_corruption_names("mnist-c-all")) == set(corruptions) - unseen - {"greyscale"}
    with pytest.raises(UnknownNameError, match="did you mean 'weather'"):
        get_corruption_names("wether")


def test_expansion_of_names() -> None:
    assert all(members_of(name) == (name,) for name in corruptions)
    assert all(members_of(name) == members for name, members in SUBSETS.items())
    assert [members_of(name) for name in ("smog", "", None, 3, ["fog"])] == [()] * 5
    assert expand_names(["snow", "noise"], kind="corruption") == ("snow", *SUBSETS["noise"])
    assert expand_names([], kind="corruption") == ()
    with pytest.raises(UnknownNameError, match=r"'wether'.*'weather'"):
        expand_names(["fog", "wether"], kind="word")


def test_the_scale_that_is_chosen() -> None:
    fog = corruptions["fog"]
    for scale, side in SCALES.items():
        chosen = fog.choose(3, scale=scale, side=side)
        assert chosen.scale == scale
        assert chosen.recipe is fog.recipes[scale]
        assert chosen.params == fog.params(3, scale)
    assert fog.choose(3, scale="auto", side=28, channels=1).scale == "mnist"
    assert fog.choose(3, scale="auto", side=28).scale == "cifar"
    assert fog.choose(3, scale="relative", side=1000).scale == "imagenet"


def test_one_as_a_batch() -> None:
    one = corrupt(PHOTO, "fog", 3, seed=4, image_id="a", scale="imagenet")
    batch = corruptions["fog"](PHOTO[None], severity=3, ids=["a"], seed=4, scale="imagenet")
    assert np.array_equal(one, batch[0])


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"severity": 0, "corruption": "fog"}, OptionError, "from 1 to 5"),
        (
            {"severity": 6, "corruption": "fog"},
            OptionError,
            r"severity .*number.* 1 to 5.* 6",
        ),
        ({"severity": 0.5, "corruption": "fog"}, OptionError, "0.5"),
        ({"severity": float("nan"), "corruption": "fog"}, OptionError, "nan"),
        ({"severity": True, "corruption": "fog"}, OptionError, "True"),
        ({"severity": 1, "corruption": "fgo"}, UnknownNameError, "fog"),
        (
            {"corruption": 3, "severity": "fog"},
            OptionError,
            "corruption, then severity.*compat",
        ),
        ({"corruption": None, "severity": 3}, OptionError, "corruption must be a name"),
        ({"corruption": "fog", "scale": "imagnet"}, OptionError, "imagenet"),
        ({"corruption": "zigzag", "scale": "cifar"}, OptionError, "relative"),
        ({"corruption": "fog", "stream": "numpy"}, OptionError, "reference"),
        ({"corruption": "fog", "seed": 1.5}, OptionError, r"seed .*integer.* 1.5"),
        ({"corruption": "fog", "seed": -3, "stream": "reference"}, OptionError, "2\\*\\*32"),
        ({"corruption": "fog", "image_id": -3}, OptionError, "-3"),
    ],
)
def test_mistakes(options: dict[str, object], error: type[BeaufortError], says: str) -> None:
    with pytest.raises(error, match=says):
        corrupt(PHOTO, **options)  # type: ignore[arg-type]


def test_wrong_number_of_ids() -> None:
    with pytest.raises(OptionError, match="2 images"):
        corruptions["fog"](np.stack([PHOTO, PHOTO]), 3, ids=["a"])
    for ids in ("a", b"a", 5, None.__class__, iter(["a"]), 1.5, {"a"}, frozenset({"a"})):
        with pytest.raises(OptionError, match="must be a list"):
            corruptions["fog"](PHOTO, 3, ids=ids)  # type: ignore[arg-type]


def test_ids_that_are_no_unicode() -> None:
    first, second = (corruptions["fog"](PHOTO, 3, ids=[name]) for name in ("\udce9.png", "\ud800"))
    assert (first != second).any()
    corrupt(PHOTO, "fog", image_id="\udfff")


@pytest.mark.parametrize("jobs", [0, -1, "2", 1.5])
def test_wrong_jobs(jobs: object) -> None:
    with pytest.raises(OptionError, match=r"jobs.*positive integer"):
        corruptions["fog"](PHOTO, 3, jobs=jobs)  # type: ignore[arg-type]


def test_severity_when_none_is_given() -> None:
    assert np.array_equal(corrupt(PHOTO, "contrast"), corrupt(PHOTO, "contrast", 1))
    published = {"contrast": 4, "brightness": 5, "pixelate": 3, "impulse_noise": 4, "rotate": 2}
    for name, severity in published.items():
        none = corruptions[name](digit(), scale="mnist", ids=[1])
        assert np.array_equal(none, corruptions[name](digit(), severity, scale="mnist", ids=[1]))


def test_auto_is_relative_where_there_are_no_constants() -> None:
    assert np.array_equal(corrupt(PHOTO, "translate", 3), corrupt(PHOTO, "translate", 3, scale="relative"))


@pytest.mark.parametrize("scale", SCALES)
def test_constants_of_any_one_scale_serve_every_size(scale: str) -> None:
    made = Corruption("darker", "digital", 1, "Darkens.")
    made.at(scale, levels=[_Nothing()])(lambda images, params, ops: images // 2)
    assert made.relative_to == scale
    for side in (16, 28, 32, 64, 100, 224, 299, 320):
        for channels in (1, 3):
            image = np.full((side, side, channels), 100, np.uint8)
            for requested in ("auto", "relative", scale):
                assert (made(image, 3, scale=requested) == 50).all()


def test_relative_at_its_own_size_is_the_published_scale() -> None:
    photo = example_image(224, 224)
    for name in get_corruption_names("all"):
        if name != "frost":
            published = corrupt(photo, name, 3, scale="imagenet", image_id=1)
            assert np.array_equal(corrupt(photo, name, 3, scale="relative", image_id=1), published)


@pytest.mark.parametrize(
    "name", [name for name in get_corruption_names("all") if name not in ("jpeg_compression",)]
)
def test_relative_hurts_a_large_photo_as_much(name: str) -> None:
    """A photo four times as large, corrupted and shrunk again, is off as much as the small one."""
    small = example_image(224, 224)
    large = np.asarray(Image.fromarray(small).resize((896, 896), Image.Resampling.NEAREST))

    def damage(photo: np.ndarray, scale: str) -> float:
        total = 0.0
        for image_id in range(6):
            out = Image.fromarray(corrupt(photo, name, 3, scale=scale, image_id=image_id))
            shrunk = np.asarray(out.resize((224, 224), Image.Resampling.BOX))
            total += np.abs(shrunk.astype(int) - small).mean()
        return total

    ratio = damage(large, "relative") / damage(small, "imagenet")
    assert 0.7 < ratio < 1.4, ratio
    if name in ("defocus_blur", "gaussian_noise", "motion_blur", "glass_blur", "pixelate"):
        assert damage(large, "imagenet") < 0.75 * damage(small, "imagenet")  # which is what `relative` fixes


def test_gray_is_gray() -> None:
    gray = np.repeat(PHOTO[..., :1], 3, axis=-1)
    for name in ("brightness", "contrast", "pixelate", "gaussian_blur", "defocus_blur", "zoom_blur", "fog"):
        color = corrupt(gray, name, 3, image_id=1)
        one = corrupt(gray[..., 0], name, 3, image_id=1)
        assert np.abs(color[..., 1].astype(int) - one).max() <= 1, name


def test_empty_batches() -> None:
    empty = np.zeros((0, 32, 32, 3), np.uint8)
    for name in ("gaussian_noise", "contrast"):
        assert corruptions[name](empty, 3).shape == empty.shape


def test_params_are_data() -> None:
    assert corruptions["gaussian_noise"].params(3, "imagenet").sigma == 0.18
    assert corruptions["elastic_transform"].params(2, "inception").alpha == 720
    grown = corruptions["defocus_blur"].params(3, "relative", side=448)
    assert grown.radius == 12
    for corruption in corruptions.values():
        for scale, recipe in corruption.recipes.items():
            assert scale in SCALES
            assert len(recipe.levels) in (1, 5)
            assert recipe.published in range(1, 6)


def test_repr() -> None:
    assert repr(corruptions["fog"]).startswith("<Corruption fog: Add a fractal")


@pytest.mark.parametrize("cut", [slice(None), slice(None, None, -1)])
def test_a_render_that_hands_back_its_input_gives_the_caller_an_array_of_its_own(cut: slice) -> None:
    same = Corruption("same", "digital", 1, "Nothing happens.")
    same.at("cifar", levels=[()])(lambda images, params, ops: images[:, cut])
    out = same(PHOTO, 3, scale="cifar")
    assert np.array_equal(out, PHOTO[cut])
    assert not np.shares_memory(out, PHOTO)
    assert out.flags.writeable
    assert out.flags.c_contiguous


def test_a_recipe_that_is_added_later_is_found() -> None:
    def render(images: Bytes, level: int, ops: Ops) -> Bytes:
        return images + np.uint8(level)

    made = Corruption("later", "digital", 1, "Adds a little.")
    made.at("cifar", levels=[1, 2, 3, 4, 5])(render)
    assert np.array_equal(made(PHOTO, 3, scale="cifar"), PHOTO + 3)
    made.at("cifar", levels=[10, 20, 30, 40, 50])(render)
    assert np.array_equal(made(PHOTO, 3, scale="cifar"), PHOTO + 30)


@pytest.mark.parametrize("jobs", [1, 2, 3, 8])
@pytest.mark.parametrize("step", [1, 4, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 64, 257])
def test_every_image_of_a_batch_is_in_one_piece(count: int, step: int, jobs: int) -> None:
    pieces = _pieces(count, step, jobs)
    assert [place for piece in pieces for place in range(*piece.indices(count))] == list(range(count))
    sizes = [piece.stop - piece.start for piece in pieces]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes, default=0) <= (step if jobs == 1 else 2 * step)
