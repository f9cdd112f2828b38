"""Whatever a run needs is looked for before the first image, and what is missing is told at once.

Files of the catalog are fetched if that is possible. What is not to be had is collected: textures, data,
weights, packages, room on the disk. A run that cannot end well does not begin.
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
from beaufort.evaluation.planning import Plan
from beaufort.models import ModelFileError
from beaufort.store import FileStore, Store, StoreError
from beaufort.suites.conditions import Condition

_ROW_BYTES = 40
"""What an answer takes in a store at least: measured are 40 to 58 bytes."""
_LOGIT_BYTES = 1.9
"""What a logit takes, as float16, compressed."""

T = TypeVar("T")


class NotReadyError(BeaufortError, OSError):
    """Files, packages or disk space that a run needs are missing."""


@dataclass
class Needs:
    """Collects what a run needs and does not have."""

    missing: list[tuple[str, Exception | str]] = field(default_factory=list)
    """What each thing is, and why it is not there."""
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

    def room(self, planned: Plan, store: Store, *, keep_logits: bool) -> None:
        """See whether the answers that are still to come can be written, and fit on the disk."""
        if not isinstance(store, FileStore) or not planned.images:
            return
        if not store.disk.local:
            store.disk.check_place()
            return
        place = Path(store.disk.full(""))
        while not place.exists() and place != place.parent:
            place = place.parent
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            why = StoreError(f"{store.location} cannot be a store: {place} cannot be written to")
            self.missing.append(("a place for the store", why))
            return
        needed = sum(
            work.images * (_ROW_BYTES + keep_logits * _LOGIT_BYTES * (work.model.spec.classes or 0))
            for work in planned.works
        )
        free = shutil.disk_usage(place).free
        if needed > free:
            lacks = f"the answers take about {byte_size(needed)}, and {byte_size(free)} are free"
            self.missing.append((f"room on the disk of {store.location}", lacks))

    def check(self) -> None:
        """Raise an error that tells of all that is missing, and how to get it."""
        if not self.missing:
            return
        if len(self.missing) == 1 and isinstance(error := self.missing[0][1], Exception) and not self.wanted:
            raise error
        count = len(self.missing)
        things = "1 thing that it needs is" if count == 1 else f"{count} things that it needs are"
        lines = [f"the run cannot begin, because {things} missing:"]
        lines += [f"- {what}: {why}" for what, why in self.missing]
        if self.wanted:
            command = f"beaufort data pull {' '.join(self.wanted)}"
            lines.append(
                f"`{command}` fetches the files. For a machine without a network, run `{command} --to "
                "FOLDER` on another one, carry FOLDER over, and name it in BEAUFORT_MIRROR"
            )
        raise NotReadyError("\n".join(lines))
