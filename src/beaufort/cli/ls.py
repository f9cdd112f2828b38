"""`beaufort ls`: what there is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from beaufort.cli._options import Json
from beaufort.corruptions import SCALES, SUBSETS, Corruption, corruptions, get_corruption_names

__all__ = ["app"]

app = typer.Typer(help="List what there is.", no_args_is_help=True, rich_markup_mode="markdown")


@app.callback()
def ls() -> None:
    """List what there is.

    `beaufort ls corruptions --subset weather`
    """


@app.command("corruptions")
def list_corruptions(
    subset: Annotated[
        str | None, typer.Option(help=f"One of the published lists: {', '.join(SUBSETS)}.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the corruptions: name, group, whether random, scales with published constants, what it does.

    `beaufort ls corruptions --subset mnist-c`
    """
    names = _everything() if subset is None else get_corruption_names(subset)
    found = [corruptions[name] for name in names]
    if as_json:
        typer.echo(json.dumps([_as_dict(corruption) for corruption in found], indent=2))
    else:
        header = ("name", "group", "random", "scales", "what it does")
        typer.echo(table([header, *(_cells(corruption) for corruption in found)]))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines of aligned columns; the last is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    lines = (
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    )
    return "\n".join(lines)


def _everything() -> list[str]:
    return list(dict.fromkeys([*SUBSETS["all"], *SUBSETS["mnist-c-all"], *corruptions]))


def _cells(corruption: Corruption) -> tuple[str, ...]:
    scales = "all" if set(corruption.recipes) >= set(SCALES) else ", ".join(corruption.recipes)
    return corruption.name, corruption.group, "yes" if corruption.random else "no", scales, corruption.summary


def _as_dict(corruption: Corruption) -> dict[str, object]:
    return {
        "name": corruption.name,
        "group": corruption.group,
        "random": corruption.random,
        "version": corruption.version,
        "scales": list(corruption.recipes),
        "summary": corruption.summary,
    }
