"""`beaufort mine`: hard test images, planned, made, chosen, exported and evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list, counted, printable
from beaufort.cli._console import progress_bar, table
from beaufort.cli._evaluation import answers_bar
from beaufort.cli._options import Convention, Seed, Store

if TYPE_CHECKING:
    from beaufort.data.labels import Grouping
    from beaufort.mining import ChoiceAnswer, Generator

app = typer.Typer(
    no_args_is_help=True, help="Hard test images: categories in unusual places, textures and materials."
)


CategoryLabels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="Which outputs count as each category: imagenet-d, or a JSON file with the outputs of each; "
        "names decide if not given.",
    ),
]


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

    A file that is there and is another is left alone: it may have been edited.

    `beaufort mine plan plan.csv --categories chairs.txt --each 2`
    """
    from beaufort.data.labels import label_maps
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
    write_plan(items, output, replace=False)
    kinds = Counter(item.kind for item in items)
    typer.echo(table([("kind", "images"), *((kind, f"{count:,}") for kind, count in kinds.items())]))
    typer.echo(f"{counted(len(items), 'image')} planned in {printable(output)}")


_OPTIONS = {
    "composite": ("surfaces", "size"),
    "folder": (),
    "conditional": ("guidance",),
    "diffusers": ("photos", "size", "scheduler", "guidance"),
}
"""Options without a default that each generator takes."""


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
    photos: Annotated[
        Path | None,
        typer.Option(help="Of diffusers: a folder of photos for each category, to be changed by the prompt."),
    ] = None,
    task: Annotated[
        str, typer.Option(help="With photos: image-to-image, or inpainting, which needs masks.")
    ] = "image-to-image",
    strength: Annotated[
        float, typer.Option(help="With photos: from just above 0, which changes little, to 1.")
    ] = 0.6,
    surfaces: Annotated[
        Path | None, typer.Option(help="Of composite: a folder of pictures for each nuisance.")
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            min=8, help="Height and width in pixels; of composite 224, with photos 512, if not given."
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Of diffusers and conditional: steps of the sampler.")] = 30,
    scheduler: Annotated[str | None, typer.Option(help="Of diffusers: name of a scheduler.")] = None,
    guidance: Annotated[float | None, typer.Option(help="Of diffusers: scale of the guidance.")] = None,
    dtype: Annotated[str, typer.Option(help="Of diffusers: float32, float16 or bfloat16.")] = "float32",
    device: Annotated[str, typer.Option(help="Of diffusers and conditional: cpu, cuda or cuda:1.")] = "cpu",
    batch: Annotated[int, typer.Option(help="Of diffusers and conditional: images at a time.")] = 4,
) -> None:
    """Make the images of a plan that the folder lacks; killed, the same command goes on where it was.

    `beaufort mine generate plan.csv images/ --generator composite:cutouts/`
    """
    from beaufort.mining import (
        CompositeGenerator,
        ConditionalGenerator,
        DiffusionGenerator,
        FolderGenerator,
        RetouchGenerator,
        read_plan,
    )
    from beaufort.mining import generate as generate_all

    items = read_plan(plan)
    kind, _, source = generator.partition(":")
    given: dict[str, Any] = {"photos": photos, "surfaces": surfaces, "size": size}
    given |= {"scheduler": scheduler, "guidance": guidance}
    for name, value in given.items():
        if value is not None and name not in _OPTIONS.get(kind, given):
            raise OptionError(f"--{name} must go with a generator that takes it, got it with {generator!r}")
    made: Generator
    if kind == "composite" and source:
        made = CompositeGenerator(Path(source), surfaces=surfaces, size=size or 224)
    elif kind == "folder" and source:
        made = FolderGenerator(Path(source))
    elif kind == "conditional" and source:
        more = {} if guidance is None else {"guidance": guidance}
        made = ConditionalGenerator(Path(source), steps=steps, batch=batch, device=device, **more)
    elif kind == "diffusers" and source:
        options: dict[str, Any] = {"steps": steps, "batch": batch, "dtype": dtype, "device": device}
        options |= {"scheduler": scheduler, "guidance": guidance}
        if photos is None:
            made = DiffusionGenerator(source, size=size, **options)
        else:
            made = RetouchGenerator(source, photos, task=task, strength=strength, size=size or 512, **options)
    else:
        raise OptionError(
            "generator must be composite:CUTOUTS, folder:LIST.csv, diffusers:MODEL or conditional:FOLDER, "
            f"got {generator!r}"
        )
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
    rule: Annotated[
        str, typer.Option(help="all surrogates must fail on an image, or K-of-N of them: 3-of-4.")
    ] = "all",
    labels: CategoryLabels = None,
    convention: Convention = None,
    store: Store = "results",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables and the page.")] = Path(
        "selection"
    ),
    controls: Annotated[
        int, typer.Option(min=0, help="Hidden controls of each sort in the list for the review.")
    ] = 0,
    seed: Seed = 0,
) -> None:
    """Keep the images that surrogate models get wrong, and tell how hard they are for others.

    `beaufort mine select images/ --surrogates a.onnx,b.onnx --others c.onnx --labels imagenet-d`

    The kept images are listed in `IMAGES/kept.csv`, as `beaufort review create` takes them.
    """
    from beaufort.mining import (
        ask_models,
        hardness,
        open_generated,
        write_review_list,
        write_selection_report,
    )
    from beaufort.mining import select as select_images
    from beaufort.mining.selection import parse_rule

    chosen = comma_list(surrogates)
    parse_rule(rule, len(chosen))  # before models are asked, which may take hours
    data, made = open_generated(images)
    with answers_bar() as show:
        verdicts = ask_models(
            [*chosen, *comma_list(others)],
            data,
            store,
            labels=_grouping(labels),
            convention=convention,
            progress=show,
        )
    selection = select_images(verdicts, made, verdicts.models[: len(chosen)], rule=rule)
    kept = int(selection.kept.sum())
    if kept:  # first, as it may be impossible: the list and the page are always of one selection
        write_review_list(selection, images / "kept.csv", controls=controls, seed=seed)
    else:  # that of an earlier selection would pass for this one's
        (images / "kept.csv").unlink(missing_ok=True)
    write_selection_report(selection, output, seed=seed)
    rows = [("model", "", "unfiltered", "kept")]
    rows += [
        (
            one.model,
            "surrogate" if one.surrogate else "",
            f"{one.unfiltered:.1%}",
            "" if one.kept is None else f"{one.kept:.1%}",
        )
        for one in hardness(selection)
    ]
    typer.echo(table(rows))
    typer.echo(f"{kept:,} of {counted(len(made), 'image')} kept; {printable(output / 'index.html')}")
    if kept:
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
    labels: CategoryLabels = None,
    title: Annotated[str, typer.Option(help="Of the datasheet.")] = "A mined set",
    license_text: Annotated[
        str, typer.Option("--license", help="Of the images, for the datasheet.")
    ] = "not stated",
    reviewed_by: Annotated[
        str, typer.Option(help="Who the reviewers were, for the datasheet: students, say, or networks.")
    ] = "people",
) -> None:
    """Write a set to give away: images, metadata, checksums and a datasheet.

    `beaufort mine export chairs/ --images images/ --selection selection/selection.csv --review chairs.review`
    """
    from beaufort.mining import export_set
    from beaufort.mining.review import open_review

    count = export_set(
        output,
        images,
        selection,
        review=None if review is None else open_review(review),
        labels=_grouping(labels),
        layout=layout,
        title=title,
        license_text=license_text,
        reviewed_by=reviewed_by,
        decided_only=decided_only,
    )
    typer.echo(f"{counted(count, 'image')} in {printable(output)}; {printable(output / 'DATASHEET.md')}")


