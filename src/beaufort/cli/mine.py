"""`beaufort mine`: plan, generate, select, export and evaluate hard test images."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list, counted, printable
from beaufort._core.validation import validate_choice
from beaufort.cli._console import progress_bar, table
from beaufort.cli._evaluation import predictions_bar
from beaufort.cli._options import (
    Labels,
    ModelOptions,
    Models,
    Output,
    RequiredModel,
    RequiredModels,
    Seed,
    Store,
    model_options,
    parse_labels,
)

app = typer.Typer(
    no_args_is_help=True, help="Make hard test images: categories in unusual places, textures and materials."
)

Set = Annotated[
    str,
    typer.Argument(metavar="SET", help="Output of `beaufort mine export`, or imagenet-d:DIRECTORY."),
]

ReviewFile = Annotated[
    Path | None, typer.Option("--review", help="Review of the images, from `beaufort review create`.")
]


@app.command()
def plan(
    categories: Annotated[
        str,
        typer.Argument(help="imagenet-d, a text file with one name per line, or a CSV file (column name)."),
    ],
    output: Annotated[Path, typer.Argument(help="CSV file to write; edit it before generating images.")],
    *,
    nuisances: Annotated[
        list[str] | None,
        typer.Option(help="Nuisances of a kind as KIND=FILE (repeatable); a built-in list by default."),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(help="Prompt of a kind as KIND=SENTENCE, with {category} and {nuisance} (repeatable)."),
    ] = None,
    each: Annotated[int, typer.Option(help="Number of images per pair.")] = 1,
    sample: Annotated[int | None, typer.Option(help="Number of pairs to draw; all by default.")] = None,
    seed: Seed = None,
) -> None:
    """Plan images: cross categories with nuisances, and write a row with prompt, seed and label for each.

    `beaufort mine plan chairs.txt plan.csv --each 2`

    A different existing plan is not overwritten, because it may have been edited.
    """
    from beaufort.mining import make_plan, read_names, write_plan

    items = make_plan(
        read_names(categories),
        nuisances={kind: read_names(file) for kind, file in _by_kind("nuisances", nuisances).items()} or None,
        templates=_by_kind("template", template),
        each=each,
        sample=sample,
        seed=seed or 0,
    )
    write_plan(items, output, replace=False)
    kinds = Counter(item.kind for item in items)
    typer.echo(table([("kind", "images"), *((kind, f"{count:,}") for kind, count in kinds.items())]))
    typer.echo(f"{counted(len(items), 'image')} planned in {printable(output)}")


@app.command()
def generate(
    plan: Annotated[Path, typer.Argument(help="Plan, as written by `beaufort mine plan`.")],
    output: Annotated[Path, typer.Argument(help="Directory for the images.")],
    *,
    generator: Annotated[
        str,
        typer.Option(
            help="composite:CUTOUTS, folder:LIST.csv, diffusers:MODEL (directory, name or .safetensors file) "
            "or conditional:DIRECTORY."
        ),
    ],
    options: ModelOptions = None,
) -> None:
    """Generate the images of a plan; after an interruption, the same command resumes.

    `beaufort mine generate plan.csv images/ --generator composite:cutouts/ --set size=224`

    Options of composite: surfaces, size, fill; of diffusers: steps, size, scheduler, guidance, dtype, device,
    batch, variant, revision, config (of a single file), and to change photos: photos, task, strength; of
    conditional: steps, guidance, device, batch.
    """
    from beaufort.mining import generate as generate_all
    from beaufort.mining import load_generator, read_omitted, read_plan

    items = read_plan(plan)
    loaded = load_generator(generator, **model_options(options))
    with progress_bar("generate") as show:
        new = generate_all(items, loaded, output, progress=show)
    planned = {item.id for item in items}
    omitted = Counter(reason for id, reason in read_omitted(output).items() if id in planned)
    existed = len(items) - new - omitted.total()
    typer.echo(f"{counted(new, 'image')} written to {printable(output)}, {existed} existed")
    for reason, count in omitted.items():
        typer.echo(f"omitted {counted(count, 'image')}: {printable(reason)}")


@app.command()
def select(
    images: Annotated[Path, typer.Argument(help="Directory written by `beaufort mine generate`.")],
    *,
    surrogates: Annotated[str, typer.Option(help="Models that select images, separated by commas.")],
    others: Annotated[
        str,
        typer.Option(
            help="Models to evaluate on the selected images without selecting, separated by commas."
        ),
    ] = "",
    failures: Annotated[
        str,
        typer.Option(
            help="Number of surrogates that must misclassify an image: all, or K-of-N such as 3-of-4."
        ),
    ] = "all",
    labels: Labels = None,
    store: Store = "results",
    output: Output = Path("selection"),
    controls: Annotated[
        int, typer.Option(min=0, help="Number of hidden controls of each kind in the review list.")
    ] = 0,
    seed: Seed = None,
) -> None:
    """Select the images that surrogate models get wrong, and report how hard they are for others.

    `beaufort mine select images/ --surrogates a.onnx,b.onnx --others c.onnx --labels imagenet-d`

    The selected images are listed in `IMAGES/kept.csv`, the input of `beaufort review create`.
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
            controls=controls,
            seed=seed or 0,
            progress=show,
            **parse_labels(labels, ["convention"]),
        )
    rows = [("model", "", "unfiltered", "kept")]
    for one in hardness(selection):
        kept = "" if one.kept is None else f"{one.kept:.1%}"
        rows.append((one.model, "surrogate" if one.surrogate else "", f"{one.unfiltered:.1%}", kept))
    typer.echo(table(rows))
    count = int(selection.kept.sum())
    total = counted(len(selection.images), "image")
    typer.echo(f"{count:,} of {total} kept; {printable(output / 'index.html')}")
    if count:
        typer.echo(f"next:\n  beaufort review create NAME.review {printable(images / 'kept.csv')}")


