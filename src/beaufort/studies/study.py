"""What a study is: parts, data, work and files; and how any of them is carried out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort._core.files import write_bytes
from beaufort._core.validation import validate_count
from beaufort.studies.record import begin_record, check_folder, note_run
from beaufort.studies.tasks import StudyOutcome, Task, run_tasks

PAGE = "page"
"""The part that is no work: tables, figures and pages from whatever is there."""


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """What is asked for; `reproduce` says what each of them means."""

    only: tuple[str, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    device: str = "auto"
    seeds: int = 3
    jobs: int = 1
    stop_after_s: float | None = None
    rehearse: bool = False
    tell: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        for name, value in (("seeds", self.seeds), ("jobs", self.jobs)):
            validate_count(name, value)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of work that are asked for by name."""
        return tuple(part for part in self.only if part != PAGE)

    def say(self, line: str) -> None:
        """Tell a line to whoever wants to know."""
        if self.tell is not None:
            self.tell(line)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A paper's tables, as work that can be done."""

    name: str
    parts: tuple[str, ...]
    """What can be asked for alone."""
    data: tuple[str, ...]
    """Data sets whose place can be given."""
    plan: Callable[[StudyOptions], Sequence[Sequence[Task]]]
    """The work, in phases."""
    files: Callable[[Path, StudyOptions], Iterable[tuple[str, bytes]]]
    """Names and contents of all tables, figures and pages that the work in a folder suffices for."""
    folder: str = ""
    """Below `results`, if no output is named; its name if empty."""
    seeds: int = 3
    """Trainings of each recipe, if no number is named."""


def carry_out(study: Study, folder: Path, options: StudyOptions) -> StudyOutcome:
    """Do what is missing of a study; when nothing is left, write its files."""
    start = time.monotonic()
    _check_names(study, options)
    check_folder(folder, rehearse=options.rehearse)  # a wrong folder is told before what its work lacks
    phases = study.plan(options) if options.parts or not options.only else []
    if phases or folder.is_dir():  # a page of nothing leaves nothing behind
        begin_record(folder, rehearse=options.rehearse)
    deadline = None if options.stop_after_s is None else start + options.stop_after_s

    def note(made: int) -> None:
        if made:
            seconds = round(time.monotonic() - start, 1)
            note_run(folder, {"command": _command(study, options), "seconds": seconds, "tasks": made})

    outcome = run_tasks(phases, folder, jobs=options.jobs, deadline=deadline, tell=options.tell, at_end=note)
    if outcome.finished:
        try:
            _write_files(study, folder, options)
        except ModuleNotFoundError as error:
            if not phases or PAGE not in study.parts:
                raise
            # work needs less than pages, which can be made elsewhere
            options.say(
                f"no tables here, because {error.name or error} is not installed; --only {PAGE} makes them"
            )
    return outcome


def _check_names(study: Study, options: StudyOptions) -> None:
    for part in options.only:
        if part not in study.parts:
            known = ", ".join(study.parts)
            raise OptionError(f"only must name parts of {study.name} ({known}), got {part!r}")
    for name in options.data:
        if name not in study.data:
            known = " or ".join(f"{one}=FOLDER" for one in study.data)
            raise OptionError(f"data must be given as {known}, got {name!r}")


def _command(study: Study, options: StudyOptions) -> str:
    told = f"beaufort reproduce {study.name} --device {options.device}"
    told += f" --seeds {options.seeds} --jobs {options.jobs}" + " --rehearse" * options.rehearse
    return told + (f" --only {','.join(options.only)}" if options.only else "")


def _write_files(study: Study, folder: Path, options: StudyOptions) -> None:
    for name, content in study.files(folder, options):
        write_bytes(folder / name, content)
        options.say(f"{name} written")
