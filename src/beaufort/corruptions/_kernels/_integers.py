"""Arithmetic of 32 bits, by name.

Numba makes 64 bits of the sum of two `int32`, and where a shift to the right follows, the compiler keeps
them: half as many values fit a vector. These keep 32 bits, and wrap around.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.extending import intrinsic


def _of_32_bits(instruction: str) -> Any:
    @intrinsic
    def operation(typing_context, a, b):
        def code(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments)

        return numba.int32(numba.int32, numba.int32), code

    return operation


add, sub, mul, shl, shr = (_of_32_bits(name) for name in ("add", "sub", "mul", "shl", "ashr"))
