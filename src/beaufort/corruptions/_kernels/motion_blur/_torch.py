"""Motion along a line, in torch.

Sums are taken in the order of the CPU's kernels, and products are fused with sums where theirs are: on
a plain area a hair below a whole level costs the level, so one rounding more or less would show.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside, constant, fma, use_kernels
from beaufort.corruptions._kernels.values._torch import to_bytes


def motion(images: Tensor, radius: float, sigma: float, angles_deg: Tensor | NDArray[Any]) -> Tensor:
    """One-sided motion blur: half a Gaussian that starts at the pixel and runs along the angle.

    The 8-bit result is cut off after a Q16 rounding, as in ImageMagick: a value within 1/514 below
    a whole level counts as that level.
    """
    taps = np.arange(2 * math.ceil(radius) + 1)
    weights = np.exp(-(taps**2) / (2 * sigma**2))
    weights = (weights / weights.sum()).astype(np.float32)
    radians = torch.deg2rad(beside(angles_deg, images, torch.float64))[:, None]
    steps = constant(taps.astype(np.float64), images.device)
    along, across = taps.size * radians.cos(), taps.size * radians.sin()  # rounds as ImageMagick does
    length = torch.hypot(across, along)
    down = torch.ceil(steps * across / length - 0.5).to(torch.int32)
    right = torch.ceil(steps * along / length - 0.5).to(torch.int32)
    if use_kernels(images):
        from beaufort.corruptions._kernels.motion_blur import _triton as kernels

        return kernels.motion(images, weights, down, right)
    height, width = images.shape[1:3]
    which = torch.arange(len(images), device=images.device)[:, None, None]
    y, x = torch.arange(height, device=images.device), torch.arange(width, device=images.device)

    def shifted(k: int) -> Tensor:
        rows = (y + down[:, k, None]).clamp(0, height - 1)
        columns = (x + right[:, k, None]).clamp(0, width - 1)
        return images[which, rows[:, :, None], columns[:, None]].float()

    shares = [float(weight) for weight in weights]
    total = torch.full(images.shape, 1 / 514, dtype=torch.float32, device=images.device)
    k = 0
    while k + 3 < len(shares):
        near = fma(shares[k], shifted(k), shares[k + 1] * shifted(k + 1))
        far = fma(shares[k + 2], shifted(k + 2), shares[k + 3] * shifted(k + 3))
        total = total + (near + far)
        k += 4
    for last in range(k, len(shares)):
        total = fma(shares[last], shifted(last), total)
    return to_bytes(total, nearest=False)
