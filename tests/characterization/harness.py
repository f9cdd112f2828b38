"""Run groups of scenarios, and compare what they yield with what was recorded."""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tests.characterization import facts, inputs, renames
from tests.characterization.scenario import Group, Scenario
from tests.characterization.scenarios import GROUPS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECORDED = HERE / "recorded.json"
SHARED = Path(os.environ.get("BEAUFORT_SHARED", ROOT.parent / "shared"))
ASSETS = SHARED / "reference" / "assets"

SIDECARS = (".pyc", "-shm", "-wal", ".lock")
"""Endings of files that other programs keep beside a file."""

DATABASES = (".review",)
"""Endings of files that SQLite changes when a connection is closed, which may be after the scenario."""

Record = dict[str, Any]
"""The facts of one scenario, by name."""


def missing(group: Group) -> str:
    """Return what a group lacks here, or an empty text."""
    for name in group.requires:
        if name == "assets":
            if not ASSETS.is_dir():
                return "the published images of frost"
        elif find_spec(name) is None:
            return name
    return ""


def run_groups(names: Sequence[str], which: str, source: Path) -> dict[str, dict[str, Record]]:
    """Run groups in a process of their own, on the package in a source folder."""
    with tempfile.TemporaryDirectory(prefix="beaufort-") as folder:
        output = Path(folder, "record.json")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)]),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "200",
            "NO_COLOR": "1",
            "NO_ALBUMENTATIONS_UPDATE": "1",
            "BEAUFORT_OFFLINE": "1",
            "BEAUFORT_CACHE": str(Path(folder, "cache")),
        }
        environment.pop("BEAUFORT_TRAINED", None)
        if ASSETS.is_dir():
            environment["BEAUFORT_MIRROR"] = str(ASSETS)
        words = ["--groups", ",".join(names), "--spelling", which, "--output", str(output)]
        made = subprocess.run(
            [sys.executable, "-m", "tests.characterization.harness", *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode or not output.is_file():
            raise RuntimeError(f"the scenarios stopped with {made.returncode}:\n{made.stdout}\n{made.stderr}")
        found: dict[str, dict[str, Record]] = json.loads(output.read_text(encoding="utf-8"))
        return found


def run_group(group: Group, which: str) -> dict[str, Record]:
    """Run the scenarios of a group in a new folder of this process."""
    home = Path.cwd()
    found = {}
    with tempfile.TemporaryDirectory(prefix="beaufort-") as name:
        work = Path(name).resolve()
        inputs.write_common(work, which)
        os.chdir(work)
        try:
            for scenario in group.scenarios:
                found[scenario.name] = _run(scenario, which, work)
        finally:
            os.chdir(home)
    return found


def _run(scenario: Scenario, which: str, work: Path) -> Record:
    before = _stamps(work)
    record: Record = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if scenario.python:
            _run_code(scenario.spelling(which), record, work)
        else:
            _run_command(scenario, which, record, work)
    for path in _changed(work, before):
        relative = path.relative_to(work).as_posix()
        if not any(fnmatch.fnmatch(relative, pattern) for pattern in scenario.ignore):
            record[f"file {relative}"] = facts.file_facts(path, str(work))
    return record


def _run_code(code: str, record: Record, work: Path) -> None:
    def keep(name: str, value: Any, digits: int = 9) -> None:
        made = facts.flat(value, str(work), digits)
        record[name] = next(iter(made.values())) if list(made) in ([""], ["[]"]) else made

    namespace = {
        "record": keep,
        "digest": facts.array_digest,
        "inputs": inputs,
        "np": np,
        "Path": Path,
        "here": HERE,
    }
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            exec(compile(code, "scenario", "exec", dont_inherit=True), namespace)
        except Exception:
            record["error"] = traceback.format_exc(limit=-3)


@cache
def _main() -> Callable[[], object]:
    """The command line, whose commands are put together once instead of at every call."""
    import typer.main

    from beaufort.cli import main

    typer.main.get_command = cache(typer.main.get_command)
    return main


def _run_command(scenario: Scenario, which: str, record: Record, work: Path) -> None:
    arguments = [os.path.expandvars(word) for word in scenario.arguments(which)]
    said, told = io.StringIO(), io.StringIO()
    kept = sys.argv
    sys.argv = ["beaufort", *arguments]
    code: object = 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
            _main()()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = kept
    record["exit"] = code
    if code not in {0, 1, 3}:
        record["message"] = told.getvalue()[-1500:].replace(str(work), "WORK")
        return
    text, kind = said.getvalue(), scenario.stdout
    if kind == "auto":
        kind = "json" if "--json" in arguments else "nothing"
    record["stdout"] = _output(text, kind, work)


def _output(text: str, kind: str, work: Path) -> Any:
    if kind == "json":
        try:
            return facts.flat(json.loads(text), str(work))
        except ValueError:
            return "not JSON"
    if kind == "csv":
        return facts.csv_facts(text, str(work))
    if kind == "numbers":
        return facts.compact(facts.numbers(text))
    if kind == "table":
        return facts.table_numbers(text)
    if kind == "names":
        return facts.compact([line.split()[0] for line in text.splitlines() if line.split()])
    return {}


def _files(work: Path) -> Iterator[Path]:
    for path in sorted(work.rglob("*")):
        if (
            path.is_file()
            and "__pycache__" not in path.parts
            and not path.name.endswith(SIDECARS + DATABASES)
        ):
            yield path


def _stamps(work: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in _files(work)}


def _changed(work: Path, before: dict[Path, tuple[int, int]]) -> list[Path]:
    now = _stamps(work)
    return [path for path, stamp in now.items() if before.get(path) != stamp]


def flattened(record: Record) -> Record:
    """Return a record with one level: facts by name and path."""
    found: Record = {}
    for name, value in record.items():
        if isinstance(value, dict):
            found |= {f"{name}: {path}": inner for path, inner in value.items()}
        else:
            found[name] = value
    return found


def renamed(record: Record) -> Record:
    """Return recorded facts with the names that they have today."""
    return {_renamed_path(name): _renamed_value(name, value) for name, value in flattened(record).items()}


def _renamed_path(name: str) -> str:
    head, separator, path = name.partition(": ")
    for old, new in renames.FILES.items():
        head = head.replace(old, new)
    parts = []
    for part in path.split("."):
        key = part.rstrip("[]#")
        parts.append(renames.KEYS.get(key, key) + part[len(key) :])
    return f"{head}{separator}{'.'.join(parts)}"


def _renamed_value(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed_value(name, inner) for inner in value]
    if isinstance(value, str) and ": files." in name:
        return renames.VALUES.get(value, value)
    return value


def differences(scenario: Scenario, recorded: Record, found: Record) -> list[str]:
    """Return a line for each recorded fact that is missing or different; new facts are not counted."""
    lines = []
    now = flattened(found)
    for name, value in sorted(renamed(recorded).items()):
        if name.startswith("file ") and name.endswith(DATABASES):
            continue
        if name not in now:
            lines.append(f"{name}: recorded {value!r}, missing now")
        elif now[name] != value and not (scenario.unordered and _sorted(now[name]) == _sorted(value)):
            lines.append(f"{name}: recorded {value!r}, now {now[name]!r}")
    if lines and "message" in found:
        lines.append(f"it printed: {found['message']}")
    if "error" in found:
        lines.append(f"it raised: {found['error']}")
    return lines


def _sorted(value: Any) -> Any:
    return sorted(value, key=str) if isinstance(value, list) else value


def stable(first: Record, second: Record) -> Record:
    """Return the facts that two runs agree on, without messages and errors."""
    kept: Record = {}
    for name, value in first.items():
        other = second.get(name)
        if isinstance(value, dict) and isinstance(other, dict):
            kept[name] = {
                path: inner for path, inner in value.items() if path in other and other[path] == inner
            }
        elif name not in {"message", "error"} and name in second and other == value:
            kept[name] = value
    return kept


def load_recorded() -> dict[str, dict[str, Record]]:
    """Return the recorded facts: group, scenario, fact."""
    found: dict[str, dict[str, Record]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Run groups in this process and write their records."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", required=True)
    parser.add_argument("--spelling", choices=["before", "now"], required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    sys.path[:] = [entry for entry in sys.path if entry not in {"", str(Path.cwd())}]
    found = {}
    for name in options.groups.split(","):
        found[name] = run_group(GROUPS[name], options.spelling)
    options.output.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
