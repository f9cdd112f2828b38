"""Moving arrays to the device of the images, and choosing the code that works there."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def upload(array: Tensor | NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor on the device, without waiting for the copy."""
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda" and tensor.is_cpu:
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def beside(array: Tensor | NDArray[Any], images: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return a small array as a tensor on the device of the images."""
    tensor = upload(array, images.device)
    return tensor if dtype is None else tensor.to(dtype)


def constant(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return a small constant array on the device, copied once per content."""
    return _constant(array.tobytes(), array.dtype.str, array.shape, device)


@lru_cache(maxsize=512)
def _constant(content: bytes, dtype: str, shape: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.from_numpy(np.frombuffer(content, dtype).reshape(shape).copy()).to(device)


def use_kernels(images: Tensor) -> bool:
    """Return whether to use Triton kernels: on CUDA, if Triton is installed.

    `BEAUFORT_KERNELS=0` turns them off; `BEAUFORT_KERNELS=1` with Triton's interpreter
    (`TRITON_INTERPRET=1`) turns them on for CPU tensors, to test them without a GPU.
    """
    wanted = os.environ.get("BEAUFORT_KERNELS")
    if wanted == "0" or not _has_triton():
        return False
    return images.is_cuda or (wanted == "1" and os.environ.get("TRITON_INTERPRET") == "1")


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


def fma(a: Tensor | float, b: Tensor | float, c: Tensor | float) -> Tensor:
    """Return a·b + c of float32 numbers with one rounding, as compiled kernels do.

    The product is exact in double precision; the double rounding of the sum matters once in 2²⁹ times.
    """
    product = a.double() * b if isinstance(a, Tensor) else a * b.double()  # type: ignore[union-attr]
    return (product + c).float()


def f32(value: float) -> float:
    """Return the float32 number nearest to a constant, as the CPU kernels use it."""
    return float(np.float32(value))
