"""`beaufort run`: evaluate models under the conditions of a suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list, counted, duration, printable
from beaufort.cli._evaluation import predictions_bar, print_labels, show_run
from beaufort.cli._options import (
    Classes,
    Corruptions,
    Device,
    DryRun,
    Filter,
    Json,
    Labels,
    Limit,
    ModelOptions,
    RequiredData,
    RequiredModels,
    Seed,
    Severities,
    Store,
    Suite,
    data_by_name,
    model_options,
    parse_labels,
    severities_for,
)

if TYPE_CHECKING:
    from beaufort import suites
    from beaufort.evaluation import Plan, RunOptions


def run(
    model: RequiredModels,
    data: RequiredData,
    *,
    suite: Suite = None,
    corruption: Corruptions = None,
    severity: Severities = None,
    store: Store = "results",
    options: ModelOptions = None,
    filters: Filter = None,
    adapt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:OPTION=VALUE,…",
            help="Test-time adaptation method: bn, tent, eata, sar, cotta, or source (no adaptation), with "
            "options as in tent:lr=1e-3 (repeatable). Requires a suite of streams.",
        ),
    ] = None,
    classes: Classes = None,
    device: Device = None,
    limit: Limit = None,
    precision: Annotated[
        float | None,
        typer.Option(help="Stop when every headline metric is known to ± N percentage points (95 %)."),
    ] = None,
    labels: Labels = None,
    seed: Seed = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME:OPTION=VALUE,…",
            help="Where to run: local, local:THREADS, processes:N, or "
            "ray:address=HOST:PORT,workers=N,cpus=N,gpus=N (extra ray).",
        ),
    ] = "local",
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|NAME=VALUE",
            help="Further options, in a YAML or TOML file or as NAME=VALUE: batch_size, clean, first, "
            "prepare, baseline, keep_logits, strict (repeatable).",
        ),
    ] = None,
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,…]",
            help="Experiment tracker to log to: mlflow, wandb, tensorboard or one of a plug-in (repeatable).",
        ),
    ] = None,
    allow_batch_dependence: Annotated[
        bool,
        typer.Option(
            "--allow-batch-dependence",
            help="Evaluate models whose predictions depend on the batch or on earlier calls; the batch size "
            "becomes part of the fingerprint.",
        ),
    ] = False,
    time: Annotated[
        bool,
        typer.Option(
            "--time",
            help="After the evaluation, measure the latency and memory of each model, relative to the first.",
        ),
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Evaluate models under every condition of a suite, and store the predictions.

    `beaufort run --model resnet50.onnx --suite imagenet-c --data imagenet/val --store results`

    `beaufort run --model net.onnx --data photos/ --corruption fog,snow --severity 3`

    Use the suite `photos` for images and classes of your own: all common corruptions, without a baseline.

    Everything that a run needs (data, weights, textures, packages, disk space) is checked first, and all that
    is missing is listed at once. Stored predictions are reused: after an interruption, or with one more
    model, only the missing ones are computed. Images that cannot be read are listed at the end, with exit
    code 1.

    Class directories are matched with the model's outputs by name: WNIDs or class names for ImageNet, names
    of `--classes` for others. Ambiguous names are an error.

    `--engine processes:8` uses eight processes, each of which loads the models. `--engine
    ray:address=auto,gpus=1` uses the machines of a Ray cluster, one worker per GPU; models, data and the
    store must have the same names on every machine, which is checked first. If workers or machines are lost,
    others take over. An image that crashes every worker is listed at the end, with exit code 1.

    `--time` loads each model in a process of its own and runs them in turns, one image at a time or
    `--config batch_size=N`. Nothing is evaluated again if all predictions are stored.

    `beaufort run --model timm:resnet50.a1_in1k --adapt source --adapt tent:lr=1e-3 --suite
    imagenet-c-continual --data imagenet/val` measures how much a model gains by adapting to a stream of
    images, against the model itself; `--suite stream@imagenet/mixed,batch=16,seeds=5` defines another stream.

    With `--precision 1` the images come in a random order, and the run stops when the intervals of the
    suite's headline metrics are narrower than ± 1 point, often after a small part of the images.

    `--config first=500` takes the first 500 images, `clean=PATH` the clean images from which stored ones
    (such as cifar10-c:PATH) were made, `prepare=none` does not resize images, `keep_logits=true` stores all
    logits, `strict=true` stops at the first image that cannot be read.
    """
    from beaufort.evaluation import LazyModel, parse_engine
    from beaufort.results import evaluate, plan_run

    for_model = model_options(options, device=device, classes=classes, filter=filters)
    datasets = data_by_name(data)
    scoring = parse_labels(labels)
    arguments: dict[str, Any] = {
        "models": [
            LazyModel(text, for_model if method is None else {**for_model, "adapt": method})
            for text in model
            for method in adapt or (None,)
        ],
        "suite": _suite(suite, corruption, severity),
        "data": datasets,
        "store": store,
        "limit": limit,
        "labels": scoring.pop("labels"),
        "seed": seed or 0,
        "options": _run_options(
            config or [],
            precision=precision,
            allow_batch_dependence=allow_batch_dependence or None,
            time=time or None,
            trackers=track,
            **scoring,
        ),
    }
    engine_options = parse_engine(engine)
    if dry_run:
        _show_plan(plan_run(**arguments), as_json)
        return
    with predictions_bar() as progress:
        result = evaluate(**arguments, engine=engine_options, progress=progress)
    show_run(result, store, datasets, as_json=as_json)


