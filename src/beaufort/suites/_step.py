"""How a picture is brought to size before it is corrupted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from beaufort.arrays import MIN_SIDE
from beaufort.errors import OptionError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Step"]

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

    def apply(self, image: Image) -> Image:
        """The picture after this step, bilinear where pixels are mixed."""
        from beaufort.images import center_crop, resize_exactly, resize_short_side

        steps = {"resize": resize_short_side, "stretch": resize_exactly, "crop": center_crop}
        return steps[self.action](image, self.side)
