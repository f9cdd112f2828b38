"""Everything that a run needs is looked for before the first image; what is missing is listed at once.

Files of the catalog are fetched if that is possible. What cannot be had is collected: textures, data,
weights, packages, disk space. A run that cannot finish does not start.
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
from beaufort._core.text import byte_size
from beaufort.corruptions import corruptions
from beaufort.models import ModelFileError
from beaufort.store import FileStore, Store, StoreError
from beaufort.suites.conditions import Condition

T = TypeVar("T")


class NotReadyError(BeaufortError, OSError):
    """Files, packages or disk space that a run needs are missing."""


@dataclass
class Requirements:
    """Collects what a run needs and does not have."""

    missing: list[tuple[str, Exception | str]] = field(default_factory=list)
    """What each thing is, and why it is missing."""
    wanted: dict[str, None] = field(default_factory=dict)
    """Entries of the catalog among them."""

    def get(self, what: str, find: Callable[[], T]) -> T | None:
        """The result of `find`; None if something is missing, which is noted. Other errors are raised."""
        try:
            return find()
        except (AssetError, MissingExtraError, ModelFileError) as error:
            self.missing.append((what, error))
            asset = getattr(error, "asset", "")
            self.wanted.update({one.name: None for one in entries.values() if asset and asset in one.files})
            return None

    def files(self, conditions: Iterable[Condition]) -> None:
        """Fetch what corruptions need."""
        for name in dict.fromkeys(link.name for condition in conditions for link in condition.links):
            for entry in corruptions[name].files:
                self.get(f"{entry}, which the corruption {name} needs", lambda entry=entry: pull(entry))  # type: ignore[misc]

    def room(self, store: Store, needed: float) -> None:
        """Check whether predictions of so many bytes can be written, and fit on the disk."""
        if not isinstance(store, FileStore):
            return
        if not store.disk.local:
            store.disk.check_place()
            return
        place = Path(store.disk.full(""))
        while not place.exists() and place != place.parent:
            place = place.parent
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            why = StoreError(f"{store.location} cannot be a store: {place} is not writable")
            self.missing.append(("a place for the store", why))
            return
        free = shutil.disk_usage(place).free
        if needed > free:
            lacks = f"the predictions take about {byte_size(needed)}, and {byte_size(free)} are free"
            self.missing.append((f"room on the disk of {store.location}", lacks))

    def check(self) -> None:
        """Raise an error that lists all that is missing, and how to get it."""
        if not self.missing:
            return
        if len(self.missing) == 1 and isinstance(error := self.missing[0][1], Exception) and not self.wanted:
            raise error
        count = len(self.missing)
        things = "1 thing that it needs is" if count == 1 else f"{count} things that it needs are"
        lines = [f"the run cannot start, because {things} missing:"]
        lines += [f"- {what}: {why}" for what, why in self.missing]
        if self.wanted:
            command = f"beaufort data pull {' '.join(self.wanted)}"
            lines.append(
                f"`{command}` fetches the files. For a machine without a network, run `{command} --output "
                "FOLDER` on another one, copy FOLDER over, and name it in BEAUFORT_MIRROR"
            )
        raise NotReadyError("\n".join(lines))