def _suite(suite: str | None, corruption: str | None, severity: str | None) -> str | suites.Suite:
    """Return the suite of `--suite`, or one of the corruptions of `--corruption`."""
    from beaufort.suites import suite_from_corruptions

    if (suite is None) == (corruption is None):
        if suite is not None:
            raise OptionError("--suite and --corruption cannot be used together")
        raise OptionError(
            "pass --suite or --corruption; `beaufort ls suites` and `beaufort ls corruptions` list them, and "
            "--suite photos is for images of your own"
        )
    if suite is not None:
        if severity is not None:
            raise OptionError("--severity requires --corruption")
        return suite
    names = comma_list(corruption or "")
    if not names:
        raise OptionError("--corruption must name at least one corruption, as fog,snow")
    return suite_from_corruptions(names, severities_for(names, severity))


def _run_options(config: list[str], **options: Any) -> RunOptions:
    """Return the options of `--config`, of which later ones count, and of options of their own."""
    from dataclasses import fields

    from beaufort.evaluation import RunOptions

    found: dict[str, Any] = {}
    for text in config:
        found |= _config(text)
    names = [field.name for field in fields(RunOptions)]
    if unknown := [name for name in found if name not in names]:
        raise OptionError(f"unknown option {unknown[0]!r} in --config; available: {', '.join(names)}")
    return RunOptions(**{**found, **{name: value for name, value in options.items() if value is not None}})


def _config(text: str) -> dict[str, Any]:
    import tomllib

    import yaml

    name, equals, value = text.partition("=")
    path = Path(text)
    try:
        if equals and name.isidentifier() and not path.is_file():
            return {name: yaml.safe_load(value)}
        content = path.read_text(encoding="utf-8")
        found = tomllib.loads(content) if path.suffix == ".toml" else yaml.safe_load(content)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"cannot read --config {text}: {error}") from None
    if not isinstance(found, dict):
        raise OptionError(f"--config {text} must be a YAML or TOML file of names and values, or NAME=VALUE")
    return found


def _show_plan(plan: Plan, as_json: bool) -> None:
    from beaufort.evaluation import expected_costs, notes_on

    seconds = plan.estimate_seconds()
    images = sum({cell.condition.dataset: cell.source.count for cell in plan.cells}.values())
    facts: dict[str, Any] = {
        "cells": len(plan.cells),
        "stored": plan.reused,
        "images": images,
        "predictions": plan.images,
        "seconds": round(seconds, 1),
        "labels": {cell.model.spec.name: str(cell.space) for cell in plan.cells},
        "notes": [*notes_on(plan), *expected_costs(plan)],
        "problems": [problem._asdict() for problem in plan.problems],
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    models = {cell.model.spec.name for cell in plan.cells}
    conditions = {str(cell.condition) for cell in plan.cells}
    typer.echo(
        f"{counted(len(models), 'model')} × {counted(len(conditions), 'condition')} × "
        f"{counted(images, 'image')}: {counted(len(plan.cells), 'cell')}, {plan.reused:,} of them "
        f"stored. {counted(plan.images, 'prediction')} missing, about {duration(seconds)} on this machine."
    )
    print_labels({(cell.model.spec.name, cell.condition.dataset): str(cell.space) for cell in plan.cells})
    for note in facts["notes"]:
        typer.echo(f"note: {printable(note)}", err=True)
    for problem in plan.problems:
        typer.echo(f"problem: {printable(problem.id)}: {printable(problem.message)}", err=True)
