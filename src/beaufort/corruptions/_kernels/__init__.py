"""The operations that corruptions are written in, and the backends that have them.

`operations.py` declares what each operation does. `cpu`, `torch` and `triton` have a module of the same name
for each family of operations: Numba code for NumPy arrays, code for tensors on any device and, called by it,
kernels for tensors on a CUDA GPU.

Both backends draw the same numbers and make the same pixels, but for the last bit of some sums:
`tests/corruptions/kernels/test_torch.py` says how far each corruption may be off. An image's pixels do not
depend on the batch that it is in: no sum whose order could change with it decides a pixel.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, cast

import numpy as np

from beaufort._core.arrays import Images, is_tensor
from beaufort.corruptions._kernels.operations import FAMILIES, Ends, Ops

__all__ = ["OPERATIONS", "Ends", "Ops", "cpu_ops", "ops_of", "torch_ops", "triton_kernels"]

_FAMILY_OF = {operation: family for family, operations in FAMILIES.items() for operation in operations}

OPERATIONS = tuple(sorted(_FAMILY_OF))
"""The names of all operations."""


class _Backend:
    """The operations of one backend, each imported when it is first used: Numba and OpenCV take a moment."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, operation: str) -> Any:
        if operation not in _FAMILY_OF:
            raise AttributeError(
                f"unknown operation {operation!r}; beaufort.corruptions.OPERATIONS lists them"
            )
        found = getattr(import_module(f"{__name__}.{self._name}.{_FAMILY_OF[operation]}"), operation)
        setattr(self, operation, found)
        return found


@lru_cache(maxsize=1)
def cpu_ops() -> Ops:
    """The CPU backend: Numba kernels that release the interpreter's lock, and OpenCV."""
    # glibc keeps up to twice the size of the largest array that was freed before, and gives all memory back
    # to the system if there is more. Allocating the working memory of a corruption again for each image,
    # page by page, can take as long as the corruption itself. This array is never written to, so it takes no
    # memory.
    np.empty(8 << 20, np.uint8)
    return cast("Ops", _Backend("cpu"))


@lru_cache(maxsize=1)
def torch_ops() -> Ops:
    """The torch backend: plain tensor code on any device, Triton kernels where it is a CUDA GPU."""
    return cast("Ops", _Backend("torch"))


def ops_of(images: Images) -> Ops:
    """The backend for this kind of images."""
    return torch_ops() if is_tensor(images) else cpu_ops()


def triton_kernels(family: str, tensor: Any) -> Any:
    """Return the module with the Triton kernels of a family, or None where a tensor is not on a CUDA GPU."""
    from beaufort._core.device import use_kernels

    return import_module(f"{__name__}.triton.{family}") if use_kernels(tensor) else None
