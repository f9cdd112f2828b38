"""Conversion between the image types that callers pass and the batches used internally.

A caller passes a uint8 NumPy array `(h, w)`, `(h, w, c)` or `(n, h, w, c)`, a PIL image, or a uint8 torch
tensor `(c, h, w)` or `(n, c, h, w)` on any device. Internally, images are a C-contiguous uint8 batch
`(n, h, w, c)` with one or three channels: an array or, for a tensor, a tensor on the same device. The alpha
channel is kept separately and restored unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np

# NumPy imports these on first use. If two threads do so at the same time, one of them can recurse too deeply.
import numpy.fft
import numpy.random
from numpy.typing import NDArray

from beaufort._core.errors import ImageTypeError, ImageValueError

if TYPE_CHECKING:
    from torch import Tensor

Array: TypeAlias = NDArray[Any]
"""Numbers in main memory, whatever the backend."""

Bytes: TypeAlias = NDArray[np.uint8]
"""A batch of images, `(n, h, w, c)`, in main memory."""

Images: TypeAlias = "Bytes | Tensor"
"""A batch of images of either backend: `Bytes`, or a uint8 torch tensor `(n, h, w, c)`."""

Field: TypeAlias = "Array | Tensor"
"""A batch of random or computed fields, one per image; an array or a tensor like the images."""

MIN_SIDE = 16
"""The smallest height and width, in pixels, that a corruption accepts."""

ACCEPTED = (
    "a uint8 NumPy array (h, w), (h, w, 1|3|4) or (n, h, w, 1|3|4), a uint8 torch tensor (1|3|4, h, w) or "
    "(n, 1|3|4, h, w), or a PIL image of mode L, LA, RGB or RGBA"
)
BATCHES = "a uint8 array (n, h, w, 1 or 3)"
_EITHER = "a uint8 array or tensor (n, h, w, 1 or 3)"
_BYTE = np.dtype(np.uint8)  # compares faster with the dtype of an array than the class does
TENSORS = "a uint8 tensor (c, h, w) or (n, c, h, w) with 1, 3 or 4 channels"


class CallerImages(NamedTuple):
    """A batch of images, and how to convert it back to what the caller passed."""

    color: Images
    """`(n, h, w, 1 or 3)`, contiguous; may share memory with the caller's array, so it is never written."""
    alpha: Images | None
    restore: Callable[[Images], Any]
    """Convert a batch, including alpha, to the type, device and shape of the caller's image."""

    def close(self, color: Images) -> Any:
        """Return `color` with the type, device, shape and alpha channel of the caller's image."""
        if self.alpha is not None:
            color = _join(color, self.alpha)
        return self.restore(color)


def as_batch(image: Any) -> CallerImages:
    """Return the caller's image or images as a batch.

    >>> as_batch(np.zeros((32, 48), np.uint8)).color.shape
    (1, 32, 48, 1)
    """
    if isinstance(image, np.ndarray):
        return _open_array(image)
    if is_tensor(image):
        return _open_tensor(image)
    if type(image).__module__.partition(".")[0] == "PIL" and hasattr(image, "mode"):
        return _open_pil(image)
    raise ImageTypeError(f"images must be {ACCEPTED}, got {type(image).__name__}")


def _open_array(image: NDArray[Any]) -> CallerImages:
    if image.dtype != _BYTE:
        hint = " (multiply a [0, 1] image by 255, round and cast)" if image.dtype.kind == "f" else ""
        raise ImageTypeError(f"images must be {ACCEPTED}, got dtype {image.dtype}{hint}")
    shape = image.shape
    if len(shape) == 2:
        whole = image[None, :, :, None]
    elif len(shape) == 3:
        whole = image[None]
    elif len(shape) == 4:
        whole = image
    else:
        raise ImageValueError(f"images must be {ACCEPTED}, got shape {shape}")
    _, height, width, channels = whole.shape
    if channels not in (1, 3, 4):
        raise ImageValueError(
            f"images must be {ACCEPTED}, got shape {shape} with {channels} channels. A batch "
            "of grayscale images needs its channel axis: images[..., None]"
        )
    _check_size(height, width)
    return _split(whole, lambda out: out.reshape(shape))


def _open_pil(image: Any) -> CallerImages:
    from PIL import Image

    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        wide = image.mode[0] in "IF"  # Pillow would clip values above 255
        advice = "scale its values to 8 bits" if wide else "use image.convert('RGB')"
        raise ImageTypeError(f"PIL images must have mode L, LA, RGB or RGBA, got {image.mode}; {advice}")
    pixels = np.asarray(image)
    whole = pixels[None, :, :, None] if pixels.ndim == 2 else pixels[None]
    _check_size(whole.shape[1], whole.shape[2])
    return _split(whole, lambda out: Image.fromarray(np.asarray(out).reshape(pixels.shape)))


