"""How Numba kernels are compiled: once, kept on disk, without the interpreter's lock.

Kernels have no type annotations: Numba infers their types from each call, and mypy is told so in
`pyproject.toml`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

__all__ = [
    "FAST",
    "exact_kernel",
    "exact_part",
    "fused",
    "inlined",
    "kernel",
    "part",
    "put_together",
    "take_apart",
    "to_byte",
]

i32, f32 = np.int32, np.float32


FAST = {"contract", "nnan", "nsz"}
"""Products and sums may be fused, and no value is NaN or minus zero; nothing is reordered."""


@cache
def _stamps(folder: Path) -> tuple[tuple[float, int], ...]:
    """What tells that a module of a folder has changed."""
    found = [path.stat() for path in sorted(folder.glob("*.py"))]
    return tuple((one.st_mtime, one.st_size) for one in found)


class _Files(IndexDataCacheFile):
    """The files of a kernel, safe to write for several processes at once.

    Numba counts the files of a kernel. Two processes that compile it for different types at the same time
    would take the same number, and one would later load what the other had compiled. Here the name of a file
    follows from what it is for, and it is written before the index names it: no index names an older one.
    """

    def save(self, key, data):
        overloads = self._load_index()
        name = self._index_name.removesuffix("nbi") + sha256(repr(key).encode()).hexdigest()[:16] + ".nbc"
        self._save_data(name, data)
        self._save_index({**overloads, key: name})


class _Kept(FunctionCache):
    """Kernels on disk, loaded without the compiler.

    Before it loads a kernel, Numba imports all that a compiler needs to know, SciPy's linear algebra and a
    parser of C among it, which takes longer than Numba's own import. What a compiled kernel needs is memory
    from Numba's allocator, and the addresses that are known since the import. A kernel that is not on disk
    is compiled with everything, as ever.

    Kernels that hash, or that have parallel loops of Numba's own, would need more; there are none.

    A kernel is compiled anew if its module has changed, or one beside it, or one beside this: Numba looks at
    a kernel's own module only, and not at those whose functions it calls.
    """

    def __init__(self, function):
        super().__init__(function)
        folders = Path(__file__).parent, Path(function.__code__.co_filename).parent
        stamp = self._impl.locator.get_source_stamp(), *map(_stamps, folders)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig, target_context):
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


_PLAIN: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
"""How kernels are compiled: divisions as in NumPy, and no form that C could call."""

_PART: dict[str, Any] = _PLAIN | {"no_cpython_wrapper": True}
"""How their parts are compiled: with none that Python could call, either."""


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    compiled: Any = numba.njit(nogil=True, **_PLAIN, **options)(function)
    if compiled is not function:  # as it is where NUMBA_DISABLE_JIT is set
        compiled._cache = _Kept(function)  # type: ignore[no-untyped-call]
    return compiled  # type: ignore[no-any-return]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over arrays."""
    return _compiled(function, fastmath=FAST)


def exact_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop in which every rounding counts."""
    return _compiled(function)


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, for kernels to call: Python cannot, and so it takes less time to compile."""
    compiled: Callable[..., Any] = numba.njit(fastmath=FAST, **_PART)(function)
    return compiled


def exact_part(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `part`, where every rounding counts."""
    compiled: Callable[..., Any] = numba.njit(**_PART)(function)
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