@app.command()
def screen(
    images: Annotated[Path, typer.Argument(help="Directory with kept.csv, from `beaufort mine select`.")],
    *,
    model: Models = None,
    options: ModelOptions = None,
    review: ReviewFile = None,
    labels: Labels = None,
    seed: Seed = None,
) -> None:
    """Filter out unsuitable images before a human review, and measure the errors of the filter.

    `beaufort mine screen images/ --model open_clip:ViT-B-32/laion2b_s34b_b79k --model chat:http://127.0.0.1:8000/v1#llava`

    `beaufort mine screen images/ --review chairs.review` compares stored decisions with those of reviewers.

    Three checks, each optional: the category must be among the top most similar ones (a model such as
    open_clip); a chat model must not answer "no" when it is asked whether the image shows the category; and
    an image must not be a near-duplicate of an earlier one of its category. Decisions are stored in
    IMAGES/screening.csv. IMAGES/screened.csv, the input of `beaufort review create`, has the images that
    passed and a random sample of the others.

    Options: top (5); hash_bits, the largest difference between perceptual hashes of duplicates (4; none:
    off); embedding, the smallest cosine between embeddings of duplicates (off; requires open_clip); audit,
    the number of removed images in the review (100); device; and the options of chat models.
    """
    from beaufort.mining import screen_images
    from beaufort.mining.screening import CHECKS, SCREENED

    if review is not None:
        _show_screening_errors(images, review)
        return
    given = model_options(options)
    own = {name: given.pop(name) for name in ("top", "hash_bits", "embedding", "audit") if name in given}
    chats = [name for name in model or () if name.startswith("chat:")]
    others = [name for name in model or () if name not in chats]
    if len(chats) > 1 or len(others) > 1:
        raise OptionError("--model may be given once for a chat model and once for another model")
    for_model = {name: given[name] for name in ("device",) if name in given} if others else {}
    if not chats and (unknown := [name for name in given if name not in for_model]):
        raise OptionError(f"unknown option {unknown[0]!r}; options of chat models require --model chat:…")
    if chats and not chats[0].startswith("chat:transformers:"):
        given.pop("device", None)
    with progress_bar("screen") as show:
        found = screen_images(
            images,
            model=others[0] if others else None,
            chat=chats[0] if chats else None,
            seed=seed or 0,
            model_options=for_model,
            chat_options=given,
            progress=show,
            **own,
            **parse_labels(labels, []),
        )
    passed = sum(one.passed for one in found.images)
    rows = [("removed by", "images"), *((check, f"{found.removed(check):,}") for check in CHECKS)]
    typer.echo(table(rows))
    audited = sum(one.audited for one in found.images)
    typer.echo(
        f"{passed:,} of {counted(len(found.images), 'image')} passed; "
        f"{audited:,} of the others are sampled for the audit"
    )
    for note in found.notes:
        typer.echo(f"note: {printable(note)}", err=True)
    typer.echo(f"next:\n  beaufort review create NAME.review {printable(images / SCREENED)}")


