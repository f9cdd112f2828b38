"""From 8-bit images to what a network was trained on, as data.

One implementation serves every adapter, so that clean and shifted images, and models of different
libraries, go the same way. Resizing is Pillow's, with which torchvision, timm and open_clip evaluate: that of
version 13, whichever is installed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, checked_batch
from beaufort._core.errors import ImageValueError, OptionError
from beaufort._core.registry import unknown_message

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_CHOICES = {
    "interpolation": ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"),
    "value_range": ("0..1", "0..255"),
    "layout": ("NCHW", "NHWC"),
    "order": ("RGB", "BGR"),
    "dtype": ("float32", "float16", "uint8"),
}
LUMA = (19595, 38470, 7471)
"""Of red, green and blue in a grey value, as Pillow weighs them, in 1/65536."""


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """What happens to images before a network sees them.

    Images that already have the input size are neither resized nor cropped. Others are resized, and the
    middle is cut out. Then values are scaled to the range, `mean` is subtracted and the rest divided by
    `std`, channel by channel, both in units of the range.

    >>> print(Preprocessing(size=(224, 224), resize=256, mean=(0.5, 0.5, 0.5)))
    short side 256 bilinear, middle 224×224, RGB 0..1, minus 0.5 0.5 0.5, NCHW float32
    """

    size: tuple[int, int] | None = None
    """Height and width of the network's input, in pixels; None takes images as large as they come."""
    resize: int | tuple[int, int] | None = None
    """Short side, or height and width, before the middle is cut out; None never resizes."""
    interpolation: str = "bilinear"
    channels: int = 3
    """1 or 3. Grey images are stacked for 3; color becomes luma, as Pillow computes it, for 1."""
    value_range: str = "0..1"
    """What 0…255 is mapped to: `0..1` or `0..255`."""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    layout: str = "NCHW"
    order: str = "RGB"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("size", "resize", "mean", "std"):
            if isinstance(value := getattr(self, name), list | np.ndarray):
                object.__setattr__(self, name, tuple(value))
        for name, accepted in _CHOICES.items():
            if getattr(self, name) not in accepted:
                raise OptionError(f"{name} must be one of {', '.join(accepted)}, got {getattr(self, name)!r}")
        if self.channels not in (1, 3):
            raise OptionError(f"channels must be 1 or 3, got {self.channels!r}")
        self._check_sizes()
        self._check_statistics()

    def _check_sizes(self) -> None:
        for name in ("size", "resize"):
            value = getattr(self, name)
            sides = value if isinstance(value, tuple) else (value,)
            plain = all(isinstance(side, int) and 0 < side <= 16384 for side in sides)
            pair = name == "resize" or len(sides) == 2
            if value is not None and not (plain and pair and len(sides) <= 2):
                raise OptionError(f"{name} must be in pixels, such as 224 or (224, 320), got {value!r}")
        if self.resize is None:
            return
        if self.size is None:
            raise OptionError(f"resize={self.resize} requires size, the input size that is cropped from it")
        if isinstance(self.resize, tuple):
            small = self.resize[0] < self.size[0] or self.resize[1] < self.size[1]
        else:
            small = self.resize < min(self.size)
        if small:
            raise OptionError(
                f"resize must be at least the input size of {self.size[0]}×{self.size[1]} pixels, got "
                f"{self.resize}"
            )

    def _check_statistics(self) -> None:
        for name in ("mean", "std"):
            values = getattr(self, name)
            if len(values) not in (0, self.channels) or not all(map(math.isfinite, values)):
                raise OptionError(
                    f"{name} must have one number for each of {self.channels} channels, got {values!r}"
                )
            object.__setattr__(self, name, tuple(map(float, values)))
        if any(value <= 0 for value in self.std):
            raise OptionError(f"std must be positive, got {self.std!r}")
        if self.dtype == "uint8" and (self.mean or self.std or self.value_range != "0..255"):
            raise OptionError(
                "dtype uint8 needs value_range 0..255 and no mean or std, as values are not scaled"
            )

    @property
    def stretches(self) -> bool:
        """Whether images are brought to a height and width, whatever their shape."""
        return isinstance(self.resize, tuple)

    def at_size(self, size: tuple[int, int] | None) -> Preprocessing:
        """The same for another input size, to which images are resized.

        They are stretched to it if they were before, or if it is not square; otherwise their short side is
        resized, and the middle is cut out.

        >>> Preprocessing(size=(224, 224), resize=256).at_size((384, 384)).resize
        384
        >>> Preprocessing(size=(32, 32), resize=(32, 32)).at_size((48, 48)).resize
        (48, 48)
        """
        square = size is not None and len(set(size)) == 1
        resize = size[0] if size is not None and square and not self.stretches else size
        return replace(self, size=size, resize=resize)

    def apply(self, images: Bytes) -> NDArray[Any]:
        """The network's input for a uint8 batch `(n, h, w, c)`; the batch is left as it is."""
        return self._scaled(self.fit(images))

    def fit(self, images: Bytes) -> Bytes:
        """The images with the network's size and channels, still uint8 `(n, h, w, c)`."""
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
        return np.stack([self._middle(image) for image in images])

    def _middle(self, image: Bytes) -> Bytes:
        """The middle of one image, resized; a half pixel goes to the even side, as in torchvision."""
        from beaufort.data.images import Box, crop_box, resize_crop

        assert self.size is not None
        assert self.resize is not None
        height, width = _target(image.shape[0], image.shape[1], self.resize)
        top, left = round((height - self.size[0]) / 2), round((width - self.size[1]) / 2)
        if top < 0 or left < 0:
            raise ImageValueError(
                f"an image must be at least {self.size[0]}×{self.size[1]} pixels after resizing, got "
                f"{height}×{width} from {image.shape[0]}×{image.shape[1]}; resize to a height and width "
                "instead"
            )
        box = Box(left, top, left + self.size[1], top + self.size[0])
        if self.interpolation == "bilinear":
            return resize_crop(image, (width, height), box)
        return crop_box(_by_pillow(image, (width, height), self.interpolation), box)

    def _scaled(self, images: Bytes) -> NDArray[Any]:
        """Scale and normalize: a value is one of 256, and what becomes of each is worked out once."""
        first, backward = self.layout == "NCHW", self.order == "BGR"
        if self.dtype == "uint8":
            images = images[..., ::-1] if backward else images
            return np.array(images.transpose(0, 3, 1, 2) if first else images, order="C")
        from beaufort.models._scaling_cpu import look_up_first, look_up_last

        n, height, width, channels = images.shape
        out = np.empty((n, channels, height, width) if first else images.shape, np.float32)
        places = np.arange(channels)[:: -1 if backward else 1].copy()
        look_up = look_up_first if first else look_up_last
        look_up(np.ascontiguousarray(images), self.tables(), places, out)
        return out if self.dtype == "float32" else out.astype(self.dtype)

    def tables(self) -> NDArray[np.float32]:
        """What the network gets for each level, a row for each of its channels."""
        tables = np.tile(np.arange(256, dtype=np.float32), (self.channels, 1))
        if self.value_range == "0..1":
            tables /= np.float32(255)
        if self.mean:
            tables -= np.array(self.mean, np.float32)[:, None]
        if self.std:
            tables /= np.array(self.std, np.float32)[:, None]
        return tables

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON knows them."""
        return {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preprocessing:
        """The opposite of `to_dict`."""
        known = {field.name: None for field in fields(cls)}
        for name in values:
            if name not in known:
                raise OptionError(unknown_message("field of a preprocessing", name, known))
        return cls(**values)

    def __str__(self) -> str:
        return self.described()

    def described(self, *between: str) -> str:
        """In words, with what is done between sizes and values."""
        return ", ".join([*self._framing(), *between, *self._scaling()])

    def _framing(self) -> list[str]:
        parts = []
        if isinstance(self.resize, tuple):
            parts.append(f"{self.resize[0]}×{self.resize[1]} {self.interpolation}")
        elif self.resize is not None:
            parts.append(f"short side {self.resize} {self.interpolation}")
        if self.size is not None:
            parts.append(f"middle {self.size[0]}×{self.size[1]}")
        return parts

    def _scaling(self) -> list[str]:
        parts = [f"{self.order if self.channels == 3 else 'grey'} {self.value_range}"]
        for word, values in (("minus", self.mean), ("over", self.std)):
            if values:
                parts.append(f"{word} {' '.join(f'{value:.6g}' for value in values)}")
        return [*parts, f"{self.layout} {self.dtype}"]


def _with_channels(images: Bytes, channels: int) -> Bytes:
    if images.shape[-1] == channels:
        return images
    if channels == 3:
        return np.broadcast_to(images, (*images.shape[:3], 3))
    luma = (images @ np.array(LUMA, np.uint32) + np.uint32(0x8000)) >> np.uint32(16)
    return luma.astype(np.uint8)[..., None]


def _target(height: int, width: int, resize: int | tuple[int, int]) -> tuple[int, int]:
    """Height and width after a resize; the long side is rounded down, as in torchvision."""
    from beaufort.data.images import short_side_size

    if isinstance(resize, tuple):
        return resize
    width, height = short_side_size(width, height, resize)
    return height, width


def _by_pillow(image: Bytes, size: tuple[int, int], interpolation: str) -> Bytes:
    """An image `(h, w, c)` with another width and height, one after the other.

    Pillow takes the two in an order that depends on its version, and each is rounded to 8 bits: of noise, a
    quarter of the values would differ, by up to 20 levels where a filter has negative weights.
    """
    from PIL import Image

    from beaufort.data.images import columns_first

    drawn = Image.fromarray(np.ascontiguousarray(image[..., 0] if image.shape[-1] == 1 else image))
    half_way = (drawn.width, size[1]) if columns_first(image.shape[:2], size) else (size[0], drawn.height)
    for step in (half_way, size):
        drawn = drawn.resize(step, Image.Resampling[interpolation.upper()])
    return np.asarray(drawn).reshape(size[1], size[0], -1)
