"""`beaufort train`: a recipe, carried out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._console import progress_bar, table
from beaufort.cli._options import Json, Seed

if TYPE_CHECKING:
    from beaufort.training import TrainingData, TrainingProgress


def train(
    recipe: Annotated[
        str | None, typer.Argument(help="Name of a recipe, or a YAML file; lists the recipes if not given.")
    ] = None,
    *,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the recipe, as epochs=3; may be repeated.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="What to train on: a path or a name; the recipe's own if not given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the model; trained/RECIPE-seedN if not given."),
    ] = None,
    side: Annotated[
        int | None, typer.Option(min=1, help="Bring images to squares of so many pixels first, in color.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many images.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a network by a recipe; killed, the same command goes on where it was.

    `beaufort train conv1 --data mnist:FOLDER#train`

    What it makes is evaluated by name at once: `beaufort run --model trained:conv1-seed0 …`. Names are those
    of folders in `trained`, or in the folder that BEAUFORT_TRAINED names.
    """
    from beaufort.training import failure, get_recipe, recipe_names
    from beaufort.training import train as train_recipe
    from beaufort.training.trained import trained_folder

    if recipe is None:
        rows = [(name, get_recipe(name).about) for name in recipe_names()]
        typer.echo(table([("recipe", "what it is"), *rows]))
        return
    chosen = get_recipe(recipe).changed(settings or [])
    chosen.check_start()
    folder = trained_folder() / f"{chosen.name}-seed{seed}" if output is None else output
    source = data if side is None else _squares(chosen.data if data is None else data, side, limit)
    with _bar(chosen.name) as progress:
        made = train_recipe(
            chosen, source, output=folder, seed=seed, device=device, limit=limit, progress=progress
        )
    if told := failure(made.facts):
        typer.echo(f"no sign that the network learned: {told}", err=True)
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), **made.facts}, indent=2))
        return
    facts = made.facts
    last = facts["losses"][-1]
    typer.echo(
        f"{printable(folder)}: {counted(facts['steps'], 'step')} in {facts['seconds']:.0f} s on "
        f"{facts['device']}, {facts['parameters']:,} parameters, last loss "
        f"{'not a number' if last is None else f'{last:.4f}'}; ONNX: {facts['onnx']}"
    )


def _squares(data: str, side: int, limit: int | None) -> TrainingData:
    """Images of any sizes as squares."""
    from beaufort.data import load_dataset, resized
    from beaufort.training import open_training_data

    return open_training_data(resized(load_dataset(data, limit=limit), side))


@contextlib.contextmanager
def _bar(title: str) -> Iterator[Callable[[TrainingProgress], None] | None]:
    with progress_bar(title) as show:
        if show is None:
            yield None
        else:
            yield lambda at: show(at.step, at.steps, "" if at.loss is None else f"loss {at.loss:.4f}")
