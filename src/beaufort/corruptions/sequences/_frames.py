"""Where the frames of a sequence come from: a picture with context, its middle, and geometry between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Images
from beaufort.corruptions._kernels import Ops


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

    def crop(self, images: Any, columns: slice | None = None) -> Any:
        """The middle of pictures of the whole size, or other columns; half pixels go to even ones."""
        top, left = (round((length - self.side) / 2) for length in images.shape[1:3])
        across = slice(left, left + self.side) if columns is None else columns
        return images[:, top : top + self.side, across]

    def affine(self, matrix: NDArray[np.float64], about: tuple[float, float]) -> Images:
        """The crop under a map (x, y) ← matrix · (x, y) about a point; black outside, cut off."""
        return self.ops.affine_frame(self.whole, matrix, about, self.side)

    def perspective(self, inverse: NDArray[np.float64]) -> Images:
        """The crop of the picture under a perspective map, given from the frame to the picture; rounded."""
        return self.ops.perspective_frame(self.whole, inverse, self.side)
