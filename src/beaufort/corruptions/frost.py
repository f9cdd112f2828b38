"""Frost: ice on the lens."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.catalog import fetch
from beaufort._core.errors import AssetError
from beaufort.corruptions import Images, Ops, Pixels, Random, corruption

TEXTURES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
"""The textures that are drawn from. A sixth is published and never used; 2 and 3 are the same."""


class Params(NamedTuple):
    """How thick the ice is."""

    image_weight: float
    frost_weight: float
    texture_scale: Pixels = 1.0
    """Size of the texture against its file."""


class Crops(NamedTuple):
    """The piece of a texture that covers each image."""

    textures: list[NDArray[np.uint8]]
    pieces: NDArray[np.int64]
    """The number of the texture, the first row and the first column, `(n, 3)`."""


def _texture(name: str, grey: bool, scale: float, height: int, width: int) -> NDArray[np.uint8]:
    """A texture at the given scale, enlarged further if it does not cover height × width."""
    texture = _file(name, grey)
    lack = max((height + 1) / (len(texture) * scale), (width + 1) / (texture.shape[1] * scale))
    factor = scale if lack <= 1 else scale * lack * 1.1
    if factor == 1:
        return texture
    return _shrunk(name, grey, factor) if factor < 1 else _resize(texture, factor)


@lru_cache(maxsize=32)
def _shrunk(name: str, grey: bool, factor: float) -> NDArray[np.uint8]:
    return _resize(_file(name, grey), factor)


@lru_cache(maxsize=16)
def _file(name: str, grey: bool) -> NDArray[np.uint8]:
    import cv2

    path = fetch(f"frost/{name}")
    mode = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR_RGB
    pixels = cv2.imdecode(np.fromfile(path, np.uint8), mode)
    if pixels is None:
        raise AssetError(f"cannot decode {path}; delete the file to have it fetched again")
    return np.atleast_3d(np.asarray(pixels, np.uint8))


def _resize(image: NDArray[np.uint8], factor: float) -> NDArray[np.uint8]:
    """Resample bilinearly, without smoothing before it shrinks."""
    import cv2

    resized = cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR)
    return np.atleast_3d(np.asarray(resized, np.uint8))


def draw(random: Random, images: Images, p: Params) -> Crops:
    """A texture, and where in it the crop starts."""
    height, width, channels = images.shape[1:]
    host = random.host
    drawn = host.integers((), 0, len(TEXTURES)).tolist()
    which = list(dict.fromkeys(drawn))
    textures = [_texture(TEXTURES[i], channels == 1, p.texture_scale, height, width) for i in which]
    number = [which.index(i) for i in drawn]
    rows = host.integers((), 0, np.array([len(textures[k]) - height for k in number]))
    columns = host.integers((), 0, np.array([textures[k].shape[1] - width for k in number]))
    return Crops(textures, np.array([number, rows, columns]).T)


_PHOTOS = [Params(1, 0.4), Params(0.8, 0.6), Params(0.7, 0.7), Params(0.65, 0.7), Params(0.6, 0.75)]


@corruption(
    "weather",
    draw=draw,
    bulk=1,  # a few numbers an image are drawn
    files=("frost",),
    levels={
        "imagenet": _PHOTOS,
        "inception": _PHOTOS,
        "tiny": [Params(a, b, 0.3) for a, b in ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55))],
        "cifar": [Params(a, b, 0.2) for a, b in ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))],
    },
)
def frost(images: Images, p: Params, crops: Crops, ops: Ops, *, nearest: bool = False) -> Images:
    """Mix the image with a piece of a photographed frost texture; grey images get a grey one."""
    return ops.blend(images, *crops, p.image_weight, p.frost_weight, nearest=nearest)


frost.for_digits(_PHOTOS, published=5, nearest=True)
