"""Zoom blur: the camera moves toward the scene."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Images, Ops, corruption
from beaufort.corruptions._sizes import ends


class Params(NamedTuple):
    """Enlargements that are averaged."""

    step: float
    """Difference of consecutive zoom factors; the first is 1."""
    zooms: int
    """Number of factors."""

    @property
    def factors(self) -> tuple[float, ...]:
        """1, 1 + step, …, with the rounding of NumPy's ranges."""
        step = (1 + self.step) - 1
        return tuple(1 + i * step for i in range(self.zooms))


class Smooth(Params):
    """The same constants, with enlargements as at the nearest published sizes."""

    __slots__ = ()


_LARGE = [Params(0.01, 12), Params(0.01, 16), Params(0.02, 11), Params(0.02, 13), Params(0.03, 11)]
_SMALL = [Params(0.01, 7), Params(0.01, 12), Params(0.01, 16), Params(0.01, 21), Params(0.01, 26)]


@corruption(
    "blur",
    levels={"imagenet": _LARGE, "inception": _LARGE, "tiny": _SMALL, "cifar": _SMALL},
    smooth=Smooth,
    mixes=True,
)
def zoom_blur(images: Images, p: Params, ops: Ops, *, nearest: bool = False) -> Images:
    """Average the image with enlargements of its center; the image itself counts twice."""
    like = ends(min(images.shape[1:3])) if isinstance(p, Smooth) else None
    return ops.zoom_average(images, p.factors, nearest=nearest, like=like)


zoom_blur.for_digits(_LARGE, published=5, nearest=True)
