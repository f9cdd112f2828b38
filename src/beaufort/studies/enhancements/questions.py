"""Every question of the study, and what answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from beaufort.studies.enhancements.about_architectures import about_aggregation, about_small
from beaufort.studies.enhancements.about_photos import about_clahe, about_nlm, about_ten_crops
from beaufort.studies.enhancements.about_style import about_style
from beaufort.studies.enhancements.about_trainings import (
    about_augmentation,
    about_multiscale,
    about_shake,
    about_stability,
    about_transfer,
)
from beaufort.studies.enhancements.findings import StudyArms, StudyFinding
from beaufort.studies.enhancements.settings import DESIGNS

_FINDERS: Mapping[str, Callable[[StudyArms], StudyFinding]] = {
    "nlm": about_nlm,
    "clahe": about_clahe,
    "stability": about_stability,
    "ten-crop": about_ten_crops,
    "small": about_small,
    "aggregation": about_aggregation,
    "multiscale": about_multiscale,
    "transfer": about_transfer,
    "shake": about_shake,
    "style": about_style,
    "augmentation": about_augmentation,
}


def find_all(arms: StudyArms) -> list[StudyFinding]:
    """A finding for each question, in order."""
    return [_FINDERS[design](arms) for design in DESIGNS]
