"""The files of answers about photos: one for each condition, with all networks and arms of a pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from beaufort.reproduce.answers import StudyAnswers, read_answers
from beaufort.reproduce.enhancements.settings import EnhancementSettings, PhotoPass, photo_conditions

__all__ = ["condition_file", "lines_file", "photo_answers"]


def condition_file(which: PhotoPass, condition: str) -> str:
    """Where the answers under a condition are, below the study's folder."""
    return f"photos/{which}/{condition}.npz"


def lines_file(network: str) -> str:
    """Where the statistics of a network behind CLAHE are, below the study's folder."""
    return f"photos/renormalized/{network}.npz"


def photo_answers(
    folder: Path, which: PhotoPass, settings: EnhancementSettings
) -> dict[str, dict[str, StudyAnswers]]:
    """The answers of a pass by network and arm; empty until all of its conditions are there."""
    names = photo_conditions(settings, which)
    files = [folder / condition_file(which, name) for name in names]
    if not all(file.is_file() for file in files):
        return {}
    each = [read_answers(file) for file in files]
    found: dict[str, dict[str, StudyAnswers]] = {}
    for row, key in enumerate(each[0].conditions):
        network, _, arm = key.partition("/")
        right = np.stack([one.right[row] for one in each]).astype(np.uint8)
        found.setdefault(network, {})[arm] = StudyAnswers(names, right, np.ones(right.shape[1], np.uint8), {})
    return found
