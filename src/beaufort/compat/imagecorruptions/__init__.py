"""The interface of the package `imagecorruptions` 1.1: change the import, keep the code.

```python
from beaufort.compat.imagecorruptions import corrupt, get_corruption_names
```

Names, order, signatures, defaults, accepted images and error types are those of that package: it accepts
uint8 arrays `(h, w)`, `(h, w, 1)` or `(h, w, 3)` of at least 32×32 pixels, returns three channels, and uses
the constants for 224×224 pixels at any size. The submodule `corruptions` has one function per corruption.
Programs that import the package by name can use this one instead:

```python
import sys

import beaufort.compat.imagecorruptions

sys.modules["imagecorruptions"] = beaufort.compat.imagecorruptions
```

Differences:

* **Pixels** are those of the published ImageNet-C. The package uses another algorithm for `elastic_transform`
  (without the affine part), enlarges the textures of `frost` before cropping, and blurs the flakes of `snow`
  before trimming. `motion_blur`, `fog` and `spatter` differ by rounding.
* **Randomness.** Each random corruption draws one number from NumPy's global generator and derives all others
  from it. `np.random.seed` therefore makes all corruptions repeatable, also `impulse_noise` and `glass_blur`,
  but the random numbers are not those of the package.
* **Functions of single corruptions** return uint8 instead of floating-point values. `pixelate` and
  `jpeg_compression` return a PIL image for a PIL image. Images must have at least 16×16 pixels.

New code should use `beaufort.corrupt`, whose result depends only on the image and a seed.
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
"""The smallest height and width, in pixels, that `corrupt` accepts."""

_SUBSETS = ("common", "validation", "all", "noise", "blur", "weather", "digital")


class NumberError(BeaufortError, IndexError):
    """An invalid number of a corruption."""


def corrupt(
    image: Bytes, severity: int = 1, corruption_name: str | None = None, corruption_number: int = -1
) -> Bytes:
    """Return the image with one corruption applied, `(h, w, 3)`.

    Args:
        image: a uint8 array `(h, w)`, `(h, w, 1)` or `(h, w, 3)`, both sides at least 32.
        severity: 1 to 5.
        corruption_name: one of `get_corruption_names("all")`.
        corruption_number: position in that list, 0 to 18, instead of a name.

    >>> corrupt(np.full((32, 32), 100, np.uint8), 2, "brightness")[0, 0]
    array([151, 151, 151], dtype=uint8)
    """
    color = _three_channels(image)
    level = validate_severity(severity)
    corrupted: Bytes = apply(_name(corruption_name, corruption_number), color, level)
    return corrupted


def get_corruption_names(subset: str = "common") -> list[str]:
    """Return the names of a list of corruptions, in its order.

    `common` (15), `validation` (4), `all` (19), `noise`, `blur`, `weather` or `digital`.

    >>> get_corruption_names("validation")
    ['speckle_noise', 'gaussian_blur', 'spatter', 'saturate']
    """
    if subset not in _SUBSETS:  # a ValueError, as in the package
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
            f"image must have at least {MIN_SIDE}×{MIN_SIDE} pixels, got {image.shape[0]}×{image.shape[1]}; "
            "enlarge it first"
        )
    color = image.reshape(*image.shape[:2], -1)
    return np.ascontiguousarray(np.broadcast_to(color, (*image.shape[:2], 3)))


def _name(name: str | None, number: int) -> str:
    names = SUBSETS["all"]
    if name is not None:
        return validate_choice("corruption", name, names)
    if number == -1:
        raise OptionError(
            f"pass corruption_name, or corruption_number from 0 ({names[0]}) to {len(names) - 1} "
            f"({names[-1]})"
        )
    try:
        return names[operator.index(number)]
    except IndexError:
        raise NumberError(f"corruption_number must be from 0 to {len(names) - 1}, got {number}") from None
