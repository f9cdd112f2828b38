"""What the study of enhancements consists of: questions, each with its arms and their controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from beaufort.reproduce.enhancements.photos import PHOTO_ARMS
from beaufort.reproduce.enhancements.settings import DESIGNS, EnhancementSettings, named_data
from beaufort.reproduce.study import PAGE, Study, StudyOptions
from beaufort.reproduce.tasks import Task

__all__ = ["STUDY", "plan"]

_PHOTOS = "beaufort.reproduce.enhancements.photos:answer_photos"
_TRAININGS = "beaufort.reproduce.enhancements.trainings:make_arm"
_ONE_SEED = frozenset({"transfer"})
"""Questions with so many arms that one seed has to do."""


def plan(settings: EnhancementSettings, only: tuple[str, ...] = ()) -> list[list[Task]]:
    """What there is to do, in phases: networks from scratch, then what starts from them or tests them."""
    chosen = [design for design in DESIGNS if not only or design in only]
    common = {"settings": asdict(settings)}
    photos = [
        Task(
            f"{network} {arm}",
            f"photos/{network}/{arm}.npz",
            _PHOTOS,
            {**common, "network": network, "arm": arm},
        )
        for network in (settings.network_files if settings.photos and settings.networks else ())
        for arm in (_FEW_ARMS if settings.rehearse else PHOTO_ARMS)
        if any(_design_of(arm) in (design, "") and design in _PHOTO_DESIGNS for design in chosen)
    ]
    return [photos, *_training_phases(settings, chosen, common)]


_FEW_ARMS = ("plain", "nlm-h0.8", "clahe", "middle-crop", "ten-crop")
"""Those of a rehearsal."""
_PHOTO_DESIGNS = frozenset({"nlm", "clahe", "ten-crop"})


def _design_of(arm: str) -> str:
    """The question that an arm on photos is for; empty for the control of several."""
    if arm == "plain":
        return ""
    if arm.startswith("nlm"):
        return "nlm"
    return "ten-crop" if arm.endswith("-crop") else "clahe"


def _training_phases(
    settings: EnhancementSettings, designs: list[str], common: Mapping[str, Any]
) -> list[list[Task]]:
    from beaufort.reproduce.enhancements.arms import training_arms

    arms = training_arms(settings)
    wanted = [design for design in designs if arms.get(design)]
    if not wanted:
        return []
    groups = ["base", *(["control"] if set(wanted) - {"ten-crop", *_FROM_SCRATCH} else []), *wanted]
    first: list[Task] = []
    second: list[Task] = []
    for group in dict.fromkeys(groups):
        for arm in arms[group]:
            for seed in range(1 if group in _ONE_SEED else settings.seeds):
                options = {**common, "design": group, "arm": arm.name, "seed": seed}
                file = f"cifar/{arm.name}-seed{seed}.npz"
                task = Task(f"{arm.name}, seed {seed}", file, _TRAININGS, options)
                (second if arm.start or arm.tests else first).append(task)
    if (
        any(arm.start == "resnet56" for group in groups for arm in arms[group])
        and "aggregation" not in groups
    ):
        first += _starts(settings, "resnet56", common)
    return [first, second]


_FROM_SCRATCH = frozenset({"aggregation", "multiscale", "shake", "small"})


def _starts(settings: EnhancementSettings, name: str, common: Mapping[str, Any]) -> list[Task]:
    return [
        Task(
            f"{name}, seed {seed}",
            f"cifar/{name}-seed{seed}.npz",
            _TRAININGS,
            {**common, "design": "aggregation", "arm": name, "seed": seed},
        )
        for seed in range(settings.seeds)
    ]


def _settings(options: StudyOptions) -> EnhancementSettings:
    return EnhancementSettings(
        device=options.device, seeds=options.seeds, rehearse=options.rehearse, **named_data(options.data)
    )


def _plan(options: StudyOptions) -> list[list[Task]]:
    return plan(_settings(options), options.parts)


def _files(folder: Path, options: StudyOptions) -> Iterator[tuple[str, bytes]]:
    from beaufort.reproduce.enhancements.writing import study_files

    return study_files(folder, _settings(options))


STUDY = Study(
    name="imagenet-c-enhancements",
    parts=(*DESIGNS, PAGE),
    data=("imagenet", "networks", "cifar10"),
    plan=_plan,
    files=_files,
)
