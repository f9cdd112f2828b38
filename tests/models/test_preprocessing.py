"""Preprocessing compared with torchvision and Pillow, as data and as text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.errors import ImageTypeError, ImageValueError, OptionError
from beaufort.models import IMAGENET_MEAN, IMAGENET_STD, Preprocessing, parse_options, prepare_torchvision
from beaufort.models.options import apply_options

USUAL = Preprocessing(size=(32, 32), resize=36, mean=IMAGENET_MEAN, std=IMAGENET_STD)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos", "nearest"])
@pytest.mark.parametrize("resize", [36, (40, 33)])
@pytest.mark.parametrize("side", [32, 33])
def test_equals_torchvision(photos: NDArray[np.uint8], interpolation: str, resize: Any, side: int) -> None:
    prepare_torchvision()
    pytest.importorskip("torchvision")
    from torchvision import transforms as t

    theirs = t.Compose(
        [
            t.Resize(resize, getattr(t.InterpolationMode, interpolation.upper())),
            t.CenterCrop(side),
            t.ToTensor(),
            t.Normalize(IMAGENET_MEAN, IMAGENET_STD),
        ]
    )
    ours = Preprocessing(
        size=(side, side), resize=resize, interpolation=interpolation, mean=IMAGENET_MEAN, std=IMAGENET_STD
    )
    for images in (photos, photos.transpose(0, 2, 1, 3)):
        expected = np.stack([theirs(Image.fromarray(image)).numpy() for image in images])
        np.testing.assert_array_equal(ours.apply(images), expected)


@pytest.mark.parametrize(("height", "width", "down"), [(120, 40, True), (40, 120, False), (70, 60, False)])
@pytest.mark.parametrize("interpolation", ["box", "bilinear", "hamming", "bicubic", "lanczos"])
def test_no_version_of_pillow_decides_the_order_of_the_passes(
    height: int, width: int, down: bool, interpolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pass is rounded, and Pillow 13 begins with the other one where older versions do not."""
    noise = np.random.default_rng(3).integers(0, 256, (1, height, width, 3), np.uint8)
    plain = Image.fromarray(noise[0])
    passes = [(width, 33), (35, 33)] if down else [(35, height), (35, 33)]
    for size in passes:
        plain = plain.resize(size, Image.Resampling[interpolation.upper()])
    sizes: list[tuple[int, int]] = []
    resize = Image.Image.resize

    def noted(image: Image.Image, size: tuple[int, int], *options: Any) -> Image.Image:
        sizes.append(size)
        return resize(image, size, *options)

    monkeypatch.setattr(Image.Image, "resize", noted)
    whole = Preprocessing(size=(33, 35), resize=(33, 35), interpolation=interpolation)
    np.testing.assert_array_equal(whole.fit(noise)[0], np.asarray(plain))
    assert sizes == ([] if interpolation == "bilinear" else passes)


def test_images_of_the_input_size_are_not_resized(photos: NDArray[np.uint8]) -> None:
    images = photos[:, :32, :32]
    plain = Preprocessing(size=(32, 32), resize=36)
    expected = images.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(plain.apply(images), expected)


def test_range_layout_order_and_dtype(photos: NDArray[np.uint8]) -> None:
    raw = Preprocessing(value_range="0..255", layout="NHWC", order="BGR")
    np.testing.assert_array_equal(raw.apply(photos), photos[..., ::-1].astype(np.float32))
    half = Preprocessing(dtype="float16")
    assert half.apply(photos).dtype == np.float16
    whole = Preprocessing(value_range="0..255", layout="NHWC", dtype="uint8")
    out = whole.apply(photos)
    np.testing.assert_array_equal(out, photos)
    assert not np.shares_memory(out, photos)
    assert Preprocessing().apply(photos).flags.c_contiguous


def test_gray_and_color(photos: NDArray[np.uint8]) -> None:
    gray = photos[..., :1]
    np.testing.assert_array_equal(USUAL.apply(gray), USUAL.apply(gray.repeat(3, axis=-1)))
    luma = Preprocessing(channels=1, value_range="0..255", dtype="uint8").apply(photos)
    expected = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in photos])
    np.testing.assert_array_equal(luma[:, 0], expected)


