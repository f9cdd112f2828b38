"""Transparent images laid on white."""

from __future__ import annotations

import numpy as np
from PIL import Image

from beaufort.data.images import flatten


def test_opaque_images_do_not_change() -> None:
    image = Image.new("RGB", (64, 64))
    assert flatten(image) is image


def test_half_transparent_black_is_gray_on_white() -> None:
    assert np.asarray(flatten(Image.new("LA", (4, 4), (0, 128)))).tolist() == [[127] * 4] * 4
