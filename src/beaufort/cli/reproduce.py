"""`beaufort reproduce`: the tables of a paper, made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list, counted, printable
from beaufort.cli._options import Json


def reproduce(
    study: Annotated[str, typer.Argument(help="imagenet-c-enhancements, icons-50, mined-digits or mnist-c.")],
    *,
    only: Annotated[
        str | None,
        typer.Option(
            help="Parts, separated by commas. mnist-c: fig2, fig3, fig4, selection, pessimal, gallery, page. "
            "icons-50: style, subtype, subtype-released, traditional, traditional-released, shake, "
            "shake-subtype, shake-500, others, styles, page, or networks. mined-digits: train, images, mine. "
            "imagenet-c-enhancements: nlm, clahe, stability, ten-crop, small, aggregation, multiscale, "
            "transfer, shake, style, augmentation, page."
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER",
            help="Where a data set lies, as mnist=FOLDER or icons-50=FOLDER; may be repeated. "
            "imagenet-c-enhancements: imagenet, networks (a folder of ONNX files) and cifar10.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder; results/STUDY if not given, results/enhancements for imagenet-c-enhancements.",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Trainings of each recipe; 3 if not given, 5 for imagenet-c-enhancements. mined-digits "
            "trains each network once.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the work, also on one GPU.")] = 1,
    stop_after: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds after which it saves and stops; the same command goes on."),
    ] = None,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Few images and tiny trainings; the numbers mean nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make the tables of a paper again: train, evaluate, and write tables, figures and a page.

    `beaufort reproduce mnist-c --device cuda --jobs 8`

    What the folder has is not made again: killed, or with one more seed, only what is missing is done.
    """
    from beaufort.studies import reproduce as run

    outcome = run(
        study,
        output,
        only=_parts(only),
        data=_places(data or []),
        device=device,
        seeds=seeds,
        jobs=jobs,
        stop_after_s=stop_after,
        rehearse=rehearse,
        tell=lambda line: typer.echo(printable(line), err=True),
    )
    if as_json:
        typer.echo(json.dumps({**vars(outcome), "finished": outcome.finished}))
        return
    done = counted(outcome.done, "piece of work", "pieces of work")
    there = f"{done} done, {outcome.there} there before"
    typer.echo(there if outcome.finished else f"{there}, {outcome.left} left; the same command goes on")


def _parts(text: str | None) -> list[str]:
    """The parts that are named; an empty text, as of an unset variable, must not mean hours of work."""
    if text is not None and not comma_list(text):
        raise OptionError(f"only must name at least one part, got {text!r}; without --only, all are done")
    return comma_list(text or "")


def _places(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if not (equals and name and place):
            raise OptionError(f"data must be given as NAME=FOLDER, got {text!r}")
        found[name] = place
    return found
