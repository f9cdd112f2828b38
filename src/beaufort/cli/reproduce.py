"""`beaufort reproduce`: reproduce the tables and figures of a study."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list, counted, printable
from beaufort.cli._console import print_json, table
from beaufort.cli._options import Device, Jobs, Json, Only, OptionalOutput, Seeds, SeveralData


def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            help="imagenet-c-enhancements, icons-50, mined-digits, mnist-c, natural-shifts, architectures "
            "or a YAML file (`beaufort new study` writes one)."
        ),
    ],
    *,
    only: Only = None,
    data: SeveralData = None,
    output: OptionalOutput = None,
    device: Device = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    stop_after: Annotated[
        float | None, typer.Option(min=0, help="Save and stop after N seconds; the same command resumes.")
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse",
            help="Try the study with few images and tiny training runs; its numbers are meaningless.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a published study or your own: train, evaluate, and write tables, figures and a page.

    `beaufort reproduce mnist-c --device cuda --jobs 8`

    `beaufort reproduce architectures --output architectures`

    What the output directory contains is not computed again: after an interruption, or with one more seed,
    only the missing parts are. The output is results/STUDY by default (results/enhancements for
    imagenet-c-enhancements). `--jobs` processes share the tasks, also on one GPU.

    natural-shifts and architectures are computed from the tables of the testbed and take only `--output` and
    `--json`: the figures of the natural-shift paper with newer models; and mCE, relative mCE and the distance
    from the line of accuracy of 35 networks, with Tables 1 and 2 of the ImageNet-C paper. For
    architectures, `--data scores=CSV` adds scores on imagenet-c (`beaufort report --format csv`).

    `--only` selects parts. mnist-c: fig2, fig3, fig4, selection, pessimal, gallery, page. icons-50: style,
    subtype, subtype-released, traditional, traditional-released, shake, shake-subtype, shake-500, others,
    styles, cifar-100-subtypes, imagenet-22k, page, or names of networks. mined-digits: train, images, mine.
    imagenet-c-enhancements: nlm, clahe, stability, ten-crop, small, aggregation, multiscale, transfer, shake,
    style, augmentation, page. A study file: its questions, page.

    `--data NAME=DIRECTORY` locates a dataset: mnist, icons-50, icons-open, cifar-100, imagenet-22k, imagenet,
    networks (a directory of ONNX files) or cifar10. Each recipe is trained with 3 seeds by default, with 5
    for imagenet-c-enhancements and with 1 for mined-digits.
    """
    if study in ("natural-shifts", "architectures"):
        options: dict[str, Any] = {
            "--only": only,
            "--data": data if study == "natural-shifts" else None,
            "--device": device,
            "--seeds": seeds,
            "--jobs": jobs,
        }
        options |= {"--stop-after": stop_after, "--rehearse": rehearse or None}
        if unused := [name for name, value in options.items() if value is not None]:
            raise OptionError(f"{unused[0]} cannot be used with the study {study}")
        if study == "natural-shifts":
            _natural_shifts(output, as_json)
        else:
            _architectures(output, _locations(data or []), as_json)
        return
    from beaufort.studies import reproduce as run

    outcome = run(
        study,
        output,
        only=_parts(only),
        data=_locations(data or []),
        device=device or "auto",
        seeds=seeds,
        jobs=jobs or 1,
        stop_after_s=stop_after,
        rehearse=rehearse,
        log=lambda line: typer.echo(printable(line), err=True),
    )
    if as_json:
        typer.echo(json.dumps({**vars(outcome), "finished": outcome.finished}))
        return
    done = f"{counted(outcome.done, 'task')} done, {outcome.there} done before"
    typer.echo(done if outcome.finished else f"{done}, {outcome.left} left; the same command continues")


def _natural_shifts(output: Path | None, as_json: bool) -> None:
    from beaufort.testbed.natural_shift_study import write_study

    if as_json:
        raise OptionError("--json cannot be used with the study natural-shifts")
    for path in write_study(output or Path("natural-shifts")):
        typer.echo(printable(path))


def _architectures(output: Path | None, data: dict[str, str], as_json: bool) -> None:
    from beaufort.testbed.architectures import study_architectures, write_architectures

    if data.keys() - {"scores"} or (data and output is None):
        raise OptionError("--data must be scores=CSV for the study architectures, and requires --output")
    study, scores = study_architectures(), Path(data["scores"]) if data else None
    written = [] if output is None else list(write_architectures(study, output, scores=scores))
    if as_json:
        print_json(asdict(study))
        return
    header = ("network", "family", "clean error", "mCE", "relative mCE", "noise CE", "off the line [95 %]")
    rows: list[tuple[str, ...]] = [header]
    for one in study.networks:
        numbers = [f"{x:.1f}" for x in (one.clean_error, one.mce, one.relative_mce, one.noise_ce)]
        ends = f"[{one.residual_interval.low:+.1f}, {one.residual_interval.high:+.1f}]"
        rows.append((one.name, one.family, *numbers, f"{one.residual:+.1f} {ends}"))
    typer.echo(table(rows))
    sign = "-" if study.offset < 0 else "+"
    typer.echo(
        f"\nline through {study.fitted} standard networks: mCE = {study.slope:.3f} × clean error "
        f"{sign} {abs(study.offset):.1f}, r² {study.r2:.2f}; a network below it is more robust than its "
        "accuracy predicts. Intervals are over the choice of these networks"
    )
    for path in written:
        typer.echo(printable(path))


def _parts(text: str | None) -> list[str]:
    """Return the parts; an empty text, such as an unset variable, must not start hours of work."""
    if text is not None and not comma_list(text):
        raise OptionError(f"--only must name at least one part, got {text!r}")
    return comma_list(text or "")


def _locations(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, _, place = text.partition("=")
        if not (name and place):
            raise OptionError(f"--data must be NAME=DIRECTORY for `beaufort reproduce`, got {text!r}")
        found[name] = place
    return found