@app.command()
def evaluate(
    location: Annotated[
        str, typer.Argument(metavar="SET", help="What `beaufort mine export` wrote, or imagenet-d:FOLDER.")
    ],
    *,
    models: Annotated[
        str,
        typer.Option(
            help="Models, separated by commas: those of `beaufort ls models`; open_clip models choose among "
            "the names of the categories."
        ),
    ],
    labels: CategoryLabels = None,
    convention: Convention = None,
    store: Store = "results",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables and the page.")] = Path(
        "evaluation"
    ),
    choices: Annotated[
        list[Path] | None,
        typer.Option(help="Answers of a vision-language model, from `beaufort mine ask`; may be repeated."),
    ] = None,
) -> None:
    """Evaluate models on a mined set, and show where they fail: kinds, nuisances, categories, confusions.

    `beaufort mine evaluate chairs/ --models c.onnx,open_clip:ViT-B-32/laion2b_s34b_b79k`
    """
    from beaufort.mining import ask_models, open_set, read_choices, score_choices, score_set
    from beaufort.mining import write_evaluation_report as write_report

    mined = open_set(location)
    said: dict[str, Sequence[ChoiceAnswer]] = {}
    for path in choices or ():
        name, answers = read_choices(path, mined.data)
        if name in said:
            raise OptionError(
                f"choices must have one file for each model, got another one of {name!r}: {path}"
            )
        said[name] = answers
    with answers_bar() as show:
        verdicts = ask_models(
            comma_list(models),
            mined.data,
            store,
            labels=_grouping(labels) or mined.labels,
            convention=convention,
            progress=show,
        )
    scored = {name: score_choices(answers) for name, answers in said.items()}
    write_report(mined, verdicts, output, choices=scored)
    rows = [("model", "", "images", "accuracy", "mean over categories")]
    rows += [
        (
            one.model,
            "surrogate" if one.surrogate else "",
            one.kind,
            f"{one.accuracy:.1%}",
            f"{one.category_mean:.1%}",
        )
        for one in score_set(mined, verdicts)
    ]
    typer.echo(table(rows))
    if any(name in mined.surrogates for name in verdicts.models):
        typer.echo("surrogates chose the images by failing on them; their accuracy is low by choice")
    typer.echo(printable(output / "index.html"))


