"""The image types at the edge, and the one shape used inside.

Outside, an image is what the caller has: a uint8 NumPy array `(h, w)`, `(h, w, c)` or
`(n, h, w, c)`, a PIL image, or a uint8 torch tensor `(c, h, w)` or `(n, c, h, w)` on any device.
Inside, it is always a C-contiguous uint8 batch `(n, h, w, c)` with one or three channels, an array or,
for a tensor, a tensor on its device; alpha stands aside and is put back untouched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np

# NumPy imports these when they are first used. Where two threads come first at the same time, the second can
# find the module before NumPy has it as an attribute, and looks for it until the recursion is too deep.
import numpy.fft
import numpy.random
from numpy.typing import NDArray

from beaufort._core.errors import ImageTypeError, ImageValueError

if TYPE_CHECKING:
    from torch import Tensor

Array: TypeAlias = NDArray[Any]
"""Numbers in the memory of the processor, whatever the backend."""

Bytes: TypeAlias = NDArray[np.uint8]
"""A batch of images, `(n, h, w, c)`, in main memory."""

Images: TypeAlias = "Bytes | Tensor"
"""A batch of images of the backend at work: `Bytes`, or a uint8 torch tensor `(n, h, w, c)`."""

Field: TypeAlias = "Array | Tensor"
"""A batch of random or computed fields, one an image, an array or a tensor as the images are; shape
and dtype are said where it is made."""

MIN_SIDE = 16
"""The smallest height and width, in pixels, that a corruption takes."""

ACCEPTED = (
    "a uint8 NumPy array (h, w), (h, w, 1|3|4) or (n, h, w, 1|3|4), a uint8 torch tensor (1|3|4, h, w) or "
    "(n, 1|3|4, h, w), or a PIL image of mode L, LA, RGB or RGBA"
)
BATCHES = "a uint8 array (n, h, w, 1 or 3)"
_EITHER = "a uint8 array or tensor (n, h, w, 1 or 3)"
_BYTE = np.dtype(np.uint8)
"""As an object that compares faster with the dtype of an array than the class does."""

TENSORS = "a uint8 tensor (c, h, w) or (n, c, h, w) with 1, 3 or 4 channels"


class CallerImages(NamedTuple):
    """Images in the inside shape, and the way back to what the caller gave."""

    color: Images
    """`(n, h, w, 1 or 3)`, contiguous; may share memory with the caller's array: never written."""
    alpha: Images | None
    restore: Callable[[Images], Any]
    """From the inside shape, alpha included, to the type, device and shape of the caller's image."""

    def close(self, color: Images) -> Any:
        """Give `color` the type, device and shape of the caller's image, and its alpha channel back."""
        if self.alpha is not None:
            color = _join(color, self.alpha)
        return self.restore(color)


def open_images(image: Any) -> CallerImages:
    """Take the caller's image or images as a batch.

    >>> open_images(np.zeros((32, 48), np.uint8)).color.shape
    (1, 32, 48, 1)
    """
    if isinstance(image, np.ndarray):
        return _open_array(image)
    if is_tensor(image):
        return _open_tensor(image)
    if type(image).__module__.partition(".")[0] == "PIL" and hasattr(image, "mode"):
        return _open_pil(image)
    raise ImageTypeError(f"an image must be {ACCEPTED}, got {type(image).__name__}")


def _open_array(image: NDArray[Any]) -> CallerImages:
    if image.dtype != _BYTE:
        hint = " (multiply a [0, 1] image by 255, round and cast)" if image.dtype.kind == "f" else ""
        raise ImageTypeError(f"an array must be {ACCEPTED}, got dtype {image.dtype}{hint}")
    shape = image.shape
    if len(shape) == 2:
        whole = image[None, :, :, None]
    elif len(shape) == 3:
        whole = image[None]
    elif len(shape) == 4:
        whole = image
    else:
        raise ImageValueError(f"an array must be {ACCEPTED}, got shape {shape}")
    _, height, width, channels = whole.shape
    if channels not in (1, 3, 4):
        raise ImageValueError(
            f"an array must be {ACCEPTED}, got shape {shape}, with {channels} channels. A batch "
            "of grey images needs its channel axis: images[..., None]"
        )
    _check_size(height, width)
    return _split(whole, lambda out: out.reshape(shape))


