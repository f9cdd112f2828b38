"""The pictures of a data set brought to one size, for networks that are trained on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.data._dataset import Dataset, Pixels
from beaufort.data._digest import Content
from beaufort.data.images import MAX_SIDE, resize_window


def resized(dataset: Dataset, side: int) -> Dataset:
    """The same pictures as RGB squares of `side` pixels, bilinear; the aspect is not kept."""
    if isinstance(side, bool) or not isinstance(side, int) or not 1 <= side <= MAX_SIDE:
        raise OptionError(f"side must be an integer from 1 to {MAX_SIDE}, got {side!r}")
    return replace(dataset, pixels=_Resized(dataset.pixels, side))


@dataclass(frozen=True)
class _Resized:
    pixels: Pixels
    side: int

    def read(self, index: int) -> Bytes:
        image = self.pixels.read(index)
        color = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
        return resize_window(color, (self.side, self.side))

    def contents(self, count: int) -> Iterator[Content]:
        yield Content(lambda: [f"resized to {self.side}\n".encode()])
        yield from self.pixels.contents(count)
