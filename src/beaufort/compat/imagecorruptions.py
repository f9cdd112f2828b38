"""The interface of the package `imagecorruptions` 1.1: change the import, keep the code.

```python
from beaufort.compat.imagecorruptions import corrupt, get_corruption_names
```

Names, order, signatures, defaults, accepted images and the types of errors are that package's: uint8
arrays `(h, w)`, `(h, w, 1)` or `(h, w, 3)` of at least 32×32 pixels come in, three channels go out, and
the constants are those of 224×224 images at any size. What it keeps in its submodule `corruptions`, one
function a corruption, is here too.

What differs:

* **Pixels follow the published ImageNet-C** where that package does not. Its `elastic_transform` is
  another algorithm (no affine part); its `frost` enlarges the textures before it crops them; its `snow`
  blurs the layer of flakes before trimming it. `motion_blur`, `fog` and `spatter` differ by rounding.
* **Randomness.** There as here, two calls on one image differ, and `np.random.seed` makes a run
  repeatable. Here every random corruption draws one number from NumPy's global generator and derives
  all else from it; so `np.random.seed` governs all of them, also `impulse_noise` and `glass_blur`,
  which it does not reach there. Corruptions without randomness leave the generator alone. The random
  numbers themselves are not that package's.
* **The function of one corruption** returns whole values (uint8) where that package's returns the
  floating-point values before the cast. As there, `pixelate` and `jpeg_compression` answer a PIL image
  with a PIL image. An image of fewer than 16×16 pixels is refused.

New code is better served by `beaufort.corrupt`, whose result depends on the image and a seed instead of
on what was called before.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from beaufort.arrays import Bytes
from beaufort.corruptions import SEVERITIES, SUBSETS, corruptions
from beaufort.errors import BeaufortError, OptionError, UnknownNameError
from beaufort.registry import unknown

__all__ = [
    "NotAcceptedError",
    "NumberError",
    "brightness",
    "contrast",
    "corrupt",
    "corruption_dict",
    "corruption_tuple",
    "defocus_blur",
    "elastic_transform",
    "fog",
    "frost",
    "gaussian_blur",
    "gaussian_noise",
    "get_corruption_names",
    "glass_blur",
    "impulse_noise",
    "jpeg_compression",
    "motion_blur",
    "pixelate",
    "saturate",
    "shot_noise",
    "snow",
    "spatter",
    "speckle_noise",
    "zoom_blur",
]

MIN_SIDE = 32
"""The smallest height and width, in pixels, that `corrupt` takes."""

_PIL_STAYS_PIL = ("pixelate", "jpeg_compression")
_SUBSETS = ("common", "validation", "all", "noise", "blur", "weather", "digital")


class NotAcceptedError(BeaufortError, AttributeError):
    """An image or a severity that is not accepted; `imagecorruptions` raises an AttributeError."""


class NumberError(BeaufortError, IndexError):
    """A number that no corruption has."""


def corrupt(
    image: Bytes, severity: int = 1, corruption_name: str | None = None, corruption_number: int = -1
) -> Bytes:
    """The image with one corruption applied, `(h, w, 3)`.

    Args:
        image: a uint8 array `(h, w)`, `(h, w, 1)` or `(h, w, 3)`, both sides at least 32.
        severity: 1 to 5.
        corruption_name: one of `get_corruption_names("all")`.
        corruption_number: instead of the name, its place in that list, 0 to 18.

    >>> corrupt(np.full((32, 32), 100, np.uint8), 2, "brightness")[0, 0]
    array([151, 151, 151], dtype=uint8)
    """
    color = _three_channels(image)
    level = _level(severity)
    corrupted: Bytes = _apply(_name(corruption_name, corruption_number), color, level)
    return corrupted


def get_corruption_names(subset: str = "common") -> list[str]:
    """The names of a list, in its order.

    `common` (15), `validation` (4), `all` (19), `noise`, `blur`, `weather` or `digital`.

    >>> get_corruption_names("validation")
    ['speckle_noise', 'gaussian_blur', 'spatter', 'saturate']
    """
    if subset not in _SUBSETS:
        raise OptionError(unknown("subset", subset, dict.fromkeys(_SUBSETS)))
    return list(SUBSETS[subset])


def _three_channels(image: Any) -> Bytes:
    if not isinstance(image, np.ndarray):
        raise NotAcceptedError(
            f"an image of type {type(image).__name__} came; accepted is a NumPy array: np.asarray(image)"
        )
    if image.dtype != np.uint8:
        raise NotAcceptedError(f"an array of dtype {image.dtype} came; accepted is uint8, from 0 to 255")
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
        raise NotAcceptedError(
            f"an array of shape {image.shape} came; accepted is (h, w), (h, w, 1) or (h, w, 3)"
        )
    if min(image.shape[:2]) < MIN_SIDE:
        raise NotAcceptedError(
            f"an image of {image.shape[0]}×{image.shape[1]} pixels came; "
            f"both sides must be at least {MIN_SIDE}: enlarge it first"
        )
    color = image.reshape(*image.shape[:2], -1)
    return np.ascontiguousarray(np.broadcast_to(color, (*image.shape[:2], 3)))


def _level(severity: int) -> int:
    if severity not in SEVERITIES:
        raise NotAcceptedError(f"the severity {severity!r} came; accepted is a whole number from 1 to 5")
    return operator.index(severity)


def _name(name: str | None, number: int) -> str:
    names = SUBSETS["all"]
    if name is not None:
        if name not in names:
            raise UnknownNameError(unknown("corruption", name, dict.fromkeys(names)))
        return name
    if number == -1:
        raise OptionError(
            f"neither corruption_name nor corruption_number came; give a name, or a number from 0 "
            f"({names[0]}) to {len(names) - 1} ({names[-1]})"
        )
    try:
        return names[operator.index(number)]
    except IndexError:
        raise NumberError(f"corruption_number {number} came; accepted is 0 to {len(names) - 1}") from None


def _apply(name: str, image: Any, severity: int) -> Any:
    """Corrupt an image of any kind the engine takes, under an identity drawn from the global generator."""
    corruption = corruptions[name]
    ids = None
    if corruption.recipes["imagenet"].draw is not None:
        ids = [int(np.random.randint(2**63, dtype=np.uint64))]  # noqa: NPY002  that generator is the contract
    return corruption(image, severity, ids=ids, scale="imagenet")


def _function(name: str) -> Callable[..., Any]:
    """The corruption as a function of its own."""

    def function(x: Any, severity: int = 1) -> Any:
        image = x if type(x).__module__.startswith("PIL.") else np.asarray(x)
        corrupted = _apply(name, image, _level(severity))
        return corrupted if name in _PIL_STAYS_PIL else np.asarray(corrupted)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{corruptions[name].summary}\n\nTakes a uint8 array or a PIL image, grey or RGB."
    return function


gaussian_noise = _function("gaussian_noise")
shot_noise = _function("shot_noise")
impulse_noise = _function("impulse_noise")
defocus_blur = _function("defocus_blur")
glass_blur = _function("glass_blur")
motion_blur = _function("motion_blur")
zoom_blur = _function("zoom_blur")
snow = _function("snow")
frost = _function("frost")
fog = _function("fog")
brightness = _function("brightness")
contrast = _function("contrast")
_elastic_transform = _function("elastic_transform")
pixelate = _function("pixelate")
jpeg_compression = _function("jpeg_compression")
speckle_noise = _function("speckle_noise")
gaussian_blur = _function("gaussian_blur")
spatter = _function("spatter")
saturate = _function("saturate")


def elastic_transform(image: Any, severity: int = 1) -> Any:  # the argument has another name there too
    """Stretch the image as if printed on rubber; see the module on how this differs."""
    return _elastic_transform(image, severity)


corruption_tuple = (
    gaussian_noise,
    shot_noise,
    impulse_noise,
    defocus_blur,
    glass_blur,
    motion_blur,
    zoom_blur,
    snow,
    frost,
    fog,
    brightness,
    contrast,
    elastic_transform,
    pixelate,
    jpeg_compression,
    speckle_noise,
    gaussian_blur,
    spatter,
    saturate,
)
"""The 19 functions, in the order of `get_corruption_names("all")`."""

corruption_dict = {function.__name__: function for function in corruption_tuple}
"""The 19 functions by name."""
