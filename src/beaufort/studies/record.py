"""What a study's folder is of, and the runs that filled it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from beaufort._core.errors import OptionError
from beaufort._core.files import write_bytes
from beaufort._core.text import counted

RECORD = "study.json"


def check_folder(folder: Path, *, rehearse: bool) -> None:
    """A rehearsal and the real thing must not meet in one folder."""
    if (folder / RECORD).is_file() and (known := _read(folder)["rehearse"]) != rehearse:
        kind = "a rehearsal" if known else "a real run"
        raise OptionError(f"{folder} holds {kind}; choose another output for this one")


def begin_record(folder: Path, *, rehearse: bool) -> None:
    """Say what a folder is of, unless it has been said."""
    path = folder / RECORD
    if not path.is_file():
        write_bytes(path, json.dumps({"rehearse": rehearse, "runs": []}).encode())


def note_run(folder: Path, run: dict[str, Any]) -> None:
    """Add a run to the record: the command, its seconds and how many tasks it did."""
    facts = _read(folder)
    facts["runs"].append(run)
    write_bytes(folder / RECORD, (json.dumps(facts, indent=2) + "\n").encode())


def run_facts(folder: Path) -> dict[str, str]:
    """How long runs took that were not killed, and their commands, as a page tells it."""
    runs = _read(folder)["runs"] if (folder / RECORD).is_file() else []
    return {
        "time": f"{sum(run['seconds'] for run in runs) / 60:.1f} minutes for "
        f"{counted(sum(run['tasks'] for run in runs), 'task')}; runs that were killed are not counted",
        "commands": "; ".join(dict.fromkeys(run["command"] for run in runs)),
    }


def _read(folder: Path) -> dict[str, Any]:
    """What the record says; one that cannot be read is told as such."""
    path = folder / RECORD
    try:
        facts = json.loads(path.read_bytes())
        good = type(facts["rehearse"]) is bool and all(map(_is_run, facts["runs"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        good = False
    if not good:
        raise OptionError(
            f"{path} must be the record of a study's runs, got something else; write "
            '{"rehearse": false, "runs": []} to it to go on with these answers, whose runs are not told then'
        )
    return dict(facts)


def _is_run(run: Any) -> bool:
    return type(run["command"]) is str and all(type(run[key]) in (int, float) for key in ("seconds", "tasks"))