def _show_screening_errors(images: Path, review: Path) -> None:
    from beaufort.mining import read_screening, screening_errors

    found = screening_errors(read_screening(images), review)
    rows = [("part", "kind", "images", "reviewed", "accepted by people")]
    for one in found.parts:
        accepted = "" if one.accepted is None else f"{one.accepted:.1%}"
        rows.append((one.check, one.kind or "all", f"{one.images:,}", f"{one.reviewed:,}", accepted))
    typer.echo(table(rows))
    typer.echo(f"precision {found.precision:.1%}; recall {found.recall:.1%} (similarity and label checks)")
    if found.undecided:
        typer.echo(f"omitted {counted(found.undecided, 'image')} without a decision")


@app.command()
def export(
    images: Annotated[Path, typer.Argument(help="Directory written by `beaufort mine generate`.")],
    selection: Annotated[Path, typer.Argument(help="selection.csv of `beaufort mine select`.")],
    output: Annotated[Path, typer.Argument(help="New directory for the set.")],
    *,
    review: ReviewFile = None,
    layout: Annotated[
        str, typer.Option(help="imagenet-d: KIND/CATEGORY/ID.png; image-folder: CATEGORY/ID.png.")
    ] = "imagenet-d",
    labels: Labels = None,
    options: ModelOptions = None,
) -> None:
    """Export a set to publish: images, metadata, checksums and a datasheet.

    With a review, only accepted images are exported.

    `beaufort mine export images/ selection/selection.csv chairs/ --review chairs.review --set license=CC0`

    Options: title, license and reviewed_by (who the reviewers are: students, say, or networks) for the
    datasheet; decided_only=yes omits images on which the review has not decided.
    """
    from beaufort.mining import export_set

    given = {"title": "A mined set", "license": "not stated", "reviewed_by": "people", "decided_only": "no"}
    for text in options or []:
        name, _, value = text.partition("=")
        given[validate_choice("option of --set", name, list(given))] = value
    count = export_set(
        output,
        images,
        selection,
        review=review,
        layout=layout,
        title=given["title"],
        license_text=given["license"],
        reviewed_by=given["reviewed_by"],
        decided_only=validate_choice("decided_only", given["decided_only"], ("yes", "no")) == "yes",
        **parse_labels(labels, []),
    )
    typer.echo(
        f"{counted(count, 'image')} written to {printable(output)}; {printable(output / 'DATASHEET.md')}"
    )


