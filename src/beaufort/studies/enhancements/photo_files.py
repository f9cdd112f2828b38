"""The files of answers about photos: one for each condition, with all networks and arms of a pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.text import counted
from beaufort.studies.answers import StudyAnswers, read_answers
from beaufort.studies.enhancements.settings import EnhancementSettings, PhotoPass, photo_conditions


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
    each = {file: read_answers(file) for file in files}
    first = each[files[0]]
    for file, one in each.items():
        if one.conditions != first.conditions or one.right.shape != first.right.shape:
            raise OptionError(
                f"{file} must have answers about the photos, networks and arms of {files[0].name} "
                f"({_asked(first)}), got {_asked(one)}; delete the one that is out of date to make it anew"
            )
    found: dict[str, dict[str, StudyAnswers]] = {}
    for key in first.conditions:
        network, _, arm = key.partition("/")
        right = np.stack([one.row(key) for one in each.values()]).astype(np.uint8)
        found.setdefault(network, {})[arm] = StudyAnswers(names, right, np.ones(right.shape[1], np.uint8), {})
    return found


def _asked(answers: StudyAnswers) -> str:
    networks = dict.fromkeys(key.partition("/")[0] for key in answers.conditions)
    return f"{counted(answers.right.shape[1], 'photo')}, {', '.join(networks)}"
