"""Run a study: validate the options, run the missing tasks, record the run, and write tables and pages."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from beaufort._core.errors import OptionError
from beaufort._core.files import write_bytes
from beaufort._core.text import counted
from beaufort._core.validation import validate_count
from beaufort.studies.study_file import StudySettings, definition, parts_of, validate_study
from beaufort.studies.study_tasks import Log, StudyOutcome, StudyTask, run_tasks

PAGE = "page"
"""The part without tasks: tables, figures and pages of the predictions that exist."""

RECORD = "study.json"
"""The runs that filled a study's directory."""

_CODE = {
    "imagenet-c-enhancements": "enhancements",
    "icons-50": "icons_50",
    "mined-digits": "mined_digits",
    "mnist-c": "mnist_c",
}
"""Modules with what a study has beyond trained arms and questions: tasks, tables and figures."""


class StudyCode(Protocol):
    """What a module of a study has; `question_pages` is that of a study without a module of its own."""

    def plan(self, settings: StudySettings, only: Sequence[str], log: Log) -> list[list[StudyTask]]:
        """Return the tasks, in phases."""

    def study_files(self, folder: Path, settings: StudySettings) -> Iterator[tuple[str, bytes]]:
        """Yield the names and contents of all files that the existing predictions allow."""


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
    log: Log | None = None,
) -> StudyOutcome:
    """Reproduce the tables of a paper, or run a study of your own; existing results are reused.

    Args:
        study: a name in `STUDIES`, or a YAML file, such as one that `new_study` wrote.
        output: output directory; by default the study's own below `results`.
        only: parts of the study; all by default.
        data: locations of datasets by name. The catalog downloads what it has of the others; questions about
            photos are skipped without photos.
        device: `cpu`, `cuda`, `cuda:1`, or `auto`.
        seeds: number of training runs of each recipe; by default the study's own number.
        jobs: number of processes.
        stop_after_s: seconds after which to save and stop; the same call resumes.
        rehearse: use few images and tiny training runs, whose numbers mean nothing.
        log: called with a line for each finished task.
    """
    declared = definition(study)
    settings = StudySettings(
        study=study,
        device=device,
        seeds=validate_count("seeds", declared.get("seeds", 3) if seeds is None else seeds),
        rehearse=rehearse,
        data=tuple(sorted((data or {}).items())),
    )
    validate_study(settings)
    folder = (
        Path(output) if output is not None else Path("results") / declared.get("folder", Path(study).stem)
    )
    code = cast("StudyCode", import_module(f"beaufort.studies.{_CODE.get(study, 'question_pages')}"))
    return run_study(code, folder, settings, only, validate_count("jobs", jobs), stop_after_s, log)


def run_study(
    code: StudyCode,
    folder: Path,
    settings: StudySettings,
    only: Sequence[str] = (),
    jobs: int = 1,
    stop_after_s: float | None = None,
    log: Log | None = None,
) -> StudyOutcome:
    """Run the missing tasks of a study; when none is left, write its files."""
    start, log = time.monotonic(), log or (lambda _: None)
    _validate(settings, only)
    if (folder / RECORD).is_file() and (kind := read_record(folder)["rehearse"]) != settings.rehearse:
        contents = "a rehearsal" if kind else "a full run"
        raise OptionError(f"{folder} contains {contents}; choose another output for this run")
    parts = [part for part in only if part != PAGE]
    phases = code.plan(settings, parts, log) if parts or not only else []
    if (phases or folder.is_dir()) and not (folder / RECORD).is_file():  # a page of nothing leaves no folder
        write_bytes(folder / RECORD, json.dumps({"rehearse": settings.rehearse, "runs": []}).encode())
    deadline = None if stop_after_s is None else start + stop_after_s

    def note(done: int) -> None:
        if done:
            record = read_record(folder)
            seconds = round(time.monotonic() - start, 1)
            command = _command(settings, only, jobs)
            record["runs"].append({"command": command, "seconds": seconds, "tasks": done})
            write_bytes(folder / RECORD, (json.dumps(record, indent=2) + "\n").encode())

    outcome = run_tasks(phases, folder, jobs=jobs, deadline=deadline, log=log, on_end=note)
    if outcome.finished:
        try:
            import_module("beaufort.report.provenance")  # what a page needs, before any file is written
            for name, content in code.study_files(folder, settings):
                write_bytes(folder / name, content)
                log(f"{name} written")
        except ModuleNotFoundError as error:
            if not phases:
                raise
            # pages need more packages than tasks; they can be written on another machine
            log(f"tables not written: {error.name or error} is not installed; --only {PAGE} writes them")
    return outcome


def _validate(settings: StudySettings, only: Sequence[str]) -> None:
    parts = (*parts_of(settings), PAGE, *(settings.arms if "splits" in settings.file else ()))
    for part in only:
        if part not in parts:
            raise OptionError(f"only must name parts of {settings.study} ({', '.join(parts)}), got {part!r}")
    known = settings.file.get("locations", {})
    for name, place in settings.data:
        if name not in known:
            names = " or ".join(f"{one}=PATH" for one in known)
            raise OptionError(f"data must be given as {names}, got {name!r}")
        if ":" not in place and not Path(place).exists():
            raise OptionError(f"{name} not found: {place}")


def _command(settings: StudySettings, only: Sequence[str], jobs: int) -> str:
    command = f"beaufort reproduce {settings.study} --device {settings.device}"
    command += f" --seeds {settings.seeds} --jobs {jobs}" + " --rehearse" * settings.rehearse
    return command + (f" --only {','.join(only)}" if only else "")


def read_record(folder: Path) -> dict[str, Any]:
    """Read the record of a study's directory."""
    path = folder / RECORD
    try:
        record = dict(json.loads(path.read_bytes()))
        valid = type(record["rehearse"]) is bool and all(
            type(run["command"]) is str and run["seconds"] >= 0 and run["tasks"] >= 0
            for run in record["runs"]
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise OptionError(
            f"{path} is not the record of a study's runs; write "
            '{"rehearse": false, "runs": []} to it to continue with the predictions in this directory'
        )
    return record


def run_facts(folder: Path) -> dict[str, str]:
    """Return the time and the commands of all recorded runs, for a page."""
    runs = read_record(folder)["runs"] if (folder / RECORD).is_file() else []
    minutes = sum(run["seconds"] for run in runs) / 60
    return {
        "time": f"{minutes:.1f} minutes for {counted(sum(run['tasks'] for run in runs), 'task')}, "
        "without runs that were killed",
        "commands": "; ".join(dict.fromkeys(run["command"] for run in runs)),
    }