@app.command()
def evaluate(
    location: Set,
    *,
    model: RequiredModels,
    labels: Labels = None,
    store: Store = "results",
    output: Output = Path("evaluation"),
    choices: Annotated[
        list[Path] | None,
        typer.Option(help="Replies of a vision-language model, from `beaufort mine ask` (repeatable)."),
    ] = None,
) -> None:
    """Evaluate models on a mined set, and report where they fail: kinds, nuisances, categories, confusions.

    `beaufort mine evaluate chairs/ --model c.onnx --model open_clip:ViT-B-32/laion2b_s34b_b79k`

    open_clip models choose among the names of the categories.
    """
    from beaufort.mining import evaluate_set

    with predictions_bar() as show:
        scores = evaluate_set(
            location,
            model,
            output,
            store,
            choices=choices or (),
            progress=show,
            **parse_labels(labels, ["convention"]),
        )
    rows = [("model", "", "images", "accuracy", "mean over categories")]
    for one in scores:
        mark = "surrogate" if one.surrogate else ""
        rows.append((one.model, mark, one.kind, f"{one.accuracy:.1%}", f"{one.category_mean:.1%}"))
    typer.echo(table(rows))
    if any(one.surrogate for one in scores):
        typer.echo("the accuracy of surrogates is low by construction: their failures selected the images")
    typer.echo(printable(output / "index.html"))


@app.command()
def ask(
    location: Set,
    output: Annotated[Path, typer.Argument(help="JSON Lines file for the replies.")],
    *,
    model: RequiredModel,
    options: ModelOptions = None,
    favorites: Annotated[
        str, typer.Option(help="Model whose most likely wrong classes are the distractors, often open_clip.")
    ],
    orders: Annotated[
        str, typer.Option(help="Order of the two names: by-image (random), both, or label-first (published).")
    ] = "by-image",
    scoring: Annotated[
        str, typer.Option(help="How names are found in replies: whole-words, or as-published (substrings).")
    ] = "whole-words",
    labels: Labels = None,
    store: Store = "results",
    seed: Seed = None,
) -> None:
    """Ask a vision-language model which of two names fits the main object of each image.

    `beaufort mine ask chairs/ llava.jsonl --model http://127.0.0.1:8000/v1#llava --favorites c.onnx`

    The model is `chat:http://HOST/v1#MODEL`, a service, or `chat:transformers:DIRECTORY-OR-NAME`; `chat:`
    may be omitted. Options of services: token (the name of the environment variable with the key), version,
    temperature, max_tokens, timeout, retries, requests (at a time), per_minute; of transformers: device,
    dtype, max_tokens, version. Refusals and unreadable replies are saved and counted.
    """
    from beaufort.mining import SCORINGS, ask_about_set, score_choices
    from beaufort.mining.two_way_choice import ESTIMATES, OUTCOMES
    from beaufort.models import load_chat_model

    validate_choice("scoring", scoring, SCORINGS)  # before the questions, which may take hours
    chat_model = load_chat_model(model, **model_options(options))
    with predictions_bar() as show, progress_bar("questions") as bar:
        replies = ask_about_set(
            location,
            chat_model,
            favorites,
            output,
            store,
            orders=orders,
            seed=seed or 0,
            prediction_progress=show,
            progress=bar,
            **parse_labels(labels, []),
        )
    scores = score_choices(replies, scoring=scoring)
    rows = [("", f"{scoring}, {counted(scores.images, 'image')}, {counted(scores.questions, 'question')}")]
    for attribute, name in ESTIMATES.items():
        estimate = getattr(scores, attribute)
        rows.append((name, "undefined" if estimate is None else f"{estimate:.1%}"))
    typer.echo(table(rows))
    counts = [
        f"{scores.counts[name]} {name}" for name in OUTCOMES if name in OUTCOMES[:4] or scores.counts[name]
    ]
    typer.echo(", ".join(counts) + "; chance is 50 %")


def _by_kind(option: str, texts: list[str] | None) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in texts or ():
        kind, _, value = text.partition("=")
        if not kind or not value:
            raise OptionError(f"--{option} must be KIND=VALUE, got {text!r}")
        if kind in values:
            raise OptionError(f"--{option} was given twice for {kind}")
        values[kind] = value
    return values
