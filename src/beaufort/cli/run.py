"""`beaufort run`: models × conditions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list, counted, duration, printable
from beaufort.cli._evaluation import answers_bar, show_evaluation, tell_labels
from beaufort.cli._options import (
    Classes,
    Convention,
    Filter,
    Json,
    Labels,
    Seed,
    Truths,
    complete_corruptions,
    complete_suites,
    data_by_name,
    model_options,
    severities_for,
)

if TYPE_CHECKING:
    from beaufort.evaluation import Plan, RayOptions
    from beaufort.suites import Suite


def run(
    model: Annotated[
        list[str], typer.Option(help="As `beaufort ls models` shows; give it again for more models.")
    ],
    data: Annotated[
        list[str],
        typer.Option(
            help="A path, kind:path, or a name of `beaufort ls datasets`; for a suite of several data sets "
            "NAME=PATH, once for each."
        ),
    ],
    *,
    suite: Annotated[
        str | None,
        typer.Option(
            help="One of `beaufort ls suites`, or a YAML file of your own.", autocompletion=complete_suites
        ),
    ] = None,
    corruption: Annotated[
        str | None,
        typer.Option(
            help="Instead of a suite: names with commas, as fog,snow; subsets as weather, all; chains as "
            "fog@2+jpeg_compression@3.",
            autocompletion=complete_corruptions,
        ),
    ] = None,
    severity: Annotated[
        str | None, typer.Option(help="With --corruption: 3, or 1-5, or 1,3,5, or 2.5; 1-5 if not given.")
    ] = None,
    prepare: Annotated[
        str | None,
        typer.Option(
            metavar="none", help="none: take pictures as they are, instead of bringing them to size."
        ),
    ] = None,
    clean: Annotated[
        str | None,
        typer.Option(help="The clean images that stored pictures, as cifar10-c:PATH, are made from."),
    ] = None,
    store: Annotated[str, typer.Option(help="Folder or URL that keeps the answers.")] = "results",
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="What to know about the models, as range=0..255; may be repeated."),
    ] = None,
    filters: Filter = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many images, spread over the classes.")
    ] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Only the first so many images.")] = None,
    classes: Classes = None,
    labels: Labels = None,
    convention: Convention = None,
    truths: Truths = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Threads that decode and corrupt.")] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Worker processes, one thread each: as many as cores for models on the CPU."
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local: this machine; ray: workers of a Ray cluster (extra ray).")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            help="With --engine ray: HOST:PORT of a cluster, or auto for the one that this machine belongs "
            "to. Without it, one is started here for the run."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --engine ray: how many; as many as fit, with one CPU left free, if not given."
        ),
    ] = None,
    cpus_per_worker: Annotated[
        float | None, typer.Option(help="With --engine ray: CPUs of a worker, and its threads; 1.")
    ] = None,
    gpus_per_worker: Annotated[
        float | None,
        typer.Option(
            help="With --engine ray: GPUs of a worker; 0.25 lets four share one. None if not given."
        ),
    ] = None,
    batch_size: Annotated[str, typer.Option(help="Images a model sees at once; auto goes by size.")] = "auto",
    device: Annotated[str | None, typer.Option(help="Where models run: auto, cpu, cuda or cuda:1.")] = None,
    seed: Seed = 0,
    keep_logits: Annotated[
        bool, typer.Option("--keep-logits", help="Keep all logits, not only the five best classes.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first image that cannot be read.")
    ] = False,
    precision: Annotated[
        float | None,
        typer.Option(help="Stop when every headline number is known to ± so many points (95 %)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what there is to do, and about how long it takes.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show every image under every condition to every model, and keep the answers.

    `beaufort run --model resnet50.onnx --suite imagenet-c --data imagenet/val --store results`

    `beaufort run --model net.onnx --data photos/ --corruption fog,snow --severity 3`

    The suite `photos` is for pictures and classes of your own: all common corruptions, without a baseline.

    What a run needs (data, weights, textures, packages, room on the disk) is looked for first, and what is
    missing is told at once.

    Answers that the store has are not asked for again: after a kill, or with one more model, only what is
    missing is done. Images that cannot be read are told at the end, with exit code 1.

    Class folders are matched with the model's outputs by name: WNIDs or class names for ImageNet's, names of
    `--classes` for others. What cannot be matched is refused.

    `--processes 8` shares the work among eight processes, which load the models themselves.

    `--engine ray --address auto --gpus-per-worker 1` shares it among the machines of a Ray cluster, a worker
    for each GPU. Models, data and the store must be reachable under the same names from every machine, which
    is looked at first. Workers and machines may be lost; what they had is done by others. An image that ends
    every worker is told at the end, with exit code 1.

    With `--precision 1` the images come in a random order, and the run ends when the suite's headline
    numbers have intervals narrower than ± 1 point: often a small part of the images.
    """
    from beaufort.evaluation import LazyModel, evaluate, plan

    given = model_options(options, device=device, classes=classes, filter=filters)
    given_data = data_by_name(data)
    asked: dict[str, Any] = {
        "models": [LazyModel(text, given) for text in model],
        "suite": _suite(suite, corruption, severity),
        "data": given_data,
        "store": store,
        "clean": clean,
        "limit": limit,
        "first": first,
        "prepare": prepare,
        "labels": labels,
        "convention": convention,
        "truths": truths,
        "seed": seed,
        "keep_logits": keep_logits,
        "strict": strict,
    }
    ray = _ray_options(engine, address, workers, cpus_per_worker, gpus_per_worker)
    size = _batch_size(batch_size)
    if dry_run:
        _show_plan(plan(**asked, shuffled=precision is not None), as_json)
        return
    with answers_bar() as progress:
        evaluation = evaluate(
            **asked,
            jobs=jobs,
            processes=processes,
            ray=ray,
            batch_size=size,
            precision=precision,
            progress=progress,
        )
    show_evaluation(evaluation, store, given_data, as_json=as_json)


