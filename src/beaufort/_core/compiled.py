"""Compiling functions with Numba: cached on disk, without the GIL, with or without fused rounding.

Kernels have no type annotations: Numba infers their types from each call (see the mypy overrides in
`pyproject.toml`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

try:
    from beaufort._core import _numba_cache
except (ImportError, AttributeError):  # it uses private modules of Numba, which a release may move
    _numba_cache = None  # type: ignore[assignment]

i32, f32 = np.int32, np.float32


FAST = {"contract", "nnan", "nsz"}
"""Products and sums may be fused, and no value is NaN or minus zero; nothing is reordered."""


_PLAIN: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
"""Options of kernels: division as in NumPy, and no C wrapper."""

_PART: dict[str, Any] = _PLAIN | {"no_cpython_wrapper": True}
"""Options of parts of kernels: no Python wrapper either."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over arrays."""
    return kept(function, fastmath=FAST, **_PLAIN)


def exact_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop without fusing products and sums, where every rounding counts."""
    return kept(function, **_PLAIN)


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only kernels can call, which takes less time than `kernel`."""
    compiled: Callable[..., Any] = numba.njit(fastmath=FAST, **_PART)(function)
    return compiled


def exact_part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only `exact_kernel`s call."""
    compiled: Callable[..., Any] = numba.njit(**_PART)(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function into the kernels that call it."""
    compiled: Callable[..., Any] = numba.njit(inline="always", fastmath=FAST, error_model="numpy")(function)
    return compiled


@intrinsic
def fused(typing_context, a, b, c):
    """Return a·b + c with one rounding; all float32."""
    signature = numba.float32(numba.float32, numba.float32, numba.float32)

    def code(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return signature, code


@inlined
def to_byte(value, nearest):
    """Clip to 0…255 and truncate, or round half to even if `nearest`."""
    value = min(max(value, f32(0)), f32(255))
    if nearest:
        value = np.rint(value)
    return np.uint8(i32(value))


@inlined
def take_apart(pixels, red, green, blue):
    """Split a row of pixels into one row per color, so that loops vectorize."""
    for x in range(pixels.size // 3):
        red[x], green[x], blue[x] = pixels[3 * x], pixels[3 * x + 1], pixels[3 * x + 2]


@inlined
def put_together(red, green, blue, pixels):
    """Undo `take_apart`."""
    for x in range(pixels.size // 3):
        pixels[3 * x], pixels[3 * x + 1], pixels[3 * x + 2] = red[x], green[x], blue[x]


@inlined
def copy_values(source, target):
    """Copy values to the target; for `target[:] = source` Numba would also compile an error message."""
    for x in range(target.size):
        target[x] = source[x]


def kept(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function on its first call, without the GIL, and cache the result on disk.

    Args:
        function: the function to compile.
        **options: options of `numba.njit`.
    """
    if _numba_cache is None:
        compiled: Callable[..., Any] = numba.njit(nogil=True, cache=True, **options)(function)
    else:
        compiled = _numba_cache.cached(function, numba.njit(nogil=True, **options)(function))  # type: ignore[no-untyped-call]
    return compiled
