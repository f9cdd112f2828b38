"""The whole study: tasks of work first, then tables, figures and pages from whatever is there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from beaufort.errors import OptionError
from beaufort.reproduce.enhancements.photo_files import condition_file, lines_file
from beaufort.reproduce.enhancements.settings import (
    DESIGNS,
    EnhancementSettings,
    PhotoPass,
    named_data,
    photo_conditions,
)
from beaufort.reproduce.record import check_folder, note_run
from beaufort.reproduce.tasks import StudyOutcome, Task, run_tasks

__all__ = ["plan", "run_study"]

_PHOTOS = "beaufort.reproduce.enhancements.photo_work"
_TRAININGS = "beaufort.reproduce.enhancements.trainings:make_arm"
_ONE_SEED = frozenset({"transfer"})
"""Questions with so many arms that one seed has to do."""


def run_study(
    folder: Path,
    *,
    only: tuple[str, ...],
    data: Mapping[str, str],
    device: str,
    seeds: int,
    jobs: int,
    stop_after_s: float | None,
    rehearse: bool,
    tell: Callable[[str], None] | None,
) -> StudyOutcome:
    """Do what is missing of the study, then write its tables and pages."""
    start = time.monotonic()
    for part in only:
        if part not in (*DESIGNS, "page"):
            known = ", ".join((*DESIGNS, "page"))
            raise OptionError(f"only must name parts of imagenet-c-enhancements ({known}), got {part!r}")
    if seeds < 1:
        raise OptionError(f"seeds must be at least 1, got {seeds}")
    settings = EnhancementSettings(device=device, seeds=seeds, rehearse=rehearse, **named_data(data))
    check_folder(folder, rehearse=rehearse)
    deadline = None if stop_after_s is None else start + stop_after_s
    phases = [] if only == ("page",) else plan(settings, only)
    outcome = run_tasks(phases, folder, jobs=jobs, deadline=deadline, tell=tell)
    if outcome.done:
        told = f"beaufort reproduce imagenet-c-enhancements --device {device} --seeds {seeds} --jobs {jobs}"
        told += f" --only {','.join(only)}" if only else ""
        note_run(
            folder, {"command": told, "seconds": round(time.monotonic() - start, 1), "tasks": outcome.done}
        )
    if outcome.finished or only == ("page",):
        _write_pages(folder, settings, tell)
    return outcome


def _write_pages(folder: Path, settings: EnhancementSettings, tell: Callable[[str], None] | None) -> None:
    from beaufort.reproduce.enhancements.writing import write_all

    for path in write_all(folder, settings):
        if tell:
            tell(f"{path.name} written")


def plan(settings: EnhancementSettings, only: tuple[str, ...] = ()) -> list[list[Task]]:
    """What there is to do, in phases; tasks of a phase need those of phases before it.

    Photos come first, a condition at a time; then networks from scratch; then what starts from them.
    """
    chosen = [design for design in DESIGNS if not only or design in only]
    common = {"settings": settings.as_dict()}
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
    if not os.environ.get("BEAUFORT_STYLIZER"):
        passes = [which for which in passes if which != "styles"]
        if not {"nlm", "clahe"} & set(designs):
            passes = [which for which in passes if which != "fronts"]
    statistics = [
        Task(
            f"{network} behind CLAHE",
            lines_file(network),
            f"{_PHOTOS}:renormalize",
            {**common, "network": network},
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

    arms = training_arms(settings)  # all arms with one seed come before a second seed of any
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
    return [sorted(phase, key=lambda task: int(task.options["seed"])) for phase in (first, second)]


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
