"""`beaufort leave-out`: train without each value of a column, and see how its images fare."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import printable
from beaufort.cli._console import progress_bar, table
from beaufort.cli._options import Device, Json, ModelOptions, Only, Output, Seeds, Side

if TYPE_CHECKING:
    from beaufort.metrics.stats import Estimate


def leave_out(
    data: Annotated[
        str, typer.Argument(help="A list such as photos/labels.csv, or any dataset with columns.")
    ],
    *,
    column: Annotated[str, typer.Option(help="Column whose values are left out, one after the other.")],
    recipe: Annotated[str, typer.Option(help="Recipe, as for `beaufort train`.")],
    output: Output,
    only: Only = None,
    side: Side = None,
    seen: Annotated[
        float, typer.Option(help="Fraction of the other values' images to keep back and score as well.")
    ] = 0.1,
    seeds: Seeds = 1,
    settings: ModelOptions = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Train without each value of a column in turn, and score on the images that were left out.

    `beaufort leave-out photos/labels.csv --column camera --recipe icons-resnet20 --side 32 --output cameras`

    A list has the columns file and label, and any others: a camera, a hospital, a season. For each value a
    network is trained on the images of the others, but for the fraction `--seen`, and evaluated on those of
    the value and those that were kept back. `--only` takes values, with quotes where one has a comma:
    phone,"Canon, 5D". `--set` changes a setting of the recipe; `--set start=FOLDER` fine-tunes a network that
    was trained before, on none of the images that are scored.

    After an interruption, the same command resumes.
    """
    from beaufort.studies.leave_out import leave_out as run
    from beaufort.studies.leave_out import remarks
    from beaufort.training import get_recipe

    chosen = get_recipe(recipe).changed(settings or [])
    with progress_bar(f"leave out {column}") as show:
        found = run(
            data,
            column,
            recipe=chosen,
            output=output,
            only=() if only is None else _values(only),
            side=side,
            seen=seen,
            seeds=seeds or 1,
            device=device or "auto",
            progress=lambda at: show(at.step, at.steps, f"{at.value}, seed {at.seed}"),
        )
    for one in found.failed:
        typer.echo(f"no sign that the network learned without {printable(one)}", err=True)
    said = remarks(found.values, found.unread, chosen.start)
    if as_json:
        values = [asdict(one) for one in found.values]
        unread = [problem._asdict() for problem in found.unread]
        told = {"column": column, "values": values, "unread": unread, "failed": found.failed, "remarks": said}
        typer.echo(json.dumps({**told, "output": str(output)}, indent=2))
        return
    head = (column, "images", "trained on", "accuracy", "on seen values", "lost, points")
    rows = [
        (
            one.value,
            str(one.accuracy.n),
            str(one.trained_on),
            *map(_shown, (one.accuracy, one.seen)),
            _shown(one.drop).replace(" %", ""),
        )
        for one in found.values
    ]
    typer.echo(table([head, *rows]))
    for remark in said:
        typer.echo(printable(remark))
    typer.echo(f"\n{printable(output / 'leave-out.csv')} and {printable(output / 'index.html')} have it all")


def _values(only: str) -> list[str]:
    """Values separated by commas; one with a comma stands in quotation marks, as in a CSV file."""
    cells = [cell.strip() for line in csv.reader([only], skipinitialspace=True) for cell in line]
    if not any(cells):
        raise OptionError(f"only must name values, separated by commas, got {only!r}; leave it out for all")
    return [cell for cell in cells if cell]


def _shown(number: Estimate | None) -> str:
    return "–" if number is None else f"{number:.1%}"