def test_the_batch_is_left_alone(photos: NDArray[np.uint8]) -> None:
    before = photos.copy()
    USUAL.apply(photos)
    np.testing.assert_array_equal(photos, before)
    assert USUAL.apply(photos[:0]).shape == (0, 3, 32, 32)


@pytest.mark.parametrize(
    ("images", "error"),
    [
        (np.zeros((2, 8, 8, 3), np.float32), ImageTypeError),
        ([[0]], ImageTypeError),
        (np.zeros((8, 8, 3), np.uint8), ImageValueError),
        (np.zeros((2, 8, 8, 4), np.uint8), ImageValueError),
        (np.zeros((2, 0, 8, 3), np.uint8), ImageValueError),
    ],
)
def test_invalid_batches_are_rejected(images: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"images.*uint8"):
        USUAL.apply(images)


def test_other_sizes_are_rejected_without_resize(photos: NDArray[np.uint8]) -> None:
    with pytest.raises(ImageValueError, match=r"32×32.*got 40×56.*resize=32"):
        Preprocessing(size=(32, 32)).apply(photos)


@pytest.mark.parametrize(
    "wrong",
    [
        {"interpolation": "cubic"},
        {"value_range": "0-1"},
        {"layout": "CHW"},
        {"order": "GBR"},
        {"dtype": "float64"},
        {"channels": 4},
        {"size": (0, 4)},
        {"size": 224},
        {"resize": 32},
        {"size": (32, 32), "resize": 31},
        {"size": (32, 32), "resize": (32, 31)},
        {"mean": (0.5,)},
        {"mean": (0.5, float("nan"), 0.5)},
        {"std": (0.0, 1.0, 1.0)},
        {"dtype": "uint8"},
    ],
)
def test_nonsense_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        Preprocessing(**wrong)


sizes = st.one_of(st.none(), st.tuples(st.integers(1, 64), st.integers(1, 64)))
numbers = st.one_of(st.just(()), st.tuples(*[st.floats(0.01, 200)] * 3))


@given(size=sizes, mean=numbers, std=numbers, top=st.sampled_from(["0..1", "0..255"]), enlarged=st.booleans())
def test_as_data_and_back(size: Any, mean: Any, std: Any, top: str, enlarged: bool) -> None:
    resize = None if size is None else (max(size) if enlarged else size)
    one = Preprocessing(size=size, resize=resize, mean=mean, std=std, value_range=top)
    assert Preprocessing.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert top in str(one)


def test_unknown_fields_are_named() -> None:
    with pytest.raises(OptionError, match="did you mean 'order'"):
        Preprocessing.from_dict({"ordre": "BGR"})


def test_options_given_by_the_caller() -> None:
    assert apply_options(USUAL, {"range": "0..255"}) == Preprocessing(
        size=(32, 32), resize=36, value_range="0..255"
    )
    assert apply_options(USUAL, {"range": "-1..1"}).mean == (0.5, 0.5, 0.5)
    assert apply_options(USUAL, {"input_size": 64}).resize == 64
    assert apply_options(USUAL, {"input_size": (64, 48)}).resize == (64, 48)
    stretched = Preprocessing(size=(32, 32), resize=(32, 32))
    assert apply_options(stretched, {"input_size": 64}) == Preprocessing(size=(64, 64), resize=(64, 64))
    assert apply_options(stretched, {"input_size": None}) == Preprocessing()
    assert apply_options(USUAL, {"input_size": 64, "resize": None}).resize is None
    assert apply_options(USUAL, {"mean": 0.25}).mean == (0.25, 0.25, 0.25)
    assert apply_options(USUAL, {"channels": 1}).mean == ()
    assert apply_options(USUAL, {"order": "BGR"}).mean == IMAGENET_MEAN
    with pytest.raises(OptionError):
        apply_options(USUAL, {"mean": "half"})  # type: ignore[typeddict-item]


def test_options_as_text() -> None:
    texts = ["input-size=64x48", "mean=0.5,0.4,0.3", "range=-1..1", "threads=2", "version=3", "classes=a.txt"]
    assert parse_options(texts) == {
        "input_size": (64, 48),
        "mean": (0.5, 0.4, 0.3),
        "range": "-1..1",
        "threads": 2,
        "version": "3",
        "classes": "a.txt",
    }
    with pytest.raises(OptionError, match="name=value"):
        parse_options(["BGR"])