def is_tensor(image: Any) -> TypeGuard[Tensor]:
    """Return whether `image` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(image, torch.Tensor)


def is_float(image: Any) -> bool:
    """Return whether `image` is an array or a tensor of floats."""
    if is_tensor(image):
        return image.is_floating_point()
    return isinstance(image, np.ndarray) and image.dtype.kind == "f"


def to_levels(image: Any) -> Any:
    """Return values from 0 to 1 as uint8 levels, rounding halves to even; a tensor stays a tensor.

    >>> to_levels(np.array([0, 0.5, 1]))
    array([  0, 128, 255], dtype=uint8)
    """
    image = image.detach() if is_tensor(image) else image
    some = image.numel() if is_tensor(image) else image.size
    low, high = (float(image.min()), float(image.max())) if some else (0.0, 1.0)
    if not 0 <= low <= high <= 1:  # also if there is a NaN
        raise ImageValueError(
            f"values of float images must be 0 to 1, got {low:g} to {high:g}; corrupt before normalizing"
        )
    if is_tensor(image):
        torch = sys.modules["torch"]
        wide = image.float() if image.dtype in (torch.float16, torch.bfloat16) else image
        return (wide * 255).round().to(torch.uint8)
    wide = image.astype(np.float32) if image.dtype == np.float16 else image  # 255 times needs eight bits more
    return np.rint(wide * 255).astype(np.uint8)


def put_changed(image: Any, levels: Any, made: Any) -> Any:
    """Return a float image with the levels that a corruption changed; others keep all digits."""
    if is_tensor(image):
        where = sys.modules["torch"].where
        changed: Any = where(made != levels, made.to(image.dtype) / 255, image)
        return changed.as_subclass(type(image))
    return np.where(made != levels, made.astype(image.dtype) / np.asarray(255, image.dtype), image)


def read_only(images: Bytes) -> Bytes:
    """Return a read-only view; Numba compiles kernels separately for writable and read-only arrays."""
    view = images.view()
    view.flags.writeable = False
    return view


def on_host(images: Images) -> Bytes:
    """Return the images in main memory."""
    return images if isinstance(images, np.ndarray) else images.cpu().numpy()


def _open_tensor(image: Any) -> CallerImages:
    torch = sys.modules["torch"]
    if image.dtype != torch.uint8:
        raise ImageTypeError(
            f"image tensors must be {TENSORS}, got dtype {image.dtype}; corrupt before normalizing, or "
            "convert values in [0, 1] with (image * 255).round().to(torch.uint8)"
        )
    shape = tuple(image.shape)
    if image.ndim not in (3, 4) or shape[-3] not in (1, 3, 4):
        hint = (
            "; image.movedim(-1, -3) puts the channels there" if image.ndim and shape[-1] in (1, 3, 4) else ""
        )
        raise ImageValueError(f"image tensors must be {TENSORS}, got shape {shape}{hint}")
    _check_size(*shape[-2:])
    whole = image.detach().as_subclass(torch.Tensor).movedim(-3, -1)

    def restore(out: Images) -> Any:
        tensor = torch.from_numpy(out).to(image.device) if isinstance(out, np.ndarray) else out
        tensor = tensor.reshape(whole.shape).movedim(-1, -3)
        return (tensor.contiguous() if image.is_contiguous() else tensor).as_subclass(type(image))

    return _split(whole if image.ndim == 4 else whole[None], restore)


def _split(whole: Images, restore: Callable[[Images], Any]) -> CallerImages:
    channels = whole.shape[-1]
    if channels in (1, 3):
        return CallerImages(_contiguous(whole), None, restore)
    return CallerImages(_contiguous(whole[..., :-1]), whole[..., -1:], restore)


def _contiguous(images: Images) -> Images:
    return np.ascontiguousarray(images) if isinstance(images, np.ndarray) else images.contiguous()


def _join(color: Images, alpha: Images) -> Images:
    if isinstance(alpha, np.ndarray):
        return np.concatenate([color, alpha], axis=-1)
    torch = sys.modules["torch"]
    if isinstance(color, np.ndarray):
        color = torch.from_numpy(color).to(alpha.device)
    joined: Tensor = torch.cat([color, alpha], dim=-1)
    return joined


def _check_size(height: int, width: int) -> None:
    if height < MIN_SIDE or width < MIN_SIDE:
        raise ImageValueError(
            f"images must be at least {MIN_SIDE}×{MIN_SIDE} pixels, got {height}×{width}; enlarge them first"
        )


def checked_batch(images: Any, because: str) -> Bytes:
    """Return `images` if they are a uint8 batch; `because` ends the message for other dtypes."""
    if not isinstance(images, np.ndarray):
        raise ImageTypeError(f"images must be {BATCHES}, got {type(images).__name__}")
    if images.dtype != np.uint8:
        raise ImageTypeError(f"images must be {BATCHES}, got dtype {images.dtype}; {because}")
    if images.ndim != 4 or images.shape[-1] not in (1, 3) or 0 in images.shape[1:3]:
        raise ImageValueError(f"images must be {BATCHES}, got shape {images.shape}")
    return images


def checked_pixels(images: Any, because: str) -> Images:
    """Return a contiguous array or a tensor after the same check."""
    if not is_tensor(images):
        return np.ascontiguousarray(checked_batch(images, because))
    if images.dtype != sys.modules["torch"].uint8:
        raise ImageTypeError(f"images must be {_EITHER}, got dtype {images.dtype}; {because}")
    if images.ndim != 4 or images.shape[-1] not in (1, 3):
        raise ImageValueError(f"images must be {_EITHER}, got shape {tuple(images.shape)}")
    return images
