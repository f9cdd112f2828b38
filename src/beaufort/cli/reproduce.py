"""`beaufort reproduce`: the tables of a paper, made again."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list, counted, printable
from beaufort.cli._options import Device, Jobs, Json, Only, OptionalOutput, Seeds, SeveralData


def reproduce(
    study: Annotated[str, typer.Argument(help="imagenet-c-enhancements, icons-50, mined-digits or mnist-c.")],
    *,
    only: Only = None,
    data: SeveralData = None,
    output: OptionalOutput = None,
    device: Device = "auto",
    seeds: Seeds = None,
    jobs: Jobs = 1,
    stop_after: Annotated[
        float | None, typer.Option(min=0, help="Save and stop after N seconds; the same command resumes.")
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Use few images and tiny training runs, whose numbers mean nothing."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make the tables of a paper again: train, evaluate, and write tables, figures and a page.

    `beaufort reproduce mnist-c --device cuda --jobs 8`

    What the output directory has is not made again: after an interruption, or with one more seed, only what
    is missing is done. The output is results/STUDY by default (results/enhancements for
    imagenet-c-enhancements), and `--jobs` processes share the tasks, also on one GPU.

    `--only` names parts. mnist-c: fig2, fig3, fig4, selection, pessimal, gallery, page. icons-50: style,
    subtype, subtype-released, traditional, traditional-released, shake, shake-subtype, shake-500, others,
    styles, page, or names of networks. mined-digits: train, images, mine. imagenet-c-enhancements: nlm,
    clahe, stability, ten-crop, small, aggregation, multiscale, transfer, shake, style, augmentation, page.

    `--data NAME=FOLDER` says where a dataset is: mnist, icons-50, icons-open, imagenet, networks (a directory
    of ONNX files) or cifar10. Each recipe is trained with 3 seeds by default, with 5 for
    imagenet-c-enhancements and with one for mined-digits.
    """
    from beaufort.studies import reproduce as run

    outcome = run(
        study,
        output,
        only=_parts(only),
        data=_places(data or []),
        device=device or "auto",
        seeds=seeds,
        jobs=jobs or 1,
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
