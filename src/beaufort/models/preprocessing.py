"""Preprocessing of 8-bit images for a network, as data.

All adapters share this implementation, so that models of different libraries see the same images.
Resizing is that of Pillow, which torchvision, timm and open_clip use for evaluation: the results are those of
version 13, whichever is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, checked_batch
from beaufort._core.errors import ImageValueError, OptionError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_number

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_CHOICES: dict[str, tuple[Any, ...]] = {
    "interpolation": ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"),
    "value_range": ("0..1", "0..255"),
    "layout": ("NCHW", "NHWC"),
    "order": ("RGB", "BGR"),
    "dtype": ("float32", "float16", "uint8"),
    "channels": (1, 3),
}
LUMA = (19595, 38470, 7471)
"""Weights of red, green and blue in a gray value, as in Pillow, in 1/65536."""


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Preprocessing of images for a network.

    Images of the input size are neither resized nor cropped. Others are resized, and the center is cropped.
    Then values are scaled to the range, `mean` is subtracted and the result divided by `std`, per channel and
    in units of the range.

    >>> print(Preprocessing(size=(224, 224), resize=256, mean=(0.5, 0.5, 0.5)))
    short side 256 bilinear, center 224×224, RGB 0..1, minus 0.5 0.5 0.5, NCHW float32
    """

    size: tuple[int, int] | None = None
    """Height and width of the network's input, in pixels; None accepts any size."""
    resize: int | tuple[int, int] | None = None
    """Short side, or height and width, before the center crop; None never resizes."""
    interpolation: str = "bilinear"
    channels: int = 3
    """1 or 3. Gray images are repeated for 3; color is converted to luma, as in Pillow, for 1."""
    value_range: str = "0..1"
    """Range that 0…255 is mapped to: `0..1` or `0..255`."""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    layout: str = "NCHW"
    order: str = "RGB"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("size", "resize", "mean", "std"):
            if isinstance(value := getattr(self, name), list | np.ndarray):
                object.__setattr__(self, name, tuple(value))
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise OptionError(f"{name} must be one of {', '.join(map(str, choices))}, got {value!r:.60}")
        for name, shape in (("size", (2,)), ("resize", (1, 2))):
            value = getattr(self, name)
            sides = value if isinstance(value, tuple) else (value,)
            pixels = all(isinstance(side, int) and 0 < side <= 16384 for side in sides)
            if value is not None and not (pixels and len(sides) in shape):
                raise OptionError(f"{name} must be in pixels, such as 224 or (224, 320), got {value!r:.60}")
        if self.resize is not None and not self._covers_input():
            raise OptionError(f"resize must be at least the input size {self.size}, got {self.resize}")
        for name in ("mean", "std"):
            values = tuple(validate_number(name, value) for value in getattr(self, name))
            if len(values) not in (0, self.channels):
                raise OptionError(f"{name} must have {self.channels} values, one per channel, got {values}")
            object.__setattr__(self, name, values)
        if min(self.std, default=1) <= 0:
            raise OptionError(f"std must be positive, got {self.std}")
        if self.dtype == "uint8" and (self.mean or self.std or self.value_range != "0..255"):
            raise OptionError("dtype uint8 requires value_range 0..255 without mean and std")

    def _covers_input(self) -> bool:
        if self.size is None or self.resize is None:
            return False
        if isinstance(self.resize, tuple):
            return self.resize[0] >= self.size[0] and self.resize[1] >= self.size[1]
        return self.resize >= min(self.size)

    @property
    def stretches(self) -> bool:
        """Whether images are resized to a height and width, without keeping the aspect ratio."""
        return isinstance(self.resize, tuple)

    def at_size(self, size: tuple[int, int] | None) -> Preprocessing:
        """Return the preprocessing for another input size, to which images are resized.

        Images are stretched to it if they were before, or if it is not square; otherwise the short side is
        resized, and the center is cropped.

        >>> Preprocessing(size=(224, 224), resize=256).at_size((384, 384)).resize
        384
        >>> Preprocessing(size=(32, 32), resize=(32, 32)).at_size((48, 48)).resize
        (48, 48)
        """
        square = size is not None and len(set(size)) == 1
        resize = size[0] if size is not None and square and not self.stretches else size
        return replace(self, size=size, resize=resize)

    def apply(self, images: Bytes) -> NDArray[Any]:
        """Return the network's input for a uint8 batch `(n, h, w, c)`, which is not modified."""
        images = self.fit(images)
        first = self.layout == "NCHW"
        if self.dtype == "uint8":
            images = images[..., ::-1] if self.order == "BGR" else images
            return np.array(images.transpose(0, 3, 1, 2) if first else images, order="C")
        from beaufort.models._scaling_cpu import look_up_first, look_up_last

        n, height, width, channels = images.shape
        out = np.empty((n, channels, height, width) if first else images.shape, np.float32)
        places = np.arange(channels)[:: -1 if self.order == "BGR" else 1].copy()
        look_up = look_up_first if first else look_up_last
        look_up(np.ascontiguousarray(images), self.tables(), places, out)
        return out if self.dtype == "float32" else out.astype(self.dtype)

    def fit(self, images: Bytes) -> Bytes:
        """Return the images with the network's size and channels, still uint8 `(n, h, w, c)`."""
        images = _with_channels(checked_batch(images, "a model scales the values itself"), self.channels)
        height, width = images.shape[1:3]
        if self.size is None or (height, width) == self.size:
            return images
        if self.resize is None:
            raise ImageValueError(
                f"images must have {self.size[0]}×{self.size[1]} pixels, as the model does not resize, got "
                f"{height}×{width}; resize them first, or load the model with resize={min(self.size)}"
            )
        if len(images) == 0:
            return np.empty((0, *self.size, images.shape[-1]), np.uint8)
        return np.stack([self._resized_center(image) for image in images])

    def _resized_center(self, image: Bytes) -> Bytes:
        """Return the center of the resized image; half pixels are rounded to even, as in torchvision."""
        from beaufort.data.images import Box, crop_box, resize_crop, short_side_size

        assert self.size is not None
        assert self.resize is not None
        if isinstance(self.resize, tuple):
            height, width = self.resize
        else:  # the long side is rounded down, as in torchvision
            width, height = short_side_size(image.shape[1], image.shape[0], self.resize)
        top, left = round((height - self.size[0]) / 2), round((width - self.size[1]) / 2)
        if top < 0 or left < 0:
            raise ImageValueError(
                f"an image of {image.shape[0]}×{image.shape[1]} pixels is resized to {height}×{width}, less "
                f"than the input size {self.size[0]}×{self.size[1]}; resize to a height and width instead"
            )
        box = Box(left, top, left + self.size[1], top + self.size[0])
        if self.interpolation == "bilinear":
            return resize_crop(image, (width, height), box)
        return crop_box(_resize_with_pillow(image, (width, height), self.interpolation), box)

    def tables(self) -> NDArray[np.float32]:
        """Return the network's input for each level, `(channels, 256)`."""
        tables = np.tile(np.arange(256, dtype=np.float32), (self.channels, 1))
        if self.value_range == "0..1":
            tables /= np.float32(255)
        if self.mean:
            tables -= np.array(self.mean, np.float32)[:, None]
        if self.std:
            tables /= np.array(self.std, np.float32)[:, None]
        return tables

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preprocessing:
        """Return the preprocessing of a `to_dict`."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise OptionError(unknown_message("preprocessing field", name, known))
        return cls(**values)

    def __str__(self) -> str:
        return self.described()

    def described(self, *filters: str) -> str:
        """Return a description, with filters applied between resizing and scaling."""
        parts = []
        if isinstance(self.resize, tuple):
            parts.append(f"{self.resize[0]}×{self.resize[1]} {self.interpolation}")
        elif self.resize is not None:
            parts.append(f"short side {self.resize} {self.interpolation}")
        if self.size is not None:
            parts.append(f"center {self.size[0]}×{self.size[1]}")
        parts += [*filters, f"{self.order if self.channels == 3 else 'gray'} {self.value_range}"]
        for word, values in (("minus", self.mean), ("over", self.std)):
            if values:
                parts.append(f"{word} {' '.join(f'{value:.6g}' for value in values)}")
        return ", ".join([*parts, f"{self.layout} {self.dtype}"])


def _with_channels(images: Bytes, channels: int) -> Bytes:
    if images.shape[-1] == channels:
        return images
    if channels == 3:
        return np.broadcast_to(images, (*images.shape[:3], 3))
    luma = (images @ np.array(LUMA, np.uint32) + np.uint32(0x8000)) >> np.uint32(16)
    return luma.astype(np.uint8)[..., None]


def _resize_with_pillow(image: Bytes, size: tuple[int, int], interpolation: str) -> Bytes:
    """Resize an image `(h, w, c)` along one axis, then along the other.

    The order in which Pillow takes the axes depends on its version, and each step is rounded to 8 bits: for
    noise, a quarter of the values would differ, by up to 20 levels where a filter has negative weights.
    """
    from PIL import Image

    from beaufort.data.images import columns_first

    resized = Image.fromarray(np.ascontiguousarray(image[..., 0] if image.shape[-1] == 1 else image))
    first = (resized.width, size[1]) if columns_first(image.shape[:2], size) else (size[0], resized.height)
    for step in (first, size):
        resized = resized.resize(step, Image.Resampling[interpolation.upper()])
    return np.asarray(resized).reshape(size[1], size[0], -1)
