"""Transparent pictures laid on white."""

from __future__ import annotations

from PIL import Image


def flatten(image: Image.Image) -> Image.Image:
    """The picture laid on white, mode L or RGB; one without transparency is given back as it is."""
    if image.mode not in ("LA", "RGBA"):
        return image
    colors = image.mode.removesuffix("A")
    white = Image.new(colors, image.size, "white")
    white.paste(image.convert(colors), mask=image.getchannel("A"))
    return white
