"""`beaufort train`: train a network by a recipe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._console import progress_bar, table
from beaufort.cli._options import Data, Device, Json, Limit, ModelOptions, OptionalOutput, Seed, Side

if TYPE_CHECKING:
    from beaufort.training import TrainingData


def train(
    recipe: Annotated[
        str | None, typer.Argument(help="Name of a recipe or a YAML file; recipes are listed by default.")
    ] = None,
    *,
    settings: ModelOptions = None,
    data: Data = None,
    output: OptionalOutput = None,
    side: Side = None,
    limit: Limit = None,
    device: Device = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Train a network by a recipe; after an interruption, the same command resumes.

    `beaufort train conv1 --data mnist:FOLDER#train --set epochs=3`

    By default the data are those of the recipe, and the output is the directory trained/RECIPE-seedN. `--set`
    changes a setting of the recipe, `--limit` takes the first N images. A trained model is evaluated by name:
    `beaufort run --model trained:conv1-seed0 …`. Names are those of the directories in `trained`, or in the
    directory that BEAUFORT_TRAINED names.
    """
    from beaufort.training import failure, get_recipe, recipe_names
    from beaufort.training import train as train_recipe
    from beaufort.training.trained import trained_folder

    if recipe is None:
        rows = [(name, get_recipe(name).about) for name in recipe_names()]
        typer.echo(table([("recipe", "description"), *rows]))
        return
    seed = seed or 0
    chosen = get_recipe(recipe).changed(settings or [])
    chosen.check_start()
    folder = trained_folder() / f"{chosen.name}-seed{seed}" if output is None else output
    source = data if side is None else _squares(chosen.data if data is None else data, side, limit)
    with progress_bar(chosen.name) as show:
        trained = train_recipe(
            chosen,
            source,
            output=folder,
            seed=seed,
            device=device or "auto",
            limit=limit,
            progress=lambda at: show(at.step, at.steps, "" if at.loss is None else f"loss {at.loss:.4f}"),
        )
    facts = trained.facts
    if reason := failure(facts):
        typer.echo(f"warning: the network did not learn: {reason}", err=True)
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), **facts}, indent=2))
        return
    last = facts["losses"][-1]
    typer.echo(
        f"{printable(folder)}: {counted(facts['steps'], 'step')} in {facts['seconds']:.0f} s on "
        f"{facts['device']}, {facts['parameters']:,} parameters, last loss "
        f"{'not a number' if last is None else f'{last:.4f}'}; ONNX: {facts['onnx']}"
    )


def _squares(data: str, side: int, limit: int | None) -> TrainingData:
    from beaufort.data import load_dataset, resized
    from beaufort.training import open_training_data

    return open_training_data(resized(load_dataset(data, limit=limit), side))
