"""The whole study: trainings first, then tables and pages from whatever is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from beaufort.errors import OptionError
from beaufort.reproduce.icons_50.settings import IconSettings
from beaufort.reproduce.record import check_folder, note_run
from beaufort.reproduce.tasks import StudyOutcome, run_tasks

__all__ = ["run_study"]


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
    from beaufort.reproduce.icons_50.work import plan
    from beaufort.reproduce.icons_50.writing import write_all

    start = time.monotonic()
    if seeds < 1:
        raise OptionError(f"seeds must be at least 1, got {seeds}")
    for name in data:
        if name not in ("icons-50", "icons-open"):
            raise OptionError(f"data must be given as icons-50=FOLDER or icons-open=FOLDER, got {name!r}")
    place = f"icons-50:{data['icons-50']}" if "icons-50" in data else "icons-50"
    settings = IconSettings(data=place, device=device, seeds=seeds, rehearse=rehearse)
    phases = [] if only == ("page",) else plan(settings, (part for part in only if part != "page"))
    check_folder(folder, rehearse=rehearse)
    deadline = None if stop_after_s is None else start + stop_after_s
    outcome = run_tasks(phases, folder, jobs=jobs, deadline=deadline, tell=tell)
    if outcome.done:
        told = f"beaufort reproduce icons-50 --device {device} --seeds {seeds} --jobs {jobs}"
        told += f" --only {','.join(only)}" if only else ""
        seconds = round(time.monotonic() - start, 1)
        note_run(folder, {"command": told, "seconds": seconds, "tasks": outcome.done})
    if outcome.finished:
        examples = Path(data["icons-open"]) if "icons-open" in data else None
        for path in write_all(folder, rehearse=rehearse, examples_from=examples):
            if tell:
                tell(f"{path.name} written")
    return outcome
