"""What a published data set is to be made from, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beaufort.data.writers.outcome import Progress


@dataclass(frozen=True)
class Request:
    """The arguments of `make_dataset`, checked."""

    dataset: str
    source: str
    """A text for `open_dataset`."""
    output: Path
    names: tuple[str, ...]
    seed: int
    limit: int | None
    jobs: int
    progress: Progress | None

    def settings(self, **more: Any) -> dict[str, Any]:
        """What an output folder must have been made with."""
        return {"command": "make", "dataset": self.dataset, "seed": self.seed, **more}
