"""How Numba kernels are compiled: once, kept on disk, without the interpreter's lock.

Kernels have no type annotations: Numba infers their types from each call, and mypy is told so in
`pyproject.toml`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

__all__ = ["FAST", "exact_kernel", "fused", "inlined", "kernel", "put_together", "take_apart", "to_byte"]

i32, f32 = np.int32, np.float32


FAST = {"contract", "nnan", "nsz"}
"""Products and sums may be fused, and no value is NaN or minus zero; nothing is reordered."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over arrays."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")(
        function
    )
    return compiled


def exact_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop in which every rounding counts."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function into the kernels that call it."""
    compiled: Callable[..., Any] = numba.njit(inline="always", fastmath=FAST, error_model="numpy")(function)
    return compiled


@intrinsic
def fused(typing_context, a, b, c):
    """a·b + c with one rounding, where it must be this product that is fused; all float32."""
    signature = numba.float32(numba.float32, numba.float32, numba.float32)

    def code(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return signature, code


@inlined
def to_byte(value, nearest):
    """Clip to 0…255 and cut the fraction off, or round half to even where `nearest`."""
    value = min(max(value, f32(0)), f32(255))
    if nearest:
        value = np.rint(value)
    return np.uint8(i32(value))


@inlined
def take_apart(pixels, red, green, blue):
    """The three colors of a row of pixels, each in a row of its own, where loops vectorize."""
    for x in range(pixels.size // 3):
        red[x], green[x], blue[x] = pixels[3 * x], pixels[3 * x + 1], pixels[3 * x + 2]


@inlined
def put_together(red, green, blue, pixels):
    """Undo `take_apart`."""
    for x in range(pixels.size // 3):
        pixels[3 * x], pixels[3 * x + 1], pixels[3 * x + 2] = red[x], green[x], blue[x]
