"""What the study of enhancements consists of: questions, each with its arms and their controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from beaufort.errors import OptionError
from beaufort.reproduce.enhancements.photo_files import condition_file, lines_file
from beaufort.reproduce.enhancements.settings import (
    DESIGNS,
    NETWORKS,
    EnhancementSettings,
    PhotoPass,
    named_data,
    photo_conditions,
)
from beaufort.reproduce.study import PAGE, Study, StudyOptions
from beaufort.reproduce.tasks import Task

__all__ = ["STUDY", "plan"]

_PHOTOS = "beaufort.reproduce.enhancements.photo_work"
_TRAININGS = "beaufort.reproduce.enhancements.trainings:make_arm"
_ONE_SEED = frozenset({"transfer"})
"""Questions with so many arms that one seed has to do."""


def plan(settings: EnhancementSettings, only: tuple[str, ...] = ()) -> list[list[Task]]:
    """What there is to do, in phases; tasks of a phase need those of phases before it.

    Photos come first, a condition at a time; then networks from scratch; then what starts from them.
    """
    chosen = [design for design in DESIGNS if not only or design in only]
    common = {"settings": asdict(settings)}
    return [*_photo_phases(settings, chosen, common), *_training_phases(settings, chosen, common)]


_PASSES: Mapping[PhotoPass, frozenset[str]] = {
    "fronts": frozenset({"nlm", "clahe", "style"}),
    "crops": frozenset({"ten-crop"}),
    "styles": frozenset({"style"}),
}
"""The questions that each pass over the photos is for."""


def _photo_phases(
    settings: EnhancementSettings, designs: list[str], common: Mapping[str, Any]
) -> list[list[Task]]:
    if not (settings.photos and settings.networks):
        return []
    passes = [which for which, questions in _PASSES.items() if questions & set(designs)]
    statistics = [
        Task(
            f"{network} behind CLAHE",
            lines_file(network),
            f"{_PHOTOS}:renormalize",
            {**common, "network": network},
            serves=tuple(condition_file("fronts", one) for one in photo_conditions(settings, "fronts")),
        )
        for network in (settings.network_files if "fronts" in passes else ())
    ]
    conditions = [
        Task(
            f"{which}, {condition}",
            condition_file(which, condition),
            f"{_PHOTOS}:answer_condition",
            {**common, "which": which, "condition": condition},
        )
        for which in passes
        for condition in photo_conditions(settings, which)
    ]
    return [statistics, conditions]


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
                options = {**common, "arm": arm.name, "seed": seed}
                file = f"cifar/{arm.name}-seed{seed}.npz"
                task = Task(f"{arm.name}, seed {seed}", file, _TRAININGS, options)
                (second if arm.start or arm.tests else first).append(task)
    if (
        any(arm.start == "resnet56" for group in groups for arm in arms[group])
        and "aggregation" not in groups
    ):
        first += _starts(settings, "resnet56", common)
    return _seed_by_seed(settings.seeds, first, second)


def _seed_by_seed(seeds: int, first: list[Task], second: list[Task]) -> list[list[Task]]:
    """All tasks with one seed before any with the next; those that start from others in a later phase."""

    def with_seed(tasks: list[Task], seed: int) -> list[Task]:
        return [task for task in tasks if task.options["seed"] == seed]

    # what starts from the networks of a seed shares a phase with the next seed's, so that no job has to wait
    phases = [[*with_seed(second, seed - 1), *with_seed(first, seed)] for seed in range(seeds + 1)]
    return [phase for phase in phases if phase]


_FROM_SCRATCH = frozenset({"aggregation", "multiscale", "shake", "small"})


def _starts(settings: EnhancementSettings, name: str, common: Mapping[str, Any]) -> list[Task]:
    return [
        Task(
            f"{name}, seed {seed}",
            f"cifar/{name}-seed{seed}.npz",
            _TRAININGS,
            {**common, "arm": name, "seed": seed},
        )
        for seed in range(settings.seeds)
    ]


def _settings(options: StudyOptions) -> EnhancementSettings:
    return EnhancementSettings(
        device=options.device, seeds=options.seeds, rehearse=options.rehearse, **named_data(options.data)
    )


def _plan(options: StudyOptions) -> list[list[Task]]:
    settings = _settings(options)
    _tell_about_photos(settings, options)
    return plan(settings, options.parts)


def _tell_about_photos(settings: EnhancementSettings, options: StudyOptions) -> None:
    """Say what cannot be done without photos or networks; an error if nothing else is asked for."""
    with_photos = {design for designs in _PASSES.values() for design in designs}
    asked = [design for design in options.parts or DESIGNS if design in with_photos]
    if not asked:
        return
    if not (settings.photos and settings.networks):
        told = "photos take --data imagenet=FOLDER and --data networks=FOLDER"
        if set(options.parts) == {"nlm"}:
            raise OptionError(f"nlm must have photos and networks: {told}")
        options.say(f"no photos for {', '.join(asked)}: {told}")
    elif not settings.network_files:
        files = ", ".join(f"{name}.onnx" for name in NETWORKS)
        raise OptionError(
            f"networks must be a folder with {files} or some of them, got {settings.networks!r}"
        )


def _files(folder: Path, options: StudyOptions) -> Iterator[tuple[str, bytes]]:
    from beaufort.reproduce.enhancements.writing import study_files

    return study_files(folder, _settings(options))


STUDY = Study(
    name="imagenet-c-enhancements",
    parts=(*DESIGNS, PAGE),
    data=("imagenet", "networks", "cifar10"),
    plan=_plan,
    files=_files,
    folder="enhancements",
    seeds=5,
)
