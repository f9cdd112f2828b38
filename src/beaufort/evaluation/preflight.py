"""Requirements of a run, checked before the first image.

Files of the catalog are downloaded if possible. Everything missing (textures, data, weights, packages, disk
space) is reported together, so that a run that cannot finish does not start.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from beaufort._core.catalog import entries, pull
from beaufort._core.errors import AssetError, BeaufortError, MissingExtraError
from beaufort._core.text import byte_size, counted
from beaufort.corruptions import corruptions
from beaufort.models import ModelFileError
from beaufort.store import FileStore, Store, StoreError
from beaufort.suites.conditions import Condition

T = TypeVar("T")


class NotReadyError(BeaufortError, OSError):
    """Files, packages or disk space that a run needs are missing."""


@dataclass
class Requirements:
    """Collects missing requirements of a run."""

    missing: list[tuple[str, Exception | str]] = field(default_factory=list)
    """A description of each requirement, and why it is missing."""
    wanted: dict[str, None] = field(default_factory=dict)
    """Missing entries of the catalog."""

    def get(self, what: str, find: Callable[[], T]) -> T | None:
        """Return the result of `find`; None if a requirement is missing. Other errors are raised."""
        try:
            return find()
        except (AssetError, MissingExtraError, ModelFileError) as error:
            self.missing.append((what, error))
            asset = getattr(error, "asset", "")
            self.wanted.update({one.name: None for one in entries.values() if asset and asset in one.files})
            return None

    def files(self, conditions: Iterable[Condition]) -> None:
        """Download the files that corruptions need."""
        names = [
            name
            for one in conditions
            for name in (getattr(one.shift, "corruptions", ()) or (link.name for link in one.links))
        ]
        for name in dict.fromkeys(names):
            for entry in corruptions[name].files:
                self.get(f"{entry}, used by the corruption {name}", lambda entry=entry: pull(entry))  # type: ignore[misc]

    def room(self, store: Store, needed: float) -> None:
        """Check that predictions of this many bytes can be written and fit on the disk."""
        if not isinstance(store, FileStore):
            return
        if not store.disk.local:
            store.disk.check_place()
            return
        place = Path(store.disk.full(""))
        while not place.exists() and place != place.parent:
            place = place.parent
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            why = StoreError(f"cannot write to the store {store.location}: {place} is not writable")
            self.missing.append(("the store", why))
            return
        free = shutil.disk_usage(place).free
        if needed > free:
            why_full = f"the predictions need about {byte_size(needed)}, and {byte_size(free)} are free"
            self.missing.append((f"disk space for {store.location}", why_full))

    def check(self) -> None:
        """Raise an error that lists everything missing, and how to get it."""
        if not self.missing:
            return
        if len(self.missing) == 1 and isinstance(error := self.missing[0][1], Exception) and not self.wanted:
            raise error
        count = len(self.missing)
        lines = [f"cannot start the run: {counted(count, 'requirement')} missing"]
        lines += [f"- {what}: {why}" for what, why in self.missing]
        if self.wanted:
            command = f"beaufort data pull {' '.join(self.wanted)}"
            lines.append(
                f"`{command}` downloads the files. For a machine without network access, run `{command} "
                "--output FOLDER` on another one, copy FOLDER, and set BEAUFORT_MIRROR to it"
            )
        raise NotReadyError("\n".join(lines))
