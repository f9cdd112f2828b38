"""A study with few images and tiny training runs, and the same call again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beaufort.studies import StudyOutcome, reproduce

__all__ = ["Rehearsal"]


@dataclass(frozen=True)
class Rehearsal:
    """A study that was run as a rehearsal."""

    study: str
    folder: Path
    data: Mapping[str, str]
    seeds: int = 1

    def again(self, folder: Path | None = None, **options: Any) -> StudyOutcome:
        """Run the study again, with other options or in another folder."""
        known: dict[str, Any] = {"data": self.data, "device": "cpu", "seeds": self.seeds, "rehearse": True}
        return reproduce(self.study, folder or self.folder, **{**known, **options})
