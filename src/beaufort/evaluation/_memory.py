"""A store in memory, for answers that nobody wants to keep."""

from __future__ import annotations

import weakref
from uuid import uuid4

from beaufort.store import FileStore


def memory_store() -> FileStore:
    """An empty store in memory, freed with the last reference to it."""
    store = FileStore(f"memory://beaufort-{uuid4().hex}")
    weakref.finalize(store, _forget, store.location)
    return store


def _forget(location: str) -> None:
    from fsspec import filesystem

    memory = filesystem("memory")
    if memory.exists(location):
        memory.rm(location, recursive=True)
