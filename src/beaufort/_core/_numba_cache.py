"""Compiled functions on disk, loaded without starting Numba's compiler; uses private modules of Numba.

Before Numba loads a cached function it imports everything a compiler needs, among it SciPy's linear algebra
and a C parser, which takes longer than importing Numba. A compiled function needs only Numba's allocator and
addresses known since the import. Functions that hash, or that have parallel loops of Numba's own, would need
more; there are none.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys


def cached(function, compiled):
    """Let a compiled function be cached on disk.

    It is compiled again if a module changes in its own folder or the folder above it, or if `compiled.py`
    does: those hold the functions that kernels call, and Numba itself watches only the own module.
    """
    if compiled is not function:  # they are the same where NUMBA_DISABLE_JIT is set
        folder = Path(function.__code__.co_filename).parent
        own = _stamps(Path(__file__).parent, "compiled.py")
        compiled._cache = _Cache(function, (own, _stamps(folder.parent), _stamps(folder)))
    return compiled


@cache
def _stamps(folder: Path, pattern: str = "*.py") -> tuple[tuple[float, int], ...]:
    """Return modification times and sizes of the modules in a folder."""
    found = [path.stat() for path in sorted(folder.glob(pattern))]
    return tuple((one.st_mtime, one.st_size) for one in found)


class _Files(IndexDataCacheFile):
    """The cache files of a function, safe to write for several processes at once.

    Numba numbers the files of a function. Two processes that compile it for different types at the same time
    would take the same number, and one would later load what the other had compiled. Here the file name
    follows from the signature, and the file is written before the index names it.
    """

    def save(self, key, data):
        overloads = self._load_index()
        name = self._index_name.removesuffix("nbi") + sha256(repr(key).encode()).hexdigest()[:16] + ".nbc"
        self._save_data(name, data)
        self._save_index({**overloads, key: name})


class _Cache(FunctionCache):
    """A function's cache that is invalidated by changes of several folders."""

    def __init__(self, function, stamps):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), *stamps
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig, target_context):
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
