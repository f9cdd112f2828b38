"""`beaufort validate`: validate suites of your own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._options import Json

_MOST_LINES = 20
"""Mistakes of a file that are printed; `--json` lists all."""


def validate(
    files: Annotated[list[Path], typer.Argument(help="YAML files, one suite each.")],
    *,
    as_json: Json = False,
) -> None:
    """Validate suites of your own, and report every mistake with its line.

    `beaufort validate my.yaml`

    Exit codes: 0 every file is a valid suite; 1 some have mistakes; 2 a file cannot be read.
    """
    reports = []
    for file in files:
        reports.append(_report(file))
        if not as_json:
            typer.echo("\n".join(_lines(reports[-1])))
    if as_json:
        typer.echo(json.dumps(reports, indent=2))
    if not all(report["ok"] for report in reports):
        raise typer.Exit(1)


def _report(file: Path) -> dict[str, Any]:
    from beaufort.suites import SuiteError, read_suite

    try:
        suite = read_suite(file)
    except SuiteError as error:
        return {"file": str(file), "ok": False, "mistakes": [one._asdict() for one in error.mistakes]}
    count = len(suite.conditions())
    return {"file": str(file), "ok": True, "name": suite.name, "version": suite.version, "conditions": count}


def _lines(report: dict[str, Any]) -> list[str]:
    from beaufort.suites import Mistake

    if report["ok"]:
        return [f"ok: {report['name']} {report['version']}, {counted(report['conditions'], 'condition')}"]
    lines = [printable(Mistake(**one).located(report["file"])) for one in report["mistakes"]]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"and {more} more; --json lists all"] if more > 0 else [])]
