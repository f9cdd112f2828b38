"""The operations that corruptions are written in, and the backends that have them.

A family of operations is a folder. Its `__init__.py` declares what they do, and beside it stand their forms:
`_cpu.py` (Numba, for NumPy arrays), `_torch.py` (for tensors on any device) and, under that, `_triton.py`
(for tensors on a CUDA GPU). An operation is declared there and nowhere else; `Ops` is all families together.

Images are uint8 batches `(n, h, w, c)`, fields are one an image. Tables, and what is known of each image by
a few numbers (angles, matrices), are NumPy arrays on every backend. Results are cut off to 8 bit unless
`nearest` asks for rounding. Both backends draw the same numbers and make the same pixels, but for the last
bit of some sums: `tests/ops/test_torch.py` says how far each corruption may be off. An image's pixels do not
depend on the batch that it is in: no sum whose order could change with it decides a pixel.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np

from beaufort._core.arrays import Images
from beaufort.corruptions._kernels.canny_edges import CannyEdgesOps
from beaufort.corruptions._kernels.circular_motion_blur import CircularMotionBlurOps
from beaufort.corruptions._kernels.color import ColorOps
from beaufort.corruptions._kernels.defocus_blur import DefocusBlurOps
from beaufort.corruptions._kernels.fog import FogOps
from beaufort.corruptions._kernels.frames import FramesOps
from beaufort.corruptions._kernels.frost import FrostOps
from beaufort.corruptions._kernels.gaussian_blur import GaussianBlurOps
from beaufort.corruptions._kernels.glass_blur import GlassBlurOps
from beaufort.corruptions._kernels.jpeg_compression import JpegCompressionOps
from beaufort.corruptions._kernels.lines import LinesOps
from beaufort.corruptions._kernels.maths import MathsOps
from beaufort.corruptions._kernels.motion_blur import MotionBlurOps
from beaufort.corruptions._kernels.noise import NoiseOps
from beaufort.corruptions._kernels.philox import PhiloxOps
from beaufort.corruptions._kernels.pixelate import PixelateOps
from beaufort.corruptions._kernels.snow import SnowOps
from beaufort.corruptions._kernels.spatter import SpatterOps
from beaufort.corruptions._kernels.values import ValuesOps
from beaufort.corruptions._kernels.warps import WarpsOps
from beaufort.corruptions._kernels.zoom_blur import Ends, ZoomBlurOps

__all__ = ["OPERATIONS", "Ends", "Ops", "cpu_ops", "homes", "ops_of", "torch_ops"]


class Ops(
    CannyEdgesOps,
    CircularMotionBlurOps,
    ColorOps,
    DefocusBlurOps,
    FogOps,
    FramesOps,
    FrostOps,
    GaussianBlurOps,
    GlassBlurOps,
    JpegCompressionOps,
    LinesOps,
    MathsOps,
    MotionBlurOps,
    NoiseOps,
    PhiloxOps,
    PixelateOps,
    SnowOps,
    SpatterOps,
    ValuesOps,
    WarpsOps,
    ZoomBlurOps,
    Protocol,
):
    """What a backend can do."""


@lru_cache(maxsize=1)
def homes() -> dict[str, str]:
    """The folder of each operation, as the name of its package.

    >>> homes()["haze"]
    'beaufort.corruptions._kernels.fog'
    """
    families = [base for base in Ops.__mro__ if base.__module__.startswith(f"{__name__}.")]
    return {name: base.__module__ for base in families for name in vars(base) if not name.startswith("_")}


OPERATIONS = tuple(sorted(homes()))
"""The names of all operations."""


class _Backend:
    """The operations in one form, each imported when first asked for: Numba and OpenCV take a moment."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __getattr__(self, name: str) -> Any:
        if name not in homes():
            raise AttributeError(f"unknown operation {name!r}; beaufort.corruptions.OPERATIONS lists them")
        found = getattr(import_module(f"{homes()[name]}._{self._form}"), name)
        setattr(self, name, found)
        return found


@lru_cache(maxsize=1)
def cpu_ops() -> Ops:
    """The CPU backend: Numba kernels that release the interpreter's lock, and OpenCV."""
    _keep_freed_memory()
    return cast("Ops", _Backend("cpu"))


def _keep_freed_memory() -> None:
    """Have glibc keep some megabytes that are freed, and not give them back to the system.

    It keeps up to twice the size of the largest array that was freed before, and gives back all if there is
    more. To get the working memory of a corruption anew for each image, page by page, can take as long as the
    corruption itself. The array here is never written to, and so takes no memory.
    """
    np.empty(8 << 20, np.uint8)


@lru_cache(maxsize=1)
def torch_ops() -> Ops:
    """The torch backend: plain tensor code on any device, Triton kernels where it is a CUDA GPU."""
    return cast("Ops", _Backend("torch"))


def ops_of(images: Images) -> Ops:
    """The backend for this kind of images."""
    return cpu_ops() if isinstance(images, np.ndarray) else torch_ops()
