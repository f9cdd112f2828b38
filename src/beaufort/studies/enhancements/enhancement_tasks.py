"""The tasks of the study: passes over photos, and training runs of every arm and its control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from beaufort._core.errors import OptionError
from beaufort.studies.engine import PAGE, Study, StudyOptions, definition
from beaufort.studies.enhancements.enhancement_arms import (
    NETWORKS,
    STUDY_NAME,
    EnhancementSettings,
    PhotoPass,
    TrainingArm,
    condition_file,
    data_settings,
    lines_file,
    photo_conditions,
    training_arms,
)
from beaufort.studies.study_tasks import StudyTask
from beaufort.training.trained import FACTS

QUESTIONS = tuple(definition(STUDY_NAME)["questions"])
"""Names of the questions, for `only`."""

_PASSES: Mapping[PhotoPass, frozenset[str]] = {
    "filters": frozenset({"nlm", "clahe", "style"}),
    "crops": frozenset({"ten-crop"}),
    "styles": frozenset({"style"}),
}
"""The questions that each pass over the photos is for."""
_ONE_SEED = frozenset({"transfer"})
"""Questions with so many arms that each is trained once."""
_WITHOUT_CONTROL = frozenset({"aggregation", "multiscale", "shake", "small", "ten-crop"})
"""Questions without fine-tuning, so that its control is not needed."""


def plan(settings: EnhancementSettings, only: Sequence[str] = ()) -> list[list[StudyTask]]:
    """Return the tasks in phases: photos, one condition per task, then training runs."""
    questions = [name for name in QUESTIONS if not only or name in only]
    return [*_photo_phases(settings, questions), *_training_phases(settings, questions)]


def _task(name: str, file: str, call: str, options: Mapping[str, Any], **more: Any) -> StudyTask:
    return StudyTask(name, file, f"beaufort.studies.enhancements.{call}", options, **more)


def _photo_phases(settings: EnhancementSettings, questions: Sequence[str]) -> list[list[StudyTask]]:
    if not (settings.photos and settings.networks):
        return []
    passes = [which for which, some in _PASSES.items() if some & set(questions)]
    filters = tuple(condition_file("filters", one) for one in photo_conditions(settings, "filters"))
    statistics = [
        _task(
            f"{network} behind CLAHE",
            lines_file(network),
            "photo_runs:renormalize",
            {"settings": settings, "network": network},
            serves=filters,
        )
        for network in (settings.network_files if "filters" in passes else ())
    ]
    conditions = [
        _task(
            f"{which}, {condition}",
            condition_file(which, condition),
            "photo_runs:predict_condition",
            {"settings": settings, "which": which, "condition": condition},
        )
        for which in passes
        for condition in photo_conditions(settings, which)
    ]
    return [statistics, conditions]


def _training_phases(settings: EnhancementSettings, questions: Sequence[str]) -> list[list[StudyTask]]:
    arms = training_arms(settings)
    groups = [name for name in questions if arms.get(name)]
    if not groups:
        return []
    groups = ["base", *(["control"] if set(groups) - _WITHOUT_CONTROL else []), *groups]
    known = {arm.name: arm for some in arms.values() for arm in some}
    seeds = {arm.name: 1 if group in _ONE_SEED else settings.seeds for group in groups for arm in arms[group]}
    seeds |= {arm: settings.seeds for name in seeds if (arm := known[name].start) and arm not in seeds}
    return [
        [
            task
            for seed in range(settings.seeds)  # all arms with one seed before any with the next
            for task in _tasks_of_seed([known[name] for name in seeds if seed < seeds[name]], seed, settings)
        ]
    ]


def _tasks_of_seed(
    arms: Sequence[TrainingArm], seed: int, settings: EnhancementSettings
) -> Iterator[StudyTask]:
    """Yield tasks for networks that arms start from or test, then for the arms."""
    files = {arm.name: f"cifar/{arm.name}-seed{seed}.npz" for arm in arms}
    starts = dict.fromkeys(arm.start or arm.tests for arm in arms if arm.start or arm.tests)
    networks = {name: f"models/{name}-seed{seed}/{FACTS}" for name in starts}
    for name, file in networks.items():
        serves = tuple(files[arm.name] for arm in arms if name in {arm.name, arm.start, arm.tests})
        options = {"settings": settings, "arm": name, "seed": seed}
        title = f"{name}, seed {seed}, trained"
        yield _task(title, file, "cifar_runs:make_start", options, serves=serves, after=())
    for arm in arms:
        needs = tuple(networks[one] for one in (arm.name, arm.start, arm.tests) if one in networks)
        options = {"settings": settings, "arm": arm.name, "seed": seed}
        yield _task(f"{arm.name}, seed {seed}", files[arm.name], "cifar_runs:make_arm", options, after=needs)


def _settings(options: StudyOptions) -> EnhancementSettings:
    return options.settings(EnhancementSettings, **data_settings(options.data))


def _plan(options: StudyOptions) -> list[list[StudyTask]]:
    settings = _settings(options)
    with_photos = {name for names in _PASSES.values() for name in names}
    if chosen := [name for name in options.parts or QUESTIONS if name in with_photos]:
        if not (settings.photos and settings.networks):
            text = "add --data imagenet=PATH and --data networks=PATH"
            if set(options.parts) == {"nlm"}:
                raise OptionError(f"nlm requires photos and networks: {text}")
            if options.log:
                options.log(f"{', '.join(chosen)} without photos: {text}")
        elif not settings.network_files:
            files = ", ".join(f"{name}.onnx" for name in NETWORKS)
            raise OptionError(f"{settings.networks} has none of the networks {files}")
    return plan(settings, options.parts)


def _files(folder: Path, options: StudyOptions) -> Iterator[tuple[str, bytes]]:
    from beaufort.studies.enhancements.enhancement_pages import study_files

    return study_files(folder, _settings(options))


STUDY = Study(
    name=STUDY_NAME,
    parts=(*QUESTIONS, PAGE),
    data=("imagenet", "networks", "cifar10"),
    plan=_plan,
    files=_files,
    folder="enhancements",
    seeds=5,
)
