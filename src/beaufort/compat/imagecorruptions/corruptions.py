"""The 19 functions of `imagecorruptions.corruptions`, one per corruption."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from beaufort._core.errors import BeaufortError
from beaufort.corruptions import SEVERITIES, SUBSETS
from beaufort.corruptions import corruptions as registry

_PIL_STAYS_PIL = ("pixelate", "jpeg_compression")


class NotAcceptedError(BeaufortError, AttributeError):
    """An invalid image or severity; `imagecorruptions` raises an AttributeError."""


def validate_severity(severity: int) -> int:
    """Return the severity; raise an error if it is invalid."""
    if severity not in SEVERITIES:
        raise NotAcceptedError(f"severity must be an integer from 1 to 5, got {severity!r}")
    return operator.index(severity)


def apply(name: str, image: Any, severity: int) -> Any:
    """Corrupt an image with an id drawn from the global generator."""
    corruption = registry[name]
    ids = None
    if corruption.recipes["imagenet"].draw is not None:
        ids = [int(np.random.randint(2**63, dtype=np.uint64))]  # noqa: NPY002  the interface uses this generator
    return corruption(image, severity, ids=ids, scale="imagenet")


def _function(name: str) -> Callable[..., Any]:
    """Return a corruption as a function."""

    def function(x: Any, severity: int = 1) -> Any:
        image = x if type(x).__module__.startswith("PIL.") else np.asarray(x)
        corrupted = apply(name, image, validate_severity(severity))
        return corrupted if name in _PIL_STAYS_PIL else np.asarray(corrupted)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{registry[name].summary}\n\nAccepts a uint8 array or a PIL image, grayscale or RGB."
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


def elastic_transform(
    image: Any, severity: int = 1
) -> Any:  # this argument is called `image` in the package, too
    """Stretch the image; the docstring of the package describes the difference."""
    return _elastic_transform(image, severity)


corruption_tuple: tuple[Callable[..., Any], ...] = tuple(globals()[name] for name in SUBSETS["all"])
"""The 19 functions, in the order of `get_corruption_names("all")`."""

corruption_dict = {function.__name__: function for function in corruption_tuple}
"""The 19 functions by name."""
