"""Non-local means: every pixel becomes the mean of pixels nearby whose surroundings look alike.

Buades, Coll & Morel (2005); in the fast form of Darbon et al. (2008) as scikit-image has it, with the exact
exponential function in place of its approximate one: some values differ by a level, few by two. Its strength
is from the noise that a picture seems to have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.models.filters._front import check_flag, each_image, front, settle_number
from beaufort.models.filters.noise import estimate_noise

if TYPE_CHECKING:
    from torch import Tensor


@front("nlm")
@dataclass(frozen=True, kw_only=True)
class NonLocalMeans:
    """Non-local means with a strength of `h` times the noise that `estimate_noise` finds."""

    h: float = 0.8
    """Strength, in units of the noise's standard deviation."""
    patch: int = 5
    """Side of what is compared, in pixels; odd."""
    distance: int = 6
    """How far away a pixel may be, in pixels along each axis."""
    subtract: bool = True
    """Whether the distance that noise alone makes is subtracted."""

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        settle_number(self, "h", 0.01, 100)
        settle_number(self, "patch", 3, 31, whole=True)
        settle_number(self, "distance", 1, 50, whole=True)
        check_flag("subtract", self.subtract)
        if self.patch % 2 == 0:
            raise OptionError(f"patch must be odd, got {self.patch}")

    def __call__(self, images: Bytes) -> Bytes:
        return each_image(images, self._denoised)

    def on_tensors(self, images: Tensor) -> Tensor:
        """The same of uint8 tensors `(n, channels, h, w)` where they are; few pixels differ, by one level."""
        import torch

        from beaufort.models.filters._nlm_tensors import denoise_tensors

        pixels = np.ascontiguousarray(images.permute(0, 2, 3, 1).cpu().numpy())
        return denoise_tensors(images, torch.from_numpy(estimate_noise(pixels)).to(images.device), self)

    def _denoised(self, image: Bytes) -> Bytes:
        from beaufort.models.filters._nlm_cpu import denoise

        sigma = float(estimate_noise(image[None])[0])
        if sigma == 0:
            return image
        border = self.patch // 2 + self.distance + 1
        planes = image.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
        wide = np.pad(planes, ((0, 0), (border, border), (border, border)), mode="reflect")
        level = self.h * sigma
        expected = 2 * sigma**2 * len(planes) if self.subtract else 0.0
        scale = 1 / (len(planes) * level**2 * self.patch**2)
        mean = denoise(wide, self.patch // 2, self.distance, np.float32(expected), np.float32(scale))
        inside = mean[:, border:-border, border:-border]
        made: Bytes = np.rint(np.clip(inside * 255, 0, 255)).astype(np.uint8).transpose(1, 2, 0)
        return made
