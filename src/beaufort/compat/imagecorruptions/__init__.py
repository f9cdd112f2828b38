"""The interface of the package `imagecorruptions` 1.1: change the import, keep the code.

```python
from beaufort.compat.imagecorruptions import corrupt, get_corruption_names
```

Names, order, signatures, defaults, accepted images and the types of errors are that package's: uint8
arrays `(h, w)`, `(h, w, 1)` or `(h, w, 3)` of at least 32×32 pixels come in, three channels go out, and
the constants are those of 224×224 images at any size. Its submodule `corruptions`, one function a corruption,
is here too, so that a program that imports it by name can be given this package in its place:

```python
import sys

import beaufort.compat.imagecorruptions

sys.modules["imagecorruptions"] = beaufort.compat.imagecorruptions
```

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
from typing import Any

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_choice
from beaufort.compat.imagecorruptions import corruptions
from beaufort.compat.imagecorruptions.corruptions import (
    NotAcceptedError,
    apply,
    brightness,
    contrast,
    corruption_dict,
    corruption_tuple,
    defocus_blur,
    elastic_transform,
    fog,
    frost,
    gaussian_blur,
    gaussian_noise,
    glass_blur,
    impulse_noise,
    jpeg_compression,
    motion_blur,
    pixelate,
    saturate,
    shot_noise,
    snow,
    spatter,
    speckle_noise,
    validate_severity,
    zoom_blur,
)
from beaufort.corruptions import SUBSETS

__all__ = [
    "NotAcceptedError",
    "NumberError",
    "brightness",
    "contrast",
    "corrupt",
    "corruption_dict",
    "corruption_tuple",
    "corruptions",
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

_SUBSETS = ("common", "validation", "all", "noise", "blur", "weather", "digital")


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
    level = validate_severity(severity)
    corrupted: Bytes = apply(_name(corruption_name, corruption_number), color, level)
    return corrupted


def get_corruption_names(subset: str = "common") -> list[str]:
    """The names of a list, in its order.

    `common` (15), `validation` (4), `all` (19), `noise`, `blur`, `weather` or `digital`.

    >>> get_corruption_names("validation")
    ['speckle_noise', 'gaussian_blur', 'spatter', 'saturate']
    """
    if subset not in _SUBSETS:  # a ValueError, as there
        raise OptionError(unknown_message("subset", subset, _SUBSETS))
    return list(SUBSETS[subset])


def _three_channels(image: Any) -> Bytes:
    if not isinstance(image, np.ndarray):
        raise NotAcceptedError(
            f"image must be a NumPy array, got {type(image).__name__}; use np.asarray(image)"
        )
    if image.dtype != np.uint8:
        raise NotAcceptedError(f"image must have dtype uint8, from 0 to 255, got {image.dtype}")
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
        raise NotAcceptedError(f"image must have shape (h, w), (h, w, 1) or (h, w, 3), got {image.shape}")
    if min(image.shape[:2]) < MIN_SIDE:
        raise NotAcceptedError(
            f"both sides of an image must be at least {MIN_SIDE} pixels, got "
            f"{image.shape[0]}×{image.shape[1]}; enlarge it first"
        )
    color = image.reshape(*image.shape[:2], -1)
    return np.ascontiguousarray(np.broadcast_to(color, (*image.shape[:2], 3)))


def _name(name: str | None, number: int) -> str:
    names = SUBSETS["all"]
    if name is not None:
        return validate_choice("corruption", name, names)
    if number == -1:
        raise OptionError(
            f"corruption_name or corruption_number must be given: a name, or a number from 0 ({names[0]}) "
            f"to {len(names) - 1} ({names[-1]})"
        )
    try:
        return names[operator.index(number)]
    except IndexError:
        raise NumberError(f"corruption_number must be from 0 to {len(names) - 1}, got {number}") from None
