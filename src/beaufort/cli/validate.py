"""`beaufort validate`: validate suite files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._options import Json


def validate(
    files: Annotated[list[Path], typer.Argument(help="Suite files (YAML).")],
    *,
    as_json: Json = False,
) -> None:
    """Validate suite files and report every mistake with its line.

    `beaufort validate my.yaml`

    Exit codes: 0 all suites are valid; 1 some have mistakes; 2 a file cannot be read.
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
    from beaufort.suites.suite import MOST_LISTED

    if report["ok"]:
        return [f"ok: {report['name']} {report['version']}, {counted(report['conditions'], 'condition')}"]
    lines = [printable(Mistake(**one).located(report["file"])) for one in report["mistakes"]]
    more = len(lines) - MOST_LISTED
    return [*lines[:MOST_LISTED], *([f"and {more} more; --json lists all"] if more > 0 else [])]
