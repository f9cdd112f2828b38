"""Accepted images, and errors for others."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from beaufort._core.arrays import as_batch
from beaufort._core.errors import BeaufortError, ImageTypeError, ImageValueError

CASES = [
    (np.zeros((20, 30), np.float32), ImageTypeError, "multiply"),
    (np.zeros((20, 30), np.uint16), ImageTypeError, "uint16"),
    (np.zeros((20, 30, 2), np.uint8), ImageValueError, "2 channels"),
    (np.zeros((5, 20, 30), np.uint8), ImageValueError, r"\[..., None\]"),
    (np.zeros((2, 2, 20, 30, 3), np.uint8), ImageValueError, "shape"),
    (np.zeros(20, np.uint8), ImageValueError, "shape"),
    (np.zeros((15, 30, 3), np.uint8), ImageValueError, "at least 16"),
    ([[1, 2], [3, 4]], ImageTypeError, "list"),
    ("photo.jpg", ImageTypeError, "str"),
    (None, ImageTypeError, "NoneType"),
    (Image.new("P", (20, 20)), ImageTypeError, "mode L, LA, RGB or RGBA, got P"),
    (Image.new("CMYK", (20, 20)), ImageTypeError, "convert"),
    (Image.new("I;16", (20, 20)), ImageTypeError, "mode L, LA, RGB or RGBA, got I;16"),
    (Image.new("RGB", (20, 9)), ImageValueError, "9×20"),
]


@pytest.mark.parametrize(("image", "error", "says"), CASES)
def test_invalid_images(image: object, error: type[BeaufortError], says: str) -> None:
    with pytest.raises(error, match=says):
        as_batch(image)


def test_shapes() -> None:
    for shape, inside in (
        ((20, 30), (1, 20, 30, 1)),
        ((20, 30, 1), (1, 20, 30, 1)),
        ((20, 30, 3), (1, 20, 30, 3)),
        ((20, 30, 4), (1, 20, 30, 3)),
        ((5, 20, 30, 4), (5, 20, 30, 3)),
        ((0, 20, 30, 3), (0, 20, 30, 3)),
    ):
        batch = as_batch(np.zeros(shape, np.uint8))
        assert batch.color.shape == inside
        assert isinstance(batch.color, np.ndarray)
        assert batch.color.flags.c_contiguous
        assert batch.close(batch.color).shape == shape


def test_strided_views_are_read_rightly() -> None:
    whole = np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3)
    view = whole[::2, ::-2, ::-1]
    assert np.array_equal(as_batch(view).color[0], view)


def test_gray_with_alpha() -> None:
    image = Image.new("LA", (20, 30), (100, 7))
    batch = as_batch(image)
    assert batch.color.shape == (1, 30, 20, 1)
    assert batch.alpha is not None
    assert (batch.alpha == 7).all()
    back = batch.close(batch.color)
    assert back.mode == "LA"
    assert back.tobytes() == image.tobytes()
