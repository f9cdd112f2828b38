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
"""The textures. A sixth one is published but never used; the second and third are equal."""


class Params(NamedTuple):
    """Thickness of the ice."""

    image_weight: float
    frost_weight: float
    texture_scale: Pixels = 1.0
    """Size of the texture relative to its file."""


class Crops(NamedTuple):
    """The crop of a texture for each image."""

    textures: list[NDArray[np.uint8]]
    pieces: NDArray[np.int64]
    """Index of the texture, first row and first column, `(n, 3)`."""


_MAX_KEPT = 1 << 23
"""Maximum size in bytes of an enlarged texture that is kept for later images."""


def _texture(name: str, gray: bool, scale: float, height: int, width: int) -> NDArray[np.uint8]:
    """Return a texture at the given scale, enlarged further if it does not cover height × width."""
    texture = _file(name, gray)
    lack = max((height + 1) / (len(texture) * scale), (width + 1) / (texture.shape[1] * scale))
    factor = scale if lack <= 1 else scale * lack * 1.1
    if factor == 1:
        return texture
    if factor < 1:
        return _shrunk(name, gray, factor)
    if texture.size * factor**2 <= _MAX_KEPT:
        return _enlarged(name, gray, factor)
    return _resize(texture, factor)


@lru_cache(maxsize=32)
def _shrunk(name: str, gray: bool, factor: float) -> NDArray[np.uint8]:
    return _resize(_file(name, gray), factor)


@lru_cache(maxsize=8)
def _enlarged(name: str, gray: bool, factor: float) -> NDArray[np.uint8]:
    return _resize(_file(name, gray), factor)


@lru_cache(maxsize=16)
def _file(name: str, gray: bool) -> NDArray[np.uint8]:
    import cv2

    path = fetch(f"frost/{name}")
    mode = cv2.IMREAD_GRAYSCALE if gray else cv2.IMREAD_COLOR_RGB
    pixels = cv2.imdecode(np.fromfile(path, np.uint8), mode)
    if pixels is None:
        raise AssetError(f"cannot decode {path}; delete the file to download it again")
    return np.atleast_3d(np.asarray(pixels, np.uint8))


def _resize(image: NDArray[np.uint8], factor: float) -> NDArray[np.uint8]:
    """Resample bilinearly, without smoothing."""
    import cv2

    resized = cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR)
    return np.atleast_3d(np.asarray(resized, np.uint8))


def draw(random: Random, images: Images, p: Params) -> Crops:
    """Draw a texture and the start of the crop."""
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
    bulk=1,  # only a few numbers per image are drawn
    files=("frost",),
    levels={
        "imagenet": _PHOTOS,
        "inception": _PHOTOS,
        "tiny": [Params(a, b, 0.3) for a, b in ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55))],
        "cifar": [Params(a, b, 0.2) for a, b in ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))],
    },
)
def frost(images: Images, p: Params, crops: Crops, ops: Ops, *, nearest: bool = False) -> Images:
    """Mix the image with a crop of a photographed frost texture, read as gray for grayscale images."""
    return ops.blend(images, *crops, p.image_weight, p.frost_weight, nearest=nearest)


frost.for_digits(_PHOTOS, published=5, nearest=True)
