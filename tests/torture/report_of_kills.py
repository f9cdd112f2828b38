"""The report of a thousand kills."""

from __future__ import annotations

import json
import platform
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.torture.disasters import DISASTERS
from tests.torture.jobs import KINDS

__all__ = ["in_short", "write_report"]

_VICTIMS = ("driver", "worker", "node", "network")
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)", re.MULTILINE)
_FOLDERS = re.compile(r"(?<![\w.:/])/(?:[^\s/'\"]+/)+")
_LONGEST = 400
"""Characters of a finding."""


def write_report(folder: Path, lines: Sequence[dict[str, Any]], *, kills: int, seed: int) -> None:
    """Write `kills.md` and `kills.json`."""
    rows = [_row(str(kind), lines) for kind in KINDS]
    disasters = [_row(what, lines) for what in DISASTERS]
    whole = _sum(rows)
    text = [
        "# A thousand kills",
        "",
        f"`make torture KILLS={kills}` with the seed {seed}: one small job on every engine and every kind "
        "of store, with parts of it killed at random times. After each kill the same command resumes; after "
        "two in five, all stored predictions are read first. At the end, and again after "
        "`results verify --repair`, every prediction is compared with those of an undisturbed job. "
        "`docs/explanation/reliability.md` explains the columns.",
        "",
        f"{whole['kills']:,} kills in {whole['jobs']:,} jobs; {whole['losses']} losses, "
        f"{whole['doubles']} doubles, {whole['uncaught']} uncaught."
        + f" **Not complete**: {kills:,} kills were requested."
        * (whole["kills"] < kills),
        "",
        *_table(("job", *_VICTIMS), [*rows, whole]),
        "",
        "## Disasters",
        "",
        "Each happens at a random time while a job of the local engine writes to a store of files. The job "
        "ends with a message or is not affected; afterwards the same command completes the store.",
        "",
        *_table(("disaster",), disasters),
        "",
        f"Python {platform.python_version()}, {platform.system()}; Ray as a cluster of two nodes on one "
        "machine; S3 as a moto server behind a tunnel that is also killed (*network*).",
        "",
    ]
    for finding in (one for line in lines for key in ("losses", "doubles", "uncaught") for one in line[key]):
        text += ["```", in_short(finding), "```", ""]
    (folder / "kills.md").write_text("\n".join(text), encoding="utf-8")
    facts = {"seed": seed, "asked": kills, "kinds": rows, "all": whole, "disasters": disasters}
    (folder / "kills.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def in_short(finding: str) -> str:
    """Shorten a finding to its case, the exit code, and the last line of the traceback or of the output.

    Directories are removed from file names.

    >>> in_short("two kills: exit code 1: a table\\nerror: /tmp/a/store is gone\\n")
    'two kills: exit code 1: error: store is gone'
    """
    done, code, output = re.split(r"(: exit code -?\d+: |\Z)", finding.strip(), maxsplit=1)
    if code:
        output = (_TRACEBACK.findall(output) or output.splitlines() or [""])[-1]
    return textwrap.shorten(_FOLDERS.sub("", done + code + output), _LONGEST, placeholder=" …")


def _row(what: str, lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    mine = [line for line in lines if line["what"] == what]
    killed: Counter[str] = sum((Counter(line["killed"]) for line in mine), Counter())
    return {
        "what": what,
        "jobs": len(mine),
        "kills": killed.total(),
        "killed": dict(killed),
        "rows": sum(line["rows"] for line in mine),
        **{key: sum(len(line[key]) for line in mine) for key in ("losses", "doubles", "uncaught")},
        "seconds": round(sum(line["seconds"] for line in mine)),
    }


def _sum(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    numbers = ("jobs", "kills", "rows", "losses", "doubles", "uncaught", "seconds")
    killed: Counter[str] = sum((Counter(row["killed"]) for row in rows), Counter())
    return {"what": "all", "killed": dict(killed), **{key: sum(row[key] for row in rows) for key in numbers}}


def _table(first: tuple[str, ...], rows: Sequence[dict[str, Any]]) -> list[str]:
    head, *victims = first
    columns = (
        "jobs",
        *(("kills", *victims) if victims else ()),
        "rows",
        "losses",
        "doubles",
        "uncaught",
        "seconds",
    )
    names = {"jobs": "jobs" if victims else "times", "rows": "predictions compared"}
    lines = [
        "| " + " | ".join((head, *(names.get(name, name) for name in columns))) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for row in rows:
        cells = (row["killed"].get(name, 0) if name in victims else row[name] for name in columns)
        lines.append("| " + " | ".join((row["what"], *(f"{cell:,}" for cell in cells))) + " |")
    return lines
