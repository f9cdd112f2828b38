"""Non-local means: every pixel becomes the mean of pixels nearby whose surroundings look alike.

Buades, Coll & Morel (2005); in the fast form of Darbon et al. (2008) as scikit-image has it, with the exact
exponential function in place of its approximate one: some values differ by a level, few by two. Its strength
comes from the noise in an image, the median of its finest wavelet band (Donoho & Johnstone 1994).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.models.filters.base import checked, each_image, image_filter, validate_field, validate_flag

if TYPE_CHECKING:
    from torch import Tensor

_HIGH = np.array([-0.48296291314469025, 0.836516303737469, -0.22414386804185735, -0.12940952255092145])
"""High-pass taps of Daubechies' wavelet with two vanishing moments."""

_ROUNDING = 1e-6
"""What an even image has in the band, where exact arithmetic would give 0."""

_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a standard normal variable."""

_CUTOFF = 5.0
"""Distances beyond which a pixel does not count, as in scikit-image and in the loops for the processor."""


def estimate_noise(images: Bytes) -> NDArray[np.float64]:
    """Standard deviation of the noise of each image, in units of 0..1; the mean over its channels.

    The finest diagonal band of a photo holds little but noise. Zeros of it, of even areas, are left out.
    Texture is taken for noise, and clipping hides some: under gaussian_noise of severity 3, which is 0.18, a
    photo reads 0.16.
    """
    return np.array([_of_one(image) for image in checked(images)])


def _of_one(image: Bytes) -> float:
    planes = image.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    bands = np.abs(_details(_details(planes).swapaxes(1, 2)))
    return float(np.mean([_median(band) for band in bands])) / _MEDIAN


def _details(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The high-pass half along the last axis; beyond its ends the image is mirrored."""
    wide = np.pad(rows, ((0, 0), (0, 0), (2, 3)), mode="symmetric")
    count = (rows.shape[-1] + 3) // 2
    parts = [np.float32(tap) * wide[..., 3 - place :: 2][..., :count] for place, tap in enumerate(_HIGH)]
    found: NDArray[np.float32] = sum(parts[1:], parts[0])
    return found


def _median(band: NDArray[np.float32]) -> float:
    some = band[band > _ROUNDING]
    return float(np.median(some)) if some.size else 0.0


@image_filter("nlm")
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
        validate_field(self, "h", 0.01, 100)
        validate_field(self, "patch", 3, 31, integer=True)
        validate_field(self, "distance", 1, 50, integer=True)
        validate_flag("subtract", self.subtract)
        if self.patch % 2 == 0:
            raise OptionError(f"patch must be odd, got {self.patch}")

    def __call__(self, images: Bytes) -> Bytes:
        return each_image(images, self._denoised)

    def on_tensors(self, images: Tensor) -> Tensor:
        """The same of uint8 tensors `(n, channels, h, w)` where they are; few pixels differ, by one level."""
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
        made: Bytes = np.rint(np.clip(inside * 255, 0, 255)).astype(np.uint8).transpose(1, 2, 0)
        return made


class _Shift(NamedTuple):
    down: int
    right: int


def _denoise_tensors(images: Tensor, noise: Tensor, options: NonLocalMeans) -> Tensor:
    """The images, uint8 `(n, channels, h, w)`, denoised by the noise `(n,)` that each has.

    It sums what the loops for the processor sum, in another order: few pixels differ, by one level.
    """
    import torch

    planes = images.float() / 255
    border = options.patch // 2 + options.distance + 1
    wide = _mirrored(planes, border)
    level = (options.h * noise.to(wide)).clamp_min(1e-8)
    scale = (1 / (planes.shape[1] * level**2 * options.patch**2))[:, None, None]
    expected = 2 * noise.to(wide)[:, None, None] ** 2 * planes.shape[1] * options.subtract
    total, weights = planes.clone(), torch.ones_like(planes[:, 0])
    for shift in _shifts(options.distance):
        weight = _weights(wide, shift, border, options.patch // 2, expected, scale)
        for part, other in _both_ways(weight, wide, shift, border):
            total += part[:, None] * other
            weights += part
    made = (total / weights[:, None] * 255).clamp(0, 255).round().to(torch.uint8)
    return torch.where((noise.to(images.device) > 0)[:, None, None, None], made, images)


def _mirrored(planes: Tensor, border: int) -> Tensor:
    """With a border as `np.pad` makes it, which may be wider than the image: torch's may not."""
    import torch

    rows, columns = (
        torch.from_numpy(np.pad(np.arange(side), border, mode="reflect")).to(planes.device)
        for side in planes.shape[2:]
    )
    return planes[:, :, rows][..., columns]


def _shifts(reach: int) -> Iterator[_Shift]:
    """Half of all shifts: a distance counts for both of its pixels."""
    for down in range(reach + 1):
        for right in range(-reach, reach + 1):
            if down > 0 or right > 0:
                yield _Shift(down, right)


def _weights(
    wide: Tensor, shift: _Shift, border: int, radius: int, expected: Tensor, scale: Tensor
) -> Tensor:
    """The weight of each pair of which one pixel at least is inside the image."""
    from torch.nn import functional

    height, width = wide.shape[2:]
    top, left = border - shift.down, border - max(shift.right, 0)
    bottom, end = height - border, width - border + max(-shift.right, 0)
    rows = slice(top - radius + 1, bottom + radius)
    columns = slice(left - radius + 1, end + radius)
    moved = wide[
        :,
        :,
        rows.start + shift.down : rows.stop + shift.down,
        columns.start + shift.right : columns.stop + shift.right,
    ]
    apart = (wide[:, :, rows, columns] - moved).square_().sum(1) - expected
    box = 2 * radius
    sums = functional.avg_pool2d(apart[:, None], box, stride=1)[:, 0] * box**2
    distance = sums.clamp_min_(0).mul_(scale)
    return (-distance).exp_() * (distance <= _CUTOFF)


def _both_ways(weight: Tensor, wide: Tensor, shift: _Shift, border: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Weights of the pixels inside, and the pixels that they are for: the shifted ones, then those back."""
    height, width = wide.shape[2] - 2 * border, wide.shape[3] - 2 * border
    for sign, row, column in (
        (1, shift.down, max(shift.right, 0)),
        (-1, 0, max(-shift.right, 0)),
    ):
        top, left = border + sign * shift.down, border + sign * shift.right
        part = weight[:, row : row + height, column : column + width]
        yield part, wide[:, :, top : top + height, left : left + width]
