"""AugMix and PRIME as transforms for any training loop.

They take a float tensor in [0, 1] or a uint8 tensor, `(c, h, w)` or `(n, c, h, w)`, on any device; a uint8
NumPy array `(h, w, c)` or `(n, h, w, c)`; or a PIL image. The result has the type, shape and dtype of the
input. Random numbers are torch's, so `torch.manual_seed` and the seeds of data loader workers apply.

>>> mixed = AugMix(severity=3)(torch.rand(4, 3, 32, 32))
>>> mixed.shape
torch.Size([4, 3, 32, 32])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from beaufort._core.arrays import as_batch, is_float
from beaufort._core.validation import validate_integer, validate_number
from beaufort.training.interventions.augmix import augmix
from beaufort.training.interventions.prime import prime


@dataclass(frozen=True)
class AugMix:
    """Mix an image with chains of simple operations (Hendrycks et al., 2020)."""

    severity: float = 3.0
    """Largest strength of an operation, from 0.1 to 10."""
    width: int = 3
    """Number of chains."""
    depth: int = 3
    """Maximum number of operations in a chain."""

    def __post_init__(self) -> None:
        validate_number("severity", self.severity, 0.1, 10)
        for name in ("width", "depth"):
            validate_integer(name, getattr(self, name), 1, 16)

    def __call__(self, images: Any) -> Any:
        """Return a mixed version of an image, or of each image of a batch."""
        return _transformed(images, lambda some: augmix(some, self.severity, self.width, self.depth))


@dataclass(frozen=True)
class Prime:
    """Mix an image with random filters, warps and color maps, after PRIME (Modas et al., 2022)."""

    filter: float = 1.0
    """Largest standard deviation of the random part of the 3×3 filter taps."""
    warp: float = 1.0
    """Largest root mean square displacement of a warp along an axis, in pixels."""
    color: float = 0.05
    """Largest standard deviation of the coefficients of a color map."""
    width: int = 3
    """Number of chains."""
    depth: int = 3
    """Maximum number of transformations in a chain."""

    def __post_init__(self) -> None:
        for name in ("filter", "warp", "color"):
            validate_number(name, getattr(self, name), 0, 100)
        for name in ("width", "depth"):
            validate_integer(name, getattr(self, name), 1, 16)

    def __call__(self, images: Any) -> Any:
        """Return a mixed version of an image, or of each image of a batch."""
        return _transformed(images, lambda some: prime(some, **vars(self)))


def _transformed(images: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return images of any type changed by a function of float tensors `(n, c, h, w)` in [0, 1]."""
    if isinstance(images, Tensor) and is_float(images):
        floats = images if images.ndim == 4 else images[None]
        made = change(floats.float()).clamp(0, 1).to(images.dtype)
        return made.reshape(images.shape)
    batch = as_batch(images)
    on_cpu = isinstance(batch.color, np.ndarray)
    color = torch.as_tensor(np.array(batch.color) if on_cpu else batch.color)
    made = change(color.movedim(-1, 1).float() / 255)
    levels = (made * 255).round().clamp(0, 255).to(torch.uint8).movedim(1, -1).contiguous()
    return batch.close(levels.numpy() if on_cpu else levels)