def _suite(suite: str | None, corruption: str | None, severity: str | None) -> str | Suite:
    """The suite that is named, or one of some corruptions."""
    from beaufort.suites import suite_of_corruptions

    if (suite is None) == (corruption is None):
        got = "neither" if suite is None else "both"
        raise OptionError(
            f"one of --suite and --corruption must be given, got {got}; `beaufort ls suites` and `beaufort "
            "ls corruptions` list them, and --suite photos is for pictures of your own"
        )
    if suite is not None:
        if severity is not None:
            raise OptionError(f"--severity goes with --corruption, got it with --suite {suite}")
        return suite
    names = comma_list(corruption or "")
    if not names:
        raise OptionError("--corruption must name at least one, got none; write fog,snow")
    return suite_of_corruptions(names, severities_for(names, severity))


def _ray_options(
    engine: str, address: str | None, workers: int | None, cpus: float | None, gpus: float | None
) -> RayOptions | None:
    from beaufort.evaluation import RayOptions

    if engine not in ("local", "ray"):
        raise OptionError(f"--engine must be local or ray, got {engine!r}")
    if engine == "ray":
        return RayOptions(address, workers, 1 if cpus is None else cpus, 0 if gpus is None else gpus)
    given = {"address": address, "workers": workers, "cpus-per-worker": cpus, "gpus-per-worker": gpus}
    if names := [f"--{name}" for name, value in given.items() if value is not None]:
        raise OptionError(f"{names[0]} must be given with --engine ray, got it without")
    return None


def _batch_size(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"--batch-size must be auto or a positive integer, got {text!r}")
    return int(text)


def _show_plan(plan: Plan, as_json: bool) -> None:
    from beaufort.evaluation import cost, notes_on

    seconds = cost(plan)
    images = sum({work.condition.dataset: work.setup.count for work in plan.works}.values())
    facts = {
        "cells": len(plan.works),
        "stored": plan.reused,
        "images": images,
        "answers": plan.images,
        "seconds": round(seconds, 1),
        "labels": {work.model.spec.name: str(work.space) for work in plan.works},
        "notes": list(notes_on(plan)),
        "problems": [problem._asdict() for problem in plan.problems],
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    models = {work.model.spec.name for work in plan.works}
    conditions = {str(work.condition) for work in plan.works}
    typer.echo(
        f"{counted(len(models), 'model')} × {counted(len(conditions), 'condition')} × "
        f"{counted(images, 'image')}: {counted(len(plan.works), 'cell')}, {plan.reused:,} of them "
        f"stored. {counted(plan.images, 'answer')} to go, about {duration(seconds)} on this machine."
    )
    tell_labels({(work.model.spec.name, work.condition.dataset): str(work.space) for work in plan.works})
    for note in notes_on(plan):
        typer.echo(f"note: {printable(note)}", err=True)
    for problem in plan.problems:
        typer.echo(f"problem: {printable(problem.id)}: {printable(problem.message)}", err=True)
