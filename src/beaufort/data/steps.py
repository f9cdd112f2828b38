"""How a picture is brought to size before it is corrupted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from beaufort._core.arrays import MIN_SIDE, Bytes
from beaufort._core.errors import OptionError

_TEXT = re.compile(r"(resize|stretch|crop) ([1-9][0-9]{1,4})")


class Step(NamedTuple):
    """One step: `resize 256` (the short side), `stretch 64` (both sides), `crop 224` (the middle)."""

    action: str
    side: int
    """In pixels."""

    @classmethod
    def parse(cls, text: str) -> Step:
        """The step that a text stands for.

        >>> Step.parse("resize 256")
        Step(action='resize', side=256)
        """
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None or int(match[2]) < MIN_SIDE:
            raise OptionError(
                "a step must be 'resize 256' (the short side), 'stretch 64' (both sides) or 'crop 224' (the "
                f"center), with a side from {MIN_SIDE} to 99999 pixels, got {text!r:.60}"
            )
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.action} {self.side}"


def prepare(pixels: Bytes, steps: Sequence[Step]) -> Bytes:
    """A picture `(h, w, c)` after some steps, bilinear where pixels are mixed, to the bit as Pillow does it.

    What a crop cuts off again is not worked out.
    """
    if not steps:  # before the import, which takes longer than to hand a small picture back
        return pixels
    from beaufort.data.images import center_box, resize_window, short_side_size, window

    rest = list(steps)
    while rest:
        action, side = rest.pop(0)
        height, width = pixels.shape[:2]
        if action == "crop":
            pixels = window(pixels, center_box(width, height, side))
            continue
        size = short_side_size(width, height, side) if action == "resize" else (side, side)
        cropped = rest and rest[0].action == "crop"
        pixels = resize_window(pixels, size, center_box(*size, rest.pop(0).side) if cropped else None)
    return pixels