def _open_pil(image: Any) -> CallerImages:
    from PIL import Image

    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        wide = image.mode[0] in "IF"  # Pillow would cut off what is above 255
        advice = "scale its values to 8 bits" if wide else "use image.convert('RGB')"
        raise ImageTypeError(f"a PIL image must have the mode L, LA, RGB or RGBA, got {image.mode}; {advice}")
    pixels = np.asarray(image)
    whole = pixels[None, :, :, None] if pixels.ndim == 2 else pixels[None]
    _check_size(whole.shape[1], whole.shape[2])
    return _split(whole, lambda out: Image.fromarray(np.asarray(out).reshape(pixels.shape)))


def is_tensor(image: Any) -> TypeGuard[Tensor]:
    """Whether it is a torch tensor; nobody can have one without having imported torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(image, torch.Tensor)


def is_float(image: Any) -> bool:
    """Whether it is an array or a tensor of floats."""
    if is_tensor(image):
        return image.is_floating_point()
    return isinstance(image, np.ndarray) and image.dtype.kind == "f"


def to_levels(image: Any) -> Any:
    """Values from 0 to 1 as the nearest of 256 levels, uint8, halves to the even one; of a tensor, a tensor.

    >>> to_levels(np.array([0, 0.5, 1]))
    array([  0, 128, 255], dtype=uint8)
    """
    image = image.detach() if is_tensor(image) else image
    some = image.numel() if is_tensor(image) else image.size
    low, high = (float(image.min()), float(image.max())) if some else (0.0, 1.0)
    if not 0 <= low <= high <= 1:  # also if there is a NaN
        raise ImageValueError(
            f"an image of floats must have values from 0 to 1, got {low:g} to {high:g}; corrupt before "
            "normalizing"
        )
    if is_tensor(image):
        torch = sys.modules["torch"]
        wide = image.float() if image.dtype in (torch.float16, torch.bfloat16) else image
        return (wide * 255).round().to(torch.uint8)
    wide = image.astype(np.float32) if image.dtype == np.float16 else image  # 255 times needs eight bits more
    return np.rint(wide * 255).astype(np.uint8)


def put_changed(image: Any, levels: Any, made: Any) -> Any:
    """An image of floats with the levels that a corruption changed, over 255; the others keep all digits."""
    if is_tensor(image):
        where = sys.modules["torch"].where
        changed: Any = where(made != levels, made.to(image.dtype) / 255, image)
        return changed.as_subclass(type(image))
    return np.where(made != levels, made.astype(image.dtype) / np.asarray(255, image.dtype), image)


def on_host(images: Images) -> Bytes:
    """The images in the memory of the processor."""
    return images if isinstance(images, np.ndarray) else images.cpu().numpy()


def _open_tensor(image: Any) -> CallerImages:
    torch = sys.modules["torch"]
    if image.dtype != torch.uint8:
        raise ImageTypeError(
            f"a tensor must be {TENSORS}, got dtype {image.dtype}; corrupt before scaling and normalizing, "
            "or convert values in [0, 1] with (image * 255).round().to(torch.uint8)"
        )
    shape = tuple(image.shape)
    if image.ndim not in (3, 4) or shape[-3] not in (1, 3, 4):
        hint = (
            "; image.movedim(-1, -3) puts the channels there" if image.ndim and shape[-1] in (1, 3, 4) else ""
        )
        raise ImageValueError(f"a tensor must be {TENSORS}, got shape {shape}{hint}")
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
            f"an image must be at least {MIN_SIDE}×{MIN_SIDE} pixels, got {height}×{width}; enlarge it first"
        )


def checked_batch(images: Any, because: str) -> Bytes:
    """The images, if they are a batch in bytes; the error for other types says why they are not taken."""
    if not isinstance(images, np.ndarray):
        raise ImageTypeError(f"images must be {BATCHES}, got {type(images).__name__}")
    if images.dtype != np.uint8:
        raise ImageTypeError(f"images must be {BATCHES}, got dtype {images.dtype}; {because}")
    if images.ndim != 4 or images.shape[-1] not in (1, 3) or 0 in images.shape[1:3]:
        raise ImageValueError(f"images must be {BATCHES}, got shape {images.shape}")
    return images


def checked_pixels(images: Any, because: str) -> Images:
    """The same of a tensor, too, as it lies; an array is contiguous."""
    if not is_tensor(images):
        return np.ascontiguousarray(checked_batch(images, because))
    if images.dtype != sys.modules["torch"].uint8:
        raise ImageTypeError(f"images must be {_EITHER}, got dtype {images.dtype}; {because}")
    if images.ndim != 4 or images.shape[-1] not in (1, 3):
        raise ImageValueError(f"images must be {_EITHER}, got shape {tuple(images.shape)}")
    return images
