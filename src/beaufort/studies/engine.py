"""Run a study: validate the options, run the missing tasks, record the run, and write tables and pages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from beaufort._core.errors import OptionError
from beaufort._core.files import write_bytes
from beaufort._core.text import counted
from beaufort._core.validation import validate_choice, validate_count
from beaufort.studies.study_tasks import Log, StudyOutcome, StudyTask, run_tasks

STUDIES = {
    "imagenet-c-enhancements": "beaufort.studies.enhancements:STUDY",
    "icons-50": "beaufort.studies.icons_50:STUDY",
    "mined-digits": "beaufort.studies.mined_digits:STUDY",
    "mnist-c": "beaufort.studies.mnist_c:STUDY",
}
"""`module:name` of each study."""

PAGE = "page"
"""The part without tasks: tables, figures and pages of the predictions that exist."""

RECORD = "study.json"
"""The runs that filled a study's directory."""


@cache
def definition(study: str) -> dict[str, Any]:
    """Return the declarations of a study from its YAML file: networks, arms, published values, texts."""
    import yaml

    text = (files("beaufort.studies") / "data" / f"{study}.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """Extent of a study; subclasses add the datasets."""

    device: str = "auto"
    seeds: int = 3
    rehearse: bool = False


Settings = TypeVar("Settings", bound=StudySettings)


@dataclass(frozen=True, kw_only=True)
class StudyOptions(StudySettings):
    """Options of `reproduce`, which describes them."""

    only: tuple[str, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    jobs: int = 1
    stop_after_s: float | None = None
    log: Log | None = None

    def __post_init__(self) -> None:
        validate_count("seeds", self.seeds)
        validate_count("jobs", self.jobs)

    @property
    def parts(self) -> tuple[str, ...]:
        """The selected parts that have tasks."""
        return tuple(part for part in self.only if part != PAGE)

    def settings(self, kind: type[Settings], **data: Any) -> Settings:
        return kind(device=self.device, seeds=self.seeds, rehearse=self.rehearse, **data)

    def mnist(self) -> dict[str, str]:
        """Return the training and test sets in the directory of `--data mnist=`, if it is given."""
        place = self.data.get("mnist")
        return {} if place is None else {name: f"mnist:{place}#{name}" for name in ("train", "test")}


@dataclass(frozen=True, kw_only=True)
class Study:
    """The experiments of a paper, as tasks, and the files that summarize them."""

    name: str
    parts: tuple[str, ...]
    """Values of `only`."""
    data: tuple[str, ...]
    """Names of datasets whose location can be given."""
    plan: Callable[[StudyOptions], Sequence[Sequence[StudyTask]]]
    """Return the tasks, in phases."""
    files: Callable[[Path, StudyOptions], Iterable[tuple[str, bytes]]]
    """Yield the names and contents of all tables, figures and pages that the existing predictions allow."""
    folder: str = ""
    """Default output below `results`; the study's name if empty."""
    seeds: int = 3
    """Default number of training runs of each recipe."""


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
    """Reproduce the tables of a paper; results that exist in the output directory are reused.

    Args:
        study: a name in `STUDIES`.
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
    module, _, name = STUDIES[validate_choice("study", study, STUDIES)].partition(":")
    chosen: Study = getattr(import_module(module), name)
    options = StudyOptions(
        only=tuple(only),
        data=dict(data or {}),
        device=device,
        seeds=chosen.seeds if seeds is None else seeds,
        jobs=jobs,
        stop_after_s=stop_after_s,
        rehearse=rehearse,
        log=log,
    )
    folder = Path(output) if output is not None else Path("results") / (chosen.folder or chosen.name)
    return run_study(chosen, folder, options)


def run_study(study: Study, folder: Path, options: StudyOptions) -> StudyOutcome:
    """Run the missing tasks of a study; when none is left, write its files."""
    start = time.monotonic()
    for part in options.only:
        if part not in study.parts:
            raise OptionError(
                f"only must name parts of {study.name} ({', '.join(study.parts)}), got {part!r}"
            )
    for name in options.data:
        if name not in study.data:
            known = " or ".join(f"{one}=PATH" for one in study.data)
            raise OptionError(f"data must be given as {known}, got {name!r}")
    if (folder / RECORD).is_file() and (kind := read_record(folder)["rehearse"]) != options.rehearse:
        contents = "a rehearsal" if kind else "a full run"
        raise OptionError(f"{folder} contains {contents}; choose another output for this run")
    phases = study.plan(options) if options.parts or not options.only else []
    if (phases or folder.is_dir()) and not (folder / RECORD).is_file():  # a page of nothing leaves no folder
        write_bytes(folder / RECORD, json.dumps({"rehearse": options.rehearse, "runs": []}).encode())
    deadline = None if options.stop_after_s is None else start + options.stop_after_s

    def note(done: int) -> None:
        if done:
            record = read_record(folder)
            seconds = round(time.monotonic() - start, 1)
            record["runs"].append({"command": _command(study, options), "seconds": seconds, "tasks": done})
            write_bytes(folder / RECORD, (json.dumps(record, indent=2) + "\n").encode())

    log = options.log or (lambda _: None)
    outcome = run_tasks(phases, folder, jobs=options.jobs, deadline=deadline, log=log, on_end=note)
    if outcome.finished:
        try:
            for name, content in study.files(folder, options):
                write_bytes(folder / name, content)
                log(f"{name} written")
        except ModuleNotFoundError as error:
            if not phases or PAGE not in study.parts:
                raise
            # pages need more packages than tasks; they can be written on another machine
            log(f"tables not written: {error.name or error} is not installed; --only {PAGE} writes them")
    return outcome


def _command(study: Study, options: StudyOptions) -> str:
    command = f"beaufort reproduce {study.name} --device {options.device}"
    command += f" --seeds {options.seeds} --jobs {options.jobs}" + " --rehearse" * options.rehearse
    return command + (f" --only {','.join(options.only)}" if options.only else "")


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
