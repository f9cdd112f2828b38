"""Sizes: the steps that the published sets applied before they corrupted a picture."""

from __future__ import annotations

from PIL import Image

from beaufort.images.framing import center_box, short_side_size

__all__ = ["center_crop", "flatten", "resize_exactly", "resize_short_side"]


def resize_short_side(image: Image.Image, side: int) -> Image.Image:
    """The picture with a short side of `side` pixels, bilinear; the long one is rounded down.

    >>> resize_short_side(Image.new("L", (500, 375)), 256).size
    (341, 256)
    """
    size = short_side_size(*image.size, side)
    return image if size == image.size else image.resize(size, Image.Resampling.BILINEAR)


def center_crop(image: Image.Image, side: int) -> Image.Image:
    """The square in the middle; a half pixel goes to the even side, as in torchvision."""
    return image.crop(center_box(*image.size, side))


def resize_exactly(image: Image.Image, side: int) -> Image.Image:
    """A square of `side` pixels, bilinear; the aspect is not kept."""
    return image if image.size == (side, side) else image.resize((side, side), Image.Resampling.BILINEAR)


def flatten(image: Image.Image) -> Image.Image:
    """The picture laid on white, mode L or RGB; one without transparency is given back as it is."""
    if image.mode not in ("LA", "RGBA"):
        return image
    colors = image.mode.removesuffix("A")
    white = Image.new(colors, image.size, "white")
    white.paste(image.convert(colors), mask=image.getchannel("A"))
    return white
