"""`beaufort mine`: hard test images, planned and made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort.cli._console import counted, printable, progress_bar, table
from beaufort.cli._options import Seed
from beaufort.errors import OptionError

if TYPE_CHECKING:
    from beaufort.mining import Generator

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Hard test images: categories in unusual places, textures and materials."
)


@app.command()
def plan(
    output: Annotated[Path, typer.Argument(help="CSV to write; read it before it costs anything.")],
    *,
    categories: Annotated[
        str,
        typer.Option(help="imagenet-d, or a file: one name a line, or a CSV file with the column name."),
    ],
    nuisances: Annotated[
        list[str] | None,
        typer.Option(
            help="KIND=FILE, as texture=words.txt; may be repeated. A short built-in list if not given."
        ),
    ] = None,
    templates: Annotated[
        list[str] | None,
        typer.Option("--template", help="KIND=SENTENCE with {category} and {nuisance}; may be repeated."),
    ] = None,
    each: Annotated[int, typer.Option(help="Images for each pair.")] = 1,
    sample: Annotated[int | None, typer.Option(help="So many of the pairs, drawn by the seed.")] = None,
    seed: Seed = 0,
) -> None:
    """Cross categories with nuisances, and write a row for each image: prompt, seed and label.

    `beaufort mine plan plan.csv --categories chairs.txt --each 2`
    """
    from beaufort.labels import label_maps
    from beaufort.mining import make_plan, read_names, write_plan

    names = label_maps["imagenet-d"].classes if categories == "imagenet-d" else read_names(Path(categories))
    lists = {kind: read_names(Path(file)) for kind, file in _pairs("nuisances", nuisances).items()}
    items = make_plan(
        names,
        nuisances=lists or None,
        templates=_pairs("template", templates),
        each=each,
        sample=sample,
        seed=seed,
    )
    write_plan(items, output)
    kinds = Counter(item.kind for item in items)
    typer.echo(table([("kind", "images"), *((kind, f"{count:,}") for kind, count in kinds.items())]))
    typer.echo(f"{counted(len(items), 'image')} planned in {printable(output)}")


@app.command()
def generate(
    plan: Annotated[Path, typer.Argument(help="A plan, as `beaufort mine plan` writes it.")],
    output: Annotated[Path, typer.Argument(help="Folder for the images.")],
    *,
    generator: Annotated[
        str, typer.Option(help="composite:CUTOUTS, folder:LIST.csv, or diffusers:FOLDER-OR-NAME.")
    ],
    surfaces: Annotated[
        Path | None, typer.Option(help="Of composite: a folder of pictures for each nuisance.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Height and width in pixels; of composite 224 if not given.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Of diffusers: steps of the sampler.")] = 30,
    scheduler: Annotated[str | None, typer.Option(help="Of diffusers: name of a scheduler.")] = None,
    guidance: Annotated[float | None, typer.Option(help="Of diffusers: scale of the guidance.")] = None,
    dtype: Annotated[str, typer.Option(help="Of diffusers: float32, float16 or bfloat16.")] = "float32",
    device: Annotated[str, typer.Option(help="Of diffusers: cpu, cuda or cuda:1.")] = "cpu",
    batch: Annotated[int, typer.Option(help="Of diffusers: images at a time.")] = 4,
) -> None:
    """Make the images of a plan that the folder lacks; killed, the same command goes on where it was.

    `beaufort mine generate plan.csv images/ --generator composite:cutouts/`
    """
    from beaufort.mining import CompositeGenerator, DiffusionGenerator, FolderGenerator, read_plan
    from beaufort.mining import generate as generate_all

    items = read_plan(plan)
    kind, _, source = generator.partition(":")
    made: Generator
    if kind == "composite" and source:
        made = CompositeGenerator(Path(source), surfaces=surfaces, size=size or 224)
    elif kind == "folder" and source:
        made = FolderGenerator(Path(source))
    elif kind == "diffusers" and source:
        made = DiffusionGenerator(
            source,
            steps=steps,
            size=size,
            batch=batch,
            dtype=dtype,
            device=device,
            scheduler=scheduler,
            guidance=guidance,
        )
    else:
        raise OptionError(
            f"generator must be composite:CUTOUTS, folder:LIST.csv or diffusers:MODEL, got {generator!r}"
        )
    with progress_bar("generate") as show:
        new = generate_all(items, made, output, progress=show)
    typer.echo(f"{new} made in {printable(output)}, {len(items) - new} there already")


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Texts as KIND=VALUE."""
    found = {}
    for text in texts or ():
        kind, equals, value = text.partition("=")
        if not equals or not kind or not value:
            raise OptionError(f"{option} must be KIND=VALUE, got {text!r}")
        found[kind] = value
    return found
