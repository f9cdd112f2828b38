"""How a kernel is compiled: once, kept on disk, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["inlined", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop over arrays; products and sums may be fused, nothing is reordered."""
    compiled = numba.njit(cache=True, nogil=True, fastmath={"contract", "nnan", "nsz"}, error_model="numpy")(function)
    return cast(F, compiled)


def inlined(function: F) -> F:
    """Compile a small function into the kernels that call it."""
    return cast(F, numba.njit(inline="always", fastmath={"contract", "nnan", "nsz"}, error_model="numpy")(function))
