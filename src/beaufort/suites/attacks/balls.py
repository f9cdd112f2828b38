"""The balls that perturbations stay in, and the directions that attacks move in.

Images are float32 tensors `(n, c, h, w)` with values in 0..1. A ball is around each of them, and its radius
is measured before a network normalizes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TINY = 1e-30
"""What a gradient of zeros is divided by."""


class Linf:
    """Every value may change by the radius."""

    @staticmethod
    def sizes(changes: Any) -> Any:
        """How large perturbations are, float64 `(n,)`."""
        return changes.double().abs().flatten(1).amax(dim=1)

    @staticmethod
    def direction(gradients: Any) -> Any:
        """The perturbations of size 1 along which a linear function with these gradients grows fastest."""
        return gradients.sign()

    @staticmethod
    def inside(images: Any, centers: Any, radius: float) -> Any:
        """The images, or the nearest inside of the ball; as exact float32 numbers, not only about."""
        exact = centers.double()
        low, high = _rounded_up(exact - radius), -_rounded_up(-exact - radius)
        return images.maximum(low).minimum(high)


class L2:
    """The Euclidean distance over all values of an image is at most the radius."""

    @staticmethod
    def sizes(changes: Any) -> Any:
        return changes.double().flatten(1).norm(dim=1)

    @classmethod
    def direction(cls, gradients: Any) -> Any:
        sizes = cls.sizes(gradients).clamp_min(_TINY)[:, None, None, None]
        return (gradients.double() / sizes).float()

    @classmethod
    def inside(cls, images: Any, centers: Any, radius: float) -> Any:
        """Shrunk again where the rounding of a sum to float32 has led out once more, by a little more."""
        exact, slack = centers.double(), 0.0
        while (outside := (sizes := cls.sizes(images.double() - exact)) > radius).any():
            factors = (1 - slack) * radius / sizes.clamp_min(_TINY)
            shrunk = (exact + factors[:, None, None, None] * (images.double() - exact)).float()
            images = shrunk.where(outside[:, None, None, None], images)
            slack = 2 * slack + 1e-7
        return images


def _rounded_up(values: Any) -> Any:
    """The smallest float32 numbers that are not below float64 ones."""
    import torch

    nearest = values.float()
    return torch.where(
        nearest.double() < values, nearest.nextafter(torch.full_like(nearest, torch.inf)), nearest
    )


BALLS: Mapping[str, Any] = {"linf": Linf, "l2": L2}
"""By the name of the norm: `sizes`, `direction` and `inside`."""
