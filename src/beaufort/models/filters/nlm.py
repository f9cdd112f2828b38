"""Non-local means: every pixel becomes the mean of nearby pixels with similar surroundings.

Buades, Coll & Morel (2005), with the fast algorithm of Darbon et al. (2008) as in scikit-image, but an exact
exponential function: some values differ by one level, few by two. The strength is relative to the noise in an
image, estimated from the median of its finest wavelet band (Donoho & Johnstone 1994).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, checked_batch
from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_flag
from beaufort.models.filters.base import BEFORE_SCALING, each_image, image_filter, validate_field

if TYPE_CHECKING:
    from torch import Tensor

_HIGH = np.array([-0.48296291314469025, 0.836516303737469, -0.22414386804185735, -0.12940952255092145])
"""High-pass taps of Daubechies' wavelet with two vanishing moments."""

_ROUNDING = 1e-6
"""Values of a constant image in the band, where exact arithmetic would give 0."""

_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a standard normal variable."""

_CUTOFF = 5.0
"""Distance beyond which a pixel is ignored, as in scikit-image and in `_nlm_cpu`."""


def estimate_noise(images: Bytes) -> NDArray[np.float64]:
    """Return the standard deviation of the noise of each image, in [0, 1]; the mean over its channels.

    The finest diagonal band of a photo contains little but noise; its zeros, of constant areas, are ignored.
    Texture increases the estimate, and clipping decreases it: for gaussian_noise of severity 3, which is
    0.18, it is 0.16.
    """
    return np.array([_image_noise(image) for image in checked_batch(images, BEFORE_SCALING)])


def _image_noise(image: Bytes) -> float:
    planes = image.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    bands = np.abs(_details(_details(planes).swapaxes(1, 2)))
    medians = [float(np.median(some)) if (some := band[band > _ROUNDING]).size else 0.0 for band in bands]
    return float(np.mean(medians)) / _MEDIAN


def _details(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the high-pass half along the last axis, with mirrored borders."""
    wide = np.pad(rows, ((0, 0), (0, 0), (2, 3)), mode="symmetric")
    count = (rows.shape[-1] + 3) // 2
    parts = [np.float32(tap) * wide[..., 3 - place :: 2][..., :count] for place, tap in enumerate(_HIGH)]
    return np.asarray(sum(parts[1:], parts[0]))


@image_filter("nlm")
@dataclass(frozen=True, kw_only=True)
class NonLocalMeans:
    """Non-local means with a strength of `h` times the noise by `estimate_noise`."""

    h: float = 0.8
    """Strength, in standard deviations of the noise."""
    patch: int = 5
    """Side of the compared patches, in pixels; odd."""
    distance: int = 6
    """Largest distance along each axis, in pixels."""
    subtract: bool = True
    """Whether to subtract the expected distance of patches that differ by noise only."""

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        validate_field(self, "h", 0.01, 100)
        validate_field(self, "patch", 3, 31, integer=True)
        validate_field(self, "distance", 1, 50, integer=True)
        validate_flag("subtract", self.subtract)
        if self.patch % 2 == 0:
            raise OptionError(f"patch must be odd, got {self.patch}")

    def __call__(self, images: Bytes) -> Bytes:
        return each_image(images, self._denoised)

    def on_tensors(self, images: Tensor) -> Tensor:
        """Return the same for uint8 tensors `(n, channels, h, w)`, up to one level in a few pixels."""
        import torch

        pixels = np.ascontiguousarray(images.permute(0, 2, 3, 1).cpu().numpy())
        return _denoise_tensors(images, torch.from_numpy(estimate_noise(pixels)).to(images.device), self)

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
        return np.asarray(np.rint(np.clip(inside * 255, 0, 255)).astype(np.uint8).transpose(1, 2, 0))


def _denoise_tensors(images: Tensor, noise: Tensor, options: NonLocalMeans) -> Tensor:
    """Denoise uint8 images `(n, channels, h, w)` with the noise `(n,)` of each.

    It computes the sums of `_nlm_cpu` in another order: few pixels differ, by one level.
    """
    import torch

    planes = images.float() / 255
    channels, height, width = planes.shape[1:]
    border = options.patch // 2 + options.distance + 1
    rows, columns = (  # torch's own padding cannot be wider than the image
        torch.from_numpy(np.pad(np.arange(side), border, mode="reflect")).to(planes.device)
        for side in (height, width)
    )
    wide = planes[:, :, rows][..., columns]
    level = (options.h * noise.to(wide)).clamp_min(1e-8)
    scale = (1 / (channels * level**2 * options.patch**2))[:, None, None]
    expected = 2 * noise.to(wide)[:, None, None] ** 2 * channels * options.subtract
    total, weights = planes.clone(), torch.ones_like(planes[:, 0])
    for down in range(options.distance + 1):
        for right in range(-options.distance, options.distance + 1):
            if down == 0 and right <= 0:
                continue  # a distance counts for both of its pixels, so half of the shifts suffice
            weight = _weights(wide, down, right, border, options.patch // 2, expected, scale)
            for sign, row, column in ((1, down, max(right, 0)), (-1, 0, max(-right, 0))):
                top, left = border + sign * down, border + sign * right
                part = weight[:, row : row + height, column : column + width]
                total += part[:, None] * wide[:, :, top : top + height, left : left + width]
                weights += part
    denoised = (total / weights[:, None] * 255).clamp(0, 255).round().to(torch.uint8)
    return torch.where((noise.to(images.device) > 0)[:, None, None, None], denoised, images)


def _weights(
    wide: Tensor, down: int, right: int, border: int, radius: int, expected: Tensor, scale: Tensor
) -> Tensor:
    """Return the weight of each pair of pixels of which at least one is inside the image."""
    from torch.nn import functional

    height, width = wide.shape[2:]
    top, bottom = border - down - radius + 1, height - border + radius
    left, end = border - max(right, 0) - radius + 1, width - border + max(-right, 0) + radius
    moved = wide[:, :, top + down : bottom + down, left + right : end + right]
    squares = (wide[:, :, top:bottom, left:end] - moved).square_().sum(1) - expected
    box = 2 * radius
    sums = functional.avg_pool2d(squares[:, None], box, stride=1)[:, 0] * box**2
    distance = sums.clamp_min_(0).mul_(scale)
    return (-distance).exp_() * (distance <= _CUTOFF)
