"""The tasks of the study: passes over photos, and training runs of every arm and its control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from beaufort._core.errors import OptionError
from beaufort.studies.engine import PAGE, Study, StudyOptions
from beaufort.studies.enhancements.enhancement_settings import (
    DESIGNS,
    NETWORKS,
    EnhancementSettings,
    PhotoPass,
    condition_file,
    lines_file,
    named_data,
    photo_conditions,
)
from beaufort.studies.enhancements.training_arms import TrainingArm, training_arms
from beaufort.studies.study_tasks import StudyTask
from beaufort.training.trained import FACTS

_PHOTOS = "beaufort.studies.enhancements.photo_runs"
_ARM = "beaufort.studies.enhancements.cifar_runs:make_arm"
_START = "beaufort.studies.enhancements.cifar_runs:make_start"
_ONE_SEED = frozenset({"transfer"})
"""Questions with so many arms that one seed has to do."""


def plan(settings: EnhancementSettings, only: tuple[str, ...] = ()) -> list[list[StudyTask]]:
    """What there is to do, in phases: photos come first, a condition at a time, then trainings."""
    chosen = [design for design in DESIGNS if not only or design in only]
    common = {"settings": settings}
    return [*_photo_phases(settings, chosen, common), *_training_phases(settings, chosen, common)]


_PASSES: Mapping[PhotoPass, frozenset[str]] = {
    "fronts": frozenset({"nlm", "clahe", "style"}),
    "crops": frozenset({"ten-crop"}),
    "styles": frozenset({"style"}),
}
"""The questions that each pass over the photos is for."""


def _photo_phases(
    settings: EnhancementSettings, designs: list[str], common: Mapping[str, Any]
) -> list[list[StudyTask]]:
    if not (settings.photos and settings.networks):
        return []
    passes = [which for which, questions in _PASSES.items() if questions & set(designs)]
    statistics = [
        StudyTask(
            f"{network} behind CLAHE",
            lines_file(network),
            f"{_PHOTOS}:renormalize",
            {**common, "network": network},
            serves=tuple(condition_file("fronts", one) for one in photo_conditions(settings, "fronts")),
        )
        for network in (settings.network_files if "fronts" in passes else ())
    ]
    conditions = [
        StudyTask(
            f"{which}, {condition}",
            condition_file(which, condition),
            f"{_PHOTOS}:predict_condition",
            {**common, "which": which, "condition": condition},
        )
        for which in passes
        for condition in photo_conditions(settings, which)
    ]
    return [statistics, conditions]


def _training_phases(
    settings: EnhancementSettings, designs: list[str], common: Mapping[str, Any]
) -> list[list[StudyTask]]:
    arms = training_arms(settings)
    wanted = [design for design in designs if arms.get(design)]
    if not wanted:
        return []
    groups = ["base", *(["control"] if set(wanted) - {"ten-crop", *_FROM_SCRATCH} else []), *wanted]
    known = {arm.name: arm for group in arms.values() for arm in group}
    seeds = {arm.name: 1 if group in _ONE_SEED else settings.seeds for group in groups for arm in arms[group]}
    seeds |= {arm: settings.seeds for name in seeds if (arm := known[name].start) and arm not in seeds}
    tasks: list[StudyTask] = []
    for seed in range(settings.seeds):  # all arms with one seed before any with the next
        chosen = [known[name] for name, count in seeds.items() if seed < count]
        tasks += _tasks_of_seed(chosen, seed, common)
    return [tasks]


_FROM_SCRATCH = frozenset({"aggregation", "multiscale", "shake", "small"})


def _tasks_of_seed(arms: Sequence[TrainingArm], seed: int, common: Mapping[str, Any]) -> list[StudyTask]:
    """Networks that arms start from or test, then the arms."""
    answers = {arm.name: f"cifar/{arm.name}-seed{seed}.npz" for arm in arms}
    networks: dict[str, str] = {}
    for arm in arms:
        if of := arm.start or arm.tests:
            networks[of] = f"models/{of}-seed{seed}/{FACTS}"
    tasks = []
    for name, file in networks.items():
        serves = tuple(answers[arm.name] for arm in arms if name in {arm.name, arm.start, arm.tests})
        options = {**common, "arm": name, "seed": seed}
        tasks.append(
            StudyTask(f"{name}, seed {seed}, trained", file, _START, options, serves=serves, after=())
        )
    for arm in arms:
        needs = [networks[one] for one in (arm.name, arm.start, arm.tests) if one in networks]
        options = {**common, "arm": arm.name, "seed": seed}
        name = f"{arm.name}, seed {seed}"
        tasks.append(StudyTask(name, answers[arm.name], _ARM, options, after=tuple(needs)))
    return tasks


def _settings(options: StudyOptions) -> EnhancementSettings:
    return options.settings(EnhancementSettings, **named_data(options.data))


def _plan(options: StudyOptions) -> list[list[StudyTask]]:
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
    from beaufort.studies.enhancements.enhancement_pages import study_files

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
