"""`beaufort mine`: hard test images, planned, generated, selected, exported and evaluated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list, counted, printable
from beaufort.cli._console import progress_bar, table
from beaufort.cli._evaluation import predictions_bar
from beaufort.cli._options import (
    Convention,
    Labels,
    ModelOptions,
    Output,
    RequiredModel,
    Seed,
    Store,
    Title,
    model_options,
)

app = typer.Typer(
    no_args_is_help=True, help="Hard test images: categories in unusual places, textures and materials."
)

Set = Annotated[
    str, typer.Argument(metavar="SET", help="What `beaufort mine export` wrote, or imagenet-d:FOLDER.")
]


@app.command()
def plan(
    output: Annotated[Path, typer.Argument(help="CSV file to write; read it before it costs anything.")],
    *,
    categories: Annotated[
        str,
        typer.Option(help="imagenet-d, or a file: one name per line, or a CSV file with the column name."),
    ],
    nuisances: Annotated[
        list[str] | None,
        typer.Option(help="KIND=FILE, such as texture=words.txt (repeatable); a built-in list by default."),
    ] = None,
    templates: Annotated[
        list[str] | None,
        typer.Option("--template", help="KIND=SENTENCE with {category} and {nuisance} (repeatable)."),
    ] = None,
    each: Annotated[int, typer.Option(help="Images for each pair.")] = 1,
    sample: Annotated[int | None, typer.Option(help="Number of pairs to draw; all by default.")] = None,
    seed: Seed = 0,
) -> None:
    """Cross categories with nuisances, and write a row for each image: prompt, seed and label.

    A different existing plan is not overwritten: it may have been edited.

    `beaufort mine plan plan.csv --categories chairs.txt --each 2`
    """
    from beaufort.mining import make_plan, read_names, write_plan

    items = make_plan(
        read_names(categories),
        nuisances={kind: read_names(file) for kind, file in _by_kind("nuisances", nuisances).items()} or None,
        templates=_by_kind("template", templates),
        each=each,
        sample=sample,
        seed=seed,
    )
    write_plan(items, output, replace=False)
    kinds = Counter(item.kind for item in items)
    typer.echo(table([("kind", "images"), *((kind, f"{count:,}") for kind, count in kinds.items())]))
    typer.echo(f"{counted(len(items), 'image')} planned in {printable(output)}")


@app.command()
def generate(
    plan: Annotated[Path, typer.Argument(help="A plan, as `beaufort mine plan` writes it.")],
    output: Annotated[Path, typer.Argument(help="Folder for the images.")],
    *,
    generator: Annotated[
        str,
        typer.Option(
            help="composite:CUTOUTS, folder:LIST.csv, diffusers:FOLDER-OR-NAME, or conditional:FOLDER."
        ),
    ],
    options: ModelOptions = None,
) -> None:
    """Generate the images of a plan that the folder lacks; after a kill the same command resumes.

    `beaufort mine generate plan.csv images/ --generator composite:cutouts/ --set size=224`

    Options of composite: surfaces, size, fill; of diffusers: steps, size, scheduler, guidance, dtype, device,
    batch, and to change photos: photos, task, strength; of conditional: steps, guidance, device, batch.
    """
    from beaufort.mining import generate as generate_all
    from beaufort.mining import load_generator, read_plan

    items = read_plan(plan)
    made = load_generator(generator, **model_options(options))
    with progress_bar("generate") as show:
        new = generate_all(items, made, output, progress=show)
    typer.echo(f"{new} made in {printable(output)}, {len(items) - new} there already")


@app.command()
def select(
    images: Annotated[Path, typer.Argument(help="Folder that `beaufort mine generate` filled.")],
    *,
    surrogates: Annotated[
        str, typer.Option(help="Models that choose, separated by commas: those of `beaufort ls models`.")
    ],
    others: Annotated[
        str, typer.Option(help="Models that do not choose, to see how hard the images are for them.")
    ] = "",
    failures: Annotated[
        str, typer.Option(help="How many surrogates must fail on an image: all, or K-of-N such as 3-of-4.")
    ] = "all",
    labels: Labels = None,
    convention: Convention = None,
    store: Store = "results",
    output: Output = Path("selection"),
    controls: Annotated[
        int, typer.Option(min=0, help="Hidden controls of each sort in the list for the review.")
    ] = 0,
    seed: Seed = 0,
) -> None:
    """Keep the images that surrogate models get wrong, and report how hard they are for others.

    `beaufort mine select images/ --surrogates a.onnx,b.onnx --others c.onnx --labels imagenet-d`

    The kept images are listed in `IMAGES/kept.csv`, as `beaufort review create` takes them.
    """
    from beaufort.mining import hardness, select_images

    with predictions_bar() as show:
        selection = select_images(
            images,
            comma_list(surrogates),
            output,
            store,
            others=comma_list(others),
            rule=failures,
            labels=labels,
            convention=convention,
            controls=controls,
            seed=seed,
            progress=show,
        )
    rows = [("model", "", "unfiltered", "kept")]
    for one in hardness(selection):
        kept = "" if one.kept is None else f"{one.kept:.1%}"
        rows.append((one.model, "surrogate" if one.surrogate else "", f"{one.unfiltered:.1%}", kept))
    typer.echo(table(rows))
    count = int(selection.kept.sum())
    made = counted(len(selection.images), "image")
    typer.echo(f"{count:,} of {made} kept; {printable(output / 'index.html')}")
    if count:
        typer.echo(f"next:\n  beaufort review create NAME.review {printable(images / 'kept.csv')}")


@app.command()
def export(
    output: Annotated[Path, typer.Argument(help="A new folder for the set.")],
    *,
    images: Annotated[Path, typer.Option(help="Folder that `beaufort mine generate` filled.")],
    selection: Annotated[Path, typer.Option(help="selection.csv of `beaufort mine select`.")],
    review: Annotated[
        Path | None, typer.Option(help="A review of the kept images; only what people accepted is exported.")
    ] = None,
    decided_only: Annotated[
        bool, typer.Option("--decided-only", help="Leave out what the review has not decided.")
    ] = False,
    layout: Annotated[
        str, typer.Option(help="imagenet-d: KIND/CATEGORY/ID.png; image-folder: CATEGORY/ID.png.")
    ] = "imagenet-d",
    labels: Labels = None,
    title: Title = None,
    license_text: Annotated[
        str, typer.Option("--license", help="License of the images, for the datasheet.")
    ] = "not stated",
    reviewed_by: Annotated[
        str, typer.Option(help="Who the reviewers were, for the datasheet: students, say, or networks.")
    ] = "people",
) -> None:
    """Write a set to publish: images, metadata, checksums and a datasheet.

    `beaufort mine export chairs/ --images images/ --selection selection/selection.csv --review chairs.review`
    """
    from beaufort.mining import export_set

    count = export_set(
        output,
        images,
        selection,
        review=review,
        labels=labels,
        layout=layout,
        title=title or "A mined set",
        license_text=license_text,
        reviewed_by=reviewed_by,
        decided_only=decided_only,
    )
    typer.echo(f"{counted(count, 'image')} in {printable(output)}; {printable(output / 'DATASHEET.md')}")


@app.command()
def evaluate(
    location: Set,
    *,
    models: Annotated[
        str,
        typer.Option(
            help="Models, separated by commas: those of `beaufort ls models`; open_clip models choose among "
            "the names of the categories."
        ),
    ],
    labels: Labels = None,
    convention: Convention = None,
    store: Store = "results",
    output: Output = Path("evaluation"),
    choices: Annotated[
        list[Path] | None,
        typer.Option(help="Answers of a vision-language model, from `beaufort mine ask` (repeatable)."),
    ] = None,
) -> None:
    """Evaluate models on a mined set, and report where they fail: kinds, nuisances, categories, confusions.

    `beaufort mine evaluate chairs/ --models c.onnx,open_clip:ViT-B-32/laion2b_s34b_b79k`
    """
    from beaufort.mining import evaluate_set

    with predictions_bar() as show:
        scores = evaluate_set(
            location,
            comma_list(models),
            output,
            store,
            labels=labels,
            convention=convention,
            choices=choices or (),
            progress=show,
        )
    rows = [("model", "", "images", "accuracy", "mean over categories")]
    for one in scores:
        mark = "surrogate" if one.surrogate else ""
        rows.append((one.model, mark, one.kind, f"{one.accuracy:.1%}", f"{one.category_mean:.1%}"))
    typer.echo(table(rows))
    if any(one.surrogate for one in scores):
        typer.echo("surrogates chose the images by failing on them; their accuracy is low by choice")
    typer.echo(printable(output / "index.html"))


@app.command()
def ask(
    location: Set,
    output: Annotated[Path, typer.Argument(help="File of JSON lines for the answers.")],
    *,
    model: RequiredModel,
    options: ModelOptions = None,
    favorites: Annotated[
        str, typer.Option(help="Model whose wrong favorites are the distractors, usually one of open_clip.")
    ],
    orders: Annotated[
        str, typer.Option(help="by-image: a coin for each image; both; truth-first, as published.")
    ] = "by-image",
    scoring: Annotated[
        str, typer.Option(help="whole-words, or as-published: parts of words count.")
    ] = "whole-words",
    labels: Labels = None,
    store: Store = "results",
    seed: Seed = 0,
) -> None:
    """Ask a vision-language model which of two names the main object of each image has.

    `beaufort mine ask chairs/ llava.jsonl --model http://127.0.0.1:8000/v1#llava --favorites c.onnx`

    The model is `transformers:FOLDER-OR-NAME` or a service, `http://HOST/v1#MODEL`. Options of services:
    token (the name of the environment variable with the key), temperature, max_tokens, timeout, retries; of
    transformers: device, dtype, max_tokens.
    """
    from beaufort._core.validation import validate_choice
    from beaufort.mining import SCORINGS, ask_about_set, load_chat_model, score_choices
    from beaufort.mining.two_way_choice import ESTIMATES

    validate_choice("scoring", scoring, SCORINGS)  # before questions are asked, which may take hours
    chat_model = load_chat_model(model, **model_options(options))
    with predictions_bar() as show, progress_bar("questions") as bar:
        answers = ask_about_set(
            location,
            chat_model,
            favorites,
            output,
            store,
            orders=orders,
            labels=labels,
            seed=seed,
            prediction_progress=show,
            progress=bar,
        )
    found = score_choices(answers, scoring=scoring)
    rows = [("", f"{scoring}, {counted(found.images, 'image')}, {counted(found.questions, 'question')}")]
    for attribute, name in ESTIMATES.items():
        estimate = getattr(found, attribute)
        rows.append((name, "undefined" if estimate is None else f"{estimate:.1%}"))
    typer.echo(table(rows))
    typer.echo(", ".join(f"{count} {name}" for name, count in found.counts.items()) + "; chance is 50 %")


def _by_kind(option: str, texts: list[str] | None) -> dict[str, str]:
    """Parse texts as KIND=VALUE."""
    found: dict[str, str] = {}
    for text in texts or ():
        kind, _, value = text.partition("=")
        if not kind or not value:
            raise OptionError(f"--{option} must be KIND=VALUE, got {text!r}")
        if kind in found:
            raise OptionError(f"--{option} was given twice for {kind}")
        found[kind] = value
    return found
