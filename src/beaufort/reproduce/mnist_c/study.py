"""The whole study: tasks of work first, then tables, figures and pages from whatever is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from beaufort.errors import OptionError
from beaufort.reproduce.mnist_c.settings import Settings
from beaufort.reproduce.record import check_folder, note_run
from beaufort.reproduce.tasks import StudyOutcome, run_tasks

__all__ = ["run_study", "write_pages"]


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
    from beaufort.reproduce.mnist_c.work import PARTS, plan

    start = time.monotonic()
    for part in only:
        if part not in (*PARTS, "page"):
            raise OptionError(
                f"only must name parts of mnist-c ({', '.join((*PARTS, 'page'))}), got {part!r}"
            )
    if seeds < 1:
        raise OptionError(f"seeds must be at least 1, got {seeds}")
    settings = Settings(device=device, seeds=seeds, rehearse=rehearse, **_places(data))
    check_folder(folder, rehearse=rehearse)
    deadline = None if stop_after_s is None else start + stop_after_s
    phases = [] if only == ("page",) else plan(settings, only)
    outcome = run_tasks(phases, folder, jobs=jobs, deadline=deadline, tell=tell)
    if outcome.done:
        told = f"beaufort reproduce mnist-c --device {device} --seeds {seeds} --jobs {jobs}"
        told += f" --only {','.join(only)}" if only else ""
        note_run(
            folder, {"command": told, "seconds": round(time.monotonic() - start, 1), "tasks": outcome.done}
        )
    if outcome.finished or only == ("page",):
        write_pages(folder, settings, tell)
    return outcome


def _places(data: Mapping[str, str]) -> dict[str, str]:
    """Where train and test digits lie."""
    for name in data:
        if name != "mnist":
            raise OptionError(f"data must be given as mnist=FOLDER, got {name!r}")
    if "mnist" not in data:
        return {}
    place = data["mnist"]
    return {"train": f"mnist:{place}#train", "test": f"mnist:{place}#test"}


def write_pages(folder: Path, settings: Settings, tell: Callable[[str], None] | None = None) -> None:
    """Tables, figures, Markdown and HTML from the answers in a folder."""
    from beaufort.reproduce.mnist_c.writing import write_all

    for path in write_all(folder, settings):
        if tell:
            tell(f"{path.name} written")
