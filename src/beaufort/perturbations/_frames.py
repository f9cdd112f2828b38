"""Where the frames of a sequence come from: a picture with context, its middle, and geometry between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Images
from beaufort.ops import Ops

__all__ = ["View"]


@dataclass(frozen=True)
class View:
    """A batch of pictures, larger than the frames if there is context."""

    whole: Images
    """`(n, h, w, c)`."""
    side: int
    """Of a frame."""
    ops: Ops

    @property
    def middle(self) -> Images:
        """The part that a frame shows."""
        cropped = self.crop(self.whole)
        return np.ascontiguousarray(cropped) if isinstance(cropped, np.ndarray) else cropped.contiguous()

    def crop(self, images: Any) -> Any:
        """The middle of pictures of the whole size; half pixels are rounded to even ones."""
        top, left = (round((length - self.side) / 2) for length in images.shape[1:3])
        return images[:, top : top + self.side, left : left + self.side]

    def affine(self, matrix: NDArray[np.float64], about: tuple[float, float]) -> Images:
        """The crop under a map (x, y) ← matrix · (x, y) about a point; black outside, cut off."""
        return self.ops.affine_frame(self.whole, matrix, about, self.side)

    def perspective(self, inverse: NDArray[np.float64]) -> Images:
        """The crop of the picture under a perspective map, given from the frame to the picture; rounded.

        Positions are multiples of 1/32 pixel, and black is blended in at the edge.
        """
        rows, columns = self._grid()
        a = [[float(value) for value in row] for row in inverse]
        depth = a[2][0] * columns + a[2][1] * rows + a[2][2]
        x, y = ((a[k][0] * columns + a[k][1] * rows + a[k][2]) / depth for k in (0, 1))
        x, y = self.ops.rint(x * 32) / 32, self.ops.rint(y * 32) / 32
        return self.ops.to_bytes(self.ops.floor(self._sample(y, x) + 0.5))

    def _grid(self) -> tuple[Any, Any]:
        """The rows and columns of the whole picture that the crop shows."""
        rows, columns = self.ops.grid(self.whole)
        top, left = (round((length - self.side) / 2) for length in self.whole.shape[1:3])
        return rows[:, top : top + self.side], columns[:, :, left : left + self.side]

    def _sample(self, rows: Any, columns: Any) -> Any:
        """Linear between pixels: across, then down. Neighbors outside are black."""
        top, left = self.ops.floor(rows), self.ops.floor(columns)
        down, across = (rows - top)[..., None], (columns - left)[..., None]
        lines = []
        for row in (top, top + 1):
            first, second = (self._at(row, column) for column in (left, left + 1))
            lines.append(first + (second - first) * across)
        return lines[0] + (lines[1] - lines[0]) * down

    def _at(self, rows: Any, columns: Any) -> Any:
        height, width = self.whole.shape[1:3]
        r = self.ops.whole(self.ops.clip(rows, 0, height - 1))[0]
        c = self.ops.whole(self.ops.clip(columns, 0, width - 1))[0]
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        return self.ops.real(self.whole[:, r, c]) * inside[..., None]
