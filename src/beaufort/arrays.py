"""The image types at the edge, and the one shape used inside.

Outside, an image is what the caller has: a uint8 NumPy array `(h, w)`, `(h, w, c)` or
`(n, h, w, c)`, or a PIL image. Inside, it is always a C-contiguous uint8 batch `(n, h, w, c)` with
one or three channels; alpha stands aside and is put back untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from beaufort.errors import ImageTypeError, ImageValueError

__all__ = ["MIN_SIDE", "Batch", "Bytes", "Field", "open_batch"]

Bytes: TypeAlias = NDArray[np.uint8]
"""A batch of images, `(n, h, w, c)`."""

Field: TypeAlias = NDArray[Any]
"""A batch of random or computed fields, one an image; shape and dtype are said where it is made."""

MIN_SIDE = 16
"""The smallest height and width, in pixels, that a corruption takes."""

ACCEPTED = (
    "a uint8 NumPy array (h, w), (h, w, 1|3|4) or (n, h, w, 1|3|4), or a PIL image of mode L, LA, RGB or RGBA"
)


@dataclass(frozen=True)
class Batch:
    """Images in the inside shape, and the way back to what the caller gave."""

    color: Bytes
    """`(n, h, w, 1 or 3)`, contiguous; may share memory with the caller's array: never written."""
    alpha: Bytes | None
    _restore: Callable[[Bytes], Any]

    def close(self, color: Bytes) -> Any:
        """Give `color` the kind and shape the caller came with, and its alpha back."""
        if self.alpha is not None:
            color = np.concatenate([color, self.alpha], axis=-1)
        return self._restore(color)


def open_batch(image: Any) -> Batch:
    """Look at whatever the caller has as a batch.

    >>> open_batch(np.zeros((32, 48), np.uint8)).color.shape
    (1, 32, 48, 1)
    """
    if isinstance(image, np.ndarray):
        return _open_array(image)
    if type(image).__module__.partition(".")[0] == "PIL" and hasattr(image, "mode"):
        return _open_pil(image)
    raise ImageTypeError(f"an image of type {type(image).__name__} came; accepted is {ACCEPTED}")


def _open_array(image: NDArray[Any]) -> Batch:
    if image.dtype != np.uint8:
        hint = " (multiply a [0, 1] image by 255, round and cast)" if image.dtype.kind == "f" else ""
        raise ImageTypeError(f"an array of dtype {image.dtype} came; accepted is {ACCEPTED}{hint}")
    shape = image.shape
    if image.ndim == 2:
        whole = image[None, :, :, None]
    elif image.ndim == 3:
        whole = image[None]
    elif image.ndim == 4:
        whole = image
    else:
        raise ImageValueError(f"an array of shape {shape} came; accepted is {ACCEPTED}")
    if whole.shape[-1] not in (1, 3, 4):
        raise ImageValueError(
            f"an array of shape {shape} came, with {whole.shape[-1]} channels; accepted is {ACCEPTED}. "
            "A batch of grey images needs its channel axis: images[..., None]"
        )
    _check_size(whole.shape[1], whole.shape[2])
    return _split(whole, lambda out: out.reshape(shape))


def _open_pil(image: Any) -> Batch:
    from PIL import Image

    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        raise ImageTypeError(
            f"a PIL image of mode {image.mode} came; accepted are L, LA, RGB and RGBA: "
            "image.convert('RGB') makes one"
        )
    pixels = np.asarray(image)
    whole = pixels[None, :, :, None] if pixels.ndim == 2 else pixels[None]
    _check_size(whole.shape[1], whole.shape[2])
    return _split(whole, lambda out: Image.fromarray(out.reshape(pixels.shape)))


def _split(whole: Bytes, restore: Callable[[Bytes], Any]) -> Batch:
    channels = whole.shape[-1]
    if channels in (1, 3):
        return Batch(np.ascontiguousarray(whole), None, restore)
    return Batch(np.ascontiguousarray(whole[..., :-1]), whole[..., -1:], restore)


def _check_size(height: int, width: int) -> None:
    if min(height, width) < MIN_SIDE:
        raise ImageValueError(
            f"an image of {height}×{width} pixels came; both sides must have at least {MIN_SIDE}: "
            "enlarge it first"
        )
