"""`beaufort leave-out`: train without each value of a column, and score on its images."""

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
    column: Annotated[str, typer.Argument(help="Column whose values are held out one after another.")],
    recipe: Annotated[str, typer.Argument(help="Recipe, as for `beaufort train`.")],
    *,
    output: Output,
    only: Only = None,
    side: Side = None,
    seen: Annotated[
        float,
        typer.Option(help="Fraction of the training images to hold out, for the accuracy on seen values."),
    ] = 0.1,
    seeds: Seeds = 1,
    settings: ModelOptions = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Train without each value of a column in turn, and score on the held-out images.

    `beaufort leave-out photos/labels.csv camera icons-resnet20 --side 32 --output cameras`

    A list has the columns file and label, and any others: a camera, a hospital, a season. For each value, a
    network is trained on the images of the other values, except for the fraction `--seen`, and evaluated on
    the images of the value and on those held out. `--only` selects values; quote a value that contains a
    comma: phone,"Canon, 5D". `--set` changes a setting of the recipe; `--set start=DIRECTORY` fine-tunes a
    network that was trained on none of the images that are scored.

    After an interruption, the same command resumes.
    """
    from beaufort.studies.leave_out import leave_out as run
    from beaufort.studies.leave_out import remarks
    from beaufort.training import get_recipe

    chosen = get_recipe(recipe).changed(settings or [])
    with progress_bar(f"hold out {column}") as show:
        result = run(
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
    for value in result.failed:
        typer.echo(f"warning: the network did not learn without {printable(value)}", err=True)
    notes = remarks(result.values, result.unread, chosen.start)
    if as_json:
        facts = {
            "column": column,
            "values": [asdict(one) for one in result.values],
            "unread": [problem._asdict() for problem in result.unread],
            "failed": result.failed,
            "remarks": notes,
            "output": str(output),
        }
        typer.echo(json.dumps(facts, indent=2))
        return
    rows = [(column, "images", "trained on", "accuracy", "on seen values", "drop, points")]
    for one in result.values:
        accuracies = _percent(one.accuracy), _percent(one.seen), _percent(one.drop).replace(" %", "")
        rows.append((one.value, str(one.accuracy.n), str(one.trained_on), *accuracies))
    typer.echo(table(rows))
    for note in notes:
        typer.echo(printable(note))
    typer.echo(f"\nwritten: {printable(output / 'leave-out.csv')}, {printable(output / 'index.html')}")


def _values(only: str) -> list[str]:
    """Return values separated by commas; one with a comma is quoted, as in a CSV file."""
    cells = [cell.strip() for line in csv.reader([only], skipinitialspace=True) for cell in line]
    if not any(cells):
        raise OptionError(f"--only must name values, separated by commas, got {only!r}")
    return [cell for cell in cells if cell]


def _percent(number: Estimate | None) -> str:
    return "–" if number is None else f"{number:.1%}"
