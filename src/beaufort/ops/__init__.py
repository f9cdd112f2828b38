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

from beaufort.arrays import Images
from beaufort.ops.canny_edges import CannyEdgesOps
from beaufort.ops.circular_motion_blur import CircularMotionBlurOps
from beaufort.ops.color import ColorOps
from beaufort.ops.defocus_blur import DefocusBlurOps
from beaufort.ops.fog import FogOps
from beaufort.ops.frames import FramesOps
from beaufort.ops.frost import FrostOps
from beaufort.ops.gaussian_blur import GaussianBlurOps
from beaufort.ops.glass_blur import GlassBlurOps
from beaufort.ops.jpeg_compression import JpegCompressionOps
from beaufort.ops.lines import LinesOps
from beaufort.ops.maths import MathsOps
from beaufort.ops.motion_blur import MotionBlurOps
from beaufort.ops.noise import NoiseOps
from beaufort.ops.philox import PhiloxOps
from beaufort.ops.pixelate import PixelateOps
from beaufort.ops.snow import SnowOps
from beaufort.ops.spatter import SpatterOps
from beaufort.ops.values import ValuesOps
from beaufort.ops.warps import WarpsOps
from beaufort.ops.zoom_blur import Ends, ZoomBlurOps

__all__ = ["Ends", "Ops", "cpu_ops", "homes", "ops_of", "torch_ops"]


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
    'beaufort.ops.fog'
    """
    families = [base for base in Ops.__mro__ if base.__module__.startswith(f"{__name__}.")]
    return {name: base.__module__ for base in families for name in vars(base) if not name.startswith("_")}


class _Backend:
    """The operations in one form, each imported when first asked for: Numba and OpenCV take a moment."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __getattr__(self, name: str) -> Any:
        if name not in homes():
            raise AttributeError(f"there is no operation {name!r}; `beaufort.ops.homes()` lists them")
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
