"""How arrays of the host come to stand beside the images, and which code works on them there."""

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
    """An array as a tensor on the device; the host does not wait for the copy."""
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda" and tensor.is_cpu:
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def beside(array: Tensor | NDArray[Any], images: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """A small array as a tensor on the device of the images."""
    tensor = upload(array, images.device)
    return tensor if dtype is None else tensor.to(dtype)


def constant(array: NDArray[Any], device: torch.device) -> Tensor:
    """A small constant array on the device, copied once for each content."""
    return _constant(array.tobytes(), array.dtype.str, array.shape, device)


@lru_cache(maxsize=512)
def _constant(content: bytes, dtype: str, shape: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.from_numpy(np.frombuffer(content, dtype).reshape(shape).copy()).to(device)


def use_kernels(images: Tensor) -> bool:
    """Whether Triton kernels do the work: on CUDA, where Triton is installed.

    `BEAUFORT_KERNELS=0` turns them off; `BEAUFORT_KERNELS=1` with Triton's interpreter
    (`TRITON_INTERPRET=1`) turns them on for tensors of the processor, to test them without a GPU.
    """
    wanted = os.environ.get("BEAUFORT_KERNELS")
    if wanted == "0" or not _has_triton():
        return False
    return images.is_cuda or (wanted == "1" and os.environ.get("TRITON_INTERPRET") == "1")


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


def fma(a: Tensor | float, b: Tensor | float, c: Tensor | float) -> Tensor:
    """a·b + c of float32 numbers with one rounding, which is what compiled kernels do.

    The product is exact in double precision; that the sum is rounded twice shows once in 2²⁹ times.
    """
    product = a.double() * b if isinstance(a, Tensor) else a * b.double()  # type: ignore[union-attr]
    return (product + c).float()


def f32(value: float) -> float:
    """The float32 number nearest to a constant, as the CPU's kernels have it."""
    return float(np.float32(value))
