"""Norm balls around images, and the directions of steepest ascent in them.

Images are float32 tensors `(n, c, h, w)` with values in 0..1, before a network normalizes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TINY = 1e-30
"""Avoids division by zero."""


class Linf:
    """The largest change of a value is at most the radius."""

    @staticmethod
    def sizes(changes: Any) -> Any:
        """Return the norms of perturbations, float64 `(n,)`."""
        return changes.double().abs().flatten(1).amax(dim=1)

    @staticmethod
    def direction(gradients: Any) -> Any:
        """Return perturbations of norm 1 along which a linear function with these gradients grows fastest."""
        return gradients.sign()

    @staticmethod
    def inside(images: Any, centers: Any, radius: float) -> Any:
        """Return the nearest images in the ball, exactly in float32."""
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
        """Shrink again, by a little more, where rounding to float32 led out of the ball."""
        exact, slack = centers.double(), 0.0
        while (outside := (sizes := cls.sizes(images.double() - exact)) > radius).any():
            factors = (1 - slack) * radius / sizes.clamp_min(_TINY)
            shrunk = (exact + factors[:, None, None, None] * (images.double() - exact)).float()
            images = shrunk.where(outside[:, None, None, None], images)
            slack = 2 * slack + 1e-7
        return images


def _rounded_up(values: Any) -> Any:
    """Round float64 numbers up to float32."""
    import torch

    nearest = values.float()
    return torch.where(
        nearest.double() < values, nearest.nextafter(torch.full_like(nearest, torch.inf)), nearest
    )


BALLS: Mapping[str, Any] = {"linf": Linf, "l2": L2}
"""By norm: `sizes`, `direction` and `inside`."""
