"""What makes images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from PIL import Image

from beaufort.mining.plan import PlanItem


class Generator(Protocol):
    """Makes images of items; each depends on its item and on `facts`, and on nothing else."""

    batch: int
    """Items that are made at a time."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What made the images, as plain values: a name, settings, digests of what it used."""
        ...

    def check(self, items: Sequence[PlanItem]) -> None:
        """Raise an error if one of the items cannot be made, before any is."""

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """The images of at most `batch` items."""
        ...