@app.command()
def ask(
    location: Annotated[str, typer.Argument(metavar="SET", help="As for `beaufort mine evaluate`.")],
    output: Annotated[Path, typer.Argument(help="File of JSON lines that keeps the answers.")],
    *,
    model: Annotated[str, typer.Option(help="transformers:FOLDER-OR-NAME, or http://HOST/v1#MODEL.")],
    favorites: Annotated[
        str, typer.Option(help="Model whose wrong favorites are the distractors, as a rule open_clip's.")
    ],
    orders: Annotated[
        str, typer.Option(help="by-image: a coin thrown by the image's id; both; truth-first, as published.")
    ] = "by-image",
    scoring: Annotated[
        str, typer.Option(help="whole-words, or as-published: parts of words count.")
    ] = "whole-words",
    token: Annotated[
        str | None, typer.Option(help="Name of the environment variable with the key of the service.")
    ] = None,
    device: Annotated[str, typer.Option(help="Of transformers: cpu, cuda or cuda:1.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="Of transformers: float32, float16 or bfloat16.")] = "float32",
    labels: CategoryLabels = None,
    store: Store = "results",
    seed: Seed = 0,
) -> None:
    """Ask a vision-language model which of two names the main object of each image has.

    `beaufort mine ask chairs/ llava.jsonl --model http://127.0.0.1:8000/v1#llava --favorites c.onnx`
    """
    from beaufort.mining import (
        ask_models,
        ask_questions,
        load_chat_model,
        make_questions,
        open_set,
        score_choices,
    )
    from beaufort.mining.answer_scoring import check_scoring
    from beaufort.mining.questions import check_orders

    check_scoring(scoring)  # before questions are asked, which may take hours
    check_orders(orders)
    mined = open_set(location)
    options = {"token": token} if model.startswith("http") else {"device": device, "dtype": dtype}
    asked = load_chat_model(model, **options)
    with answers_bar() as show:
        verdicts = ask_models(
            [favorites],
            mined.data,
            store,
            labels=_grouping(labels) or mined.labels,
            convention="restricted",
            progress=show,
        )
    questions = make_questions(verdicts, verdicts.models[0], orders=orders, seed=seed)
    with progress_bar("questions") as bar:
        answers = ask_questions(asked, questions, mined.data, output, progress=bar)
    found = score_choices(answers, scoring=scoring)
    rows = [("", f"{scoring}, {counted(found.images, 'image')}, {counted(found.questions, 'question')}")]
    for name, one in (
        ("accuracy", found.accuracy),
        ("coverage", found.coverage),
        ("truth first", found.right_when_first),
        ("truth second", found.right_when_second),
        ("position bias", found.position_bias),
        ("same in both orders", found.consistent),
    ):
        rows.append((name, "undefined" if one is None else f"{one:.1%}"))
    typer.echo(table(rows))
    typer.echo(", ".join(f"{count} {name}" for name, count in found.counts.items()) + "; chance is 50 %")


def _grouping(labels: str | None) -> Grouping | None:
    """The outputs of each category: a label map of ours, or a file."""
    from beaufort.data.labels import label_maps, read_grouping

    if labels is None:
        return None
    return label_maps[labels].grouping if labels in label_maps else read_grouping(labels)


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Texts as KIND=VALUE."""
    found = {}
    for text in texts or ():
        kind, equals, value = text.partition("=")
        if not equals or not kind or not value:
            raise OptionError(f"{option} must be KIND=VALUE, got {text!r}")
        if kind in found:
            raise OptionError(f"{option} must be given once for each kind, got {kind} again: {value!r}")
        found[kind] = value
    return found
