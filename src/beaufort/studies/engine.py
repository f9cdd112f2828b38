"""Run a study: check what is asked for, do the tasks that are missing, keep a record, and write its files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from beaufort._core.errors import OptionError
from beaufort._core.files import write_bytes
from beaufort._core.text import counted
from beaufort._core.validation import validate_choice, validate_count
from beaufort.studies.study_tasks import StudyOutcome, StudyTask, run_tasks

STUDIES = {
    "imagenet-c-enhancements": "beaufort.studies.enhancements:STUDY",
    "icons-50": "beaufort.studies.icons_50:STUDY",
    "mined-digits": "beaufort.studies.mined_digits:STUDY",
    "mnist-c": "beaufort.studies.mnist_c:STUDY",
}
"""Where each study is defined."""

PAGE = "page"
"""The part without tasks: tables, figures and pages from what is there."""

RECORD = "study.json"
"""What a study's folder is of, and the runs that filled it."""


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """How much a study does; each study adds its data."""

    device: str = "auto"
    seeds: int = 3
    rehearse: bool = False


Settings = TypeVar("Settings", bound=StudySettings)


@dataclass(frozen=True, kw_only=True)
class StudyOptions(StudySettings):
    """What is asked for; `reproduce` describes each option."""

    only: tuple[str, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    jobs: int = 1
    stop_after_s: float | None = None
    tell: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        validate_count("seeds", self.seeds)
        validate_count("jobs", self.jobs)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts with tasks that are asked for by name."""
        return tuple(part for part in self.only if part != PAGE)

    def settings(self, kind: type[Settings], **data: Any) -> Settings:
        """Return the settings of a study, with where its data are."""
        return kind(device=self.device, seeds=self.seeds, rehearse=self.rehearse, **data)

    def say(self, line: str) -> None:
        if self.tell is not None:
            self.tell(line)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A paper's tables, as tasks and files."""

    name: str
    parts: tuple[str, ...]
    """What can be asked for alone."""
    data: tuple[str, ...]
    """Datasets whose place can be given."""
    plan: Callable[[StudyOptions], Sequence[Sequence[StudyTask]]]
    """The tasks, in phases."""
    files: Callable[[Path, StudyOptions], Iterable[tuple[str, bytes]]]
    """Names and contents of all tables, figures and pages that the predictions in a folder suffice for."""
    folder: str = ""
    """Below `results`, if no output is named; its name if empty."""
    seeds: int = 3
    """Training runs of each recipe, if no number is named."""


def reproduce(
    study: str,
    output: Path | str | None = None,
    *,
    only: Sequence[str] = (),
    data: Mapping[str, str] | None = None,
    device: str = "auto",
    seeds: int | None = None,
    jobs: int = 1,
    stop_after_s: float | None = None,
    rehearse: bool = False,
    tell: Callable[[str], None] | None = None,
) -> StudyOutcome:
    """Make a paper's tables again; what the folder has is not made again.

    Args:
        study: one of `STUDIES`.
        output: a folder; the study's own below `results` if not given.
        only: parts of the study; all if none is named.
        data: where datasets are, by name; of those that are not named, the catalog fetches what it has, and
            questions about photos are left out.
        device: `cpu`, `cuda`, `cuda:1`, or `auto`.
        seeds: how many training runs of each recipe; the study's own number if not given.
        jobs: processes that share the tasks.
        stop_after_s: seconds after which it stops; the same call resumes.
        rehearse: a rehearsal with few images and tiny training runs, whose numbers mean nothing.
        tell: called with a line for each task.
    """
    module, _, name = STUDIES[validate_choice("study", study, STUDIES)].partition(":")
    known: Study = getattr(import_module(module), name)
    options = StudyOptions(
        only=tuple(only),
        data=dict(data or {}),
        device=device,
        seeds=known.seeds if seeds is None else seeds,
        jobs=jobs,
        stop_after_s=stop_after_s,
        rehearse=rehearse,
        tell=tell,
    )
    folder = Path(output) if output is not None else Path("results") / (known.folder or known.name)
    return run_study(known, folder, options)


def run_study(study: Study, folder: Path, options: StudyOptions) -> StudyOutcome:
    """Do what is missing of a study; when nothing is left, write its files."""
    start = time.monotonic()
    _check_names(study, options)
    _check_folder(folder, rehearse=options.rehearse)  # before what the tasks lack
    phases = study.plan(options) if options.parts or not options.only else []
    if (phases or folder.is_dir()) and not (folder / RECORD).is_file():  # a page of nothing leaves no folder
        write_bytes(folder / RECORD, json.dumps({"rehearse": options.rehearse, "runs": []}).encode())
    deadline = None if options.stop_after_s is None else start + options.stop_after_s

    def note(made: int) -> None:
        if made:
            facts = read_record(folder)
            seconds = round(time.monotonic() - start, 1)
            facts["runs"].append({"command": _command(study, options), "seconds": seconds, "tasks": made})
            write_bytes(folder / RECORD, (json.dumps(facts, indent=2) + "\n").encode())

    outcome = run_tasks(phases, folder, jobs=options.jobs, deadline=deadline, tell=options.tell, at_end=note)
    if outcome.finished:
        try:
            for name, content in study.files(folder, options):
                write_bytes(folder / name, content)
                options.say(f"{name} written")
        except ModuleNotFoundError as error:
            if not phases or PAGE not in study.parts:
                raise
            # tasks need less than pages, which can be made elsewhere
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


def _check_folder(folder: Path, *, rehearse: bool) -> None:
    """Keep a rehearsal and the real study in different folders."""
    if (folder / RECORD).is_file() and (known := read_record(folder)["rehearse"]) != rehearse:
        kind = "a rehearsal" if known else "a real run"
        raise OptionError(f"{folder} holds {kind}; choose another output for this one")


def _command(study: Study, options: StudyOptions) -> str:
    told = f"beaufort reproduce {study.name} --device {options.device}"
    told += f" --seeds {options.seeds} --jobs {options.jobs}" + " --rehearse" * options.rehearse
    return told + (f" --only {','.join(options.only)}" if options.only else "")


def read_record(folder: Path) -> dict[str, Any]:
    """Return what the record of a folder says."""
    path = folder / RECORD
    try:
        facts = json.loads(path.read_bytes())
        good = type(facts["rehearse"]) is bool and all(map(_is_run, facts["runs"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        good = False
    if not good:
        raise OptionError(
            f"{path} is not the record of a study's runs; write "
            '{"rehearse": false, "runs": []} to it to continue with these predictions'
        )
    return dict(facts)


def _is_run(run: Any) -> bool:
    return type(run["command"]) is str and all(type(run[key]) in (int, float) for key in ("seconds", "tasks"))


def run_facts(folder: Path) -> dict[str, str]:
    """Return how long runs took that were not killed, and their commands, for a page."""
    runs = read_record(folder)["runs"] if (folder / RECORD).is_file() else []
    return {
        "time": f"{sum(run['seconds'] for run in runs) / 60:.1f} minutes for "
        f"{counted(sum(run['tasks'] for run in runs), 'task')}; runs that were killed are not counted",
        "commands": "; ".join(dict.fromkeys(run["command"] for run in runs)),
    }
