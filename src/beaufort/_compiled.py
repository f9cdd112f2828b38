"""Functions that Numba compiles once: they stay on disk, and are loaded from there without the compiler."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

__all__ = ["kept"]


def kept(function: Callable[..., Any], *, beside: Path | None = None, **options: Any) -> Callable[..., Any]:
    """Compile a function when it is first called, without the interpreter's lock, and keep it on disk.

    Args:
        function: what to compile.
        beside: a folder whose modules it may call, besides those of its own folder.
        **options: of `numba.njit`.
    """
    compiled: Any = numba.njit(nogil=True, **options)(function)
    if compiled is not function:  # as it is where NUMBA_DISABLE_JIT is set
        folder = Path(function.__code__.co_filename).parent
        compiled._cache = _Kept(function, (beside or folder, folder))  # type: ignore[no-untyped-call]
    return compiled  # type: ignore[no-any-return]


@cache
def _stamps(folder: Path) -> tuple[tuple[float, int], ...]:
    """What tells that a module of a folder has changed."""
    found = [path.stat() for path in sorted(folder.glob("*.py"))]
    return tuple((one.st_mtime, one.st_size) for one in found)


class _Files(IndexDataCacheFile):
    """The files of a function, safe to write for several processes at once.

    Numba counts the files of a function. Two processes that compile it for different types at the same time
    would take the same number, and one would later load what the other had compiled. Here the name of a file
    follows from what it is for, and it is written before the index names it: no index names an older one.
    """

    def save(self, key, data):
        overloads = self._load_index()
        name = self._index_name.removesuffix("nbi") + sha256(repr(key).encode()).hexdigest()[:16] + ".nbc"
        self._save_data(name, data)
        self._save_index({**overloads, key: name})


class _Kept(FunctionCache):
    """Functions on disk, loaded without the compiler.

    Before it loads a function, Numba imports all that a compiler needs to know, SciPy's linear algebra and a
    parser of C among it, which takes longer than Numba's own import. What a compiled function needs is memory
    from Numba's allocator, and the addresses that are known since the import. One that is not on disk is
    compiled with everything, as ever.

    Functions that hash, or that have parallel loops of Numba's own, would need more; there are none.

    A function is compiled anew if its module has changed, or one of the folders that are named: Numba looks
    at a function's own module only, and not at those whose functions it calls.
    """

    def __init__(self, function, folders):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), *map(_stamps, folders)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig, target_context):
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
