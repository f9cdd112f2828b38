"""`beaufort run`: models × conditions."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort.cli._console import printable, progress_bar, table
from beaufort.cli._options import Classes, Convention, Json, Labels, Seed, Truths
from beaufort.errors import OptionError

if TYPE_CHECKING:
    from beaufort.evaluation import Evaluation, Plan, Progress, Stop

__all__ = ["answers_bar", "run"]


def run(
    model: Annotated[
        list[str], typer.Option(help="As `beaufort ls models` shows; give it again for more models.")
    ],
    suite: Annotated[str, typer.Option(help="One of `beaufort ls suites`, or a YAML file of your own.")],
    data: Annotated[str, typer.Option(help="A path, kind:path, or a name of `beaufort ls datasets`.")],
    *,
    store: Annotated[str, typer.Option(help="Folder or URL that keeps the answers.")] = "results",
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="What to know about the models, as range=0..255; may be repeated."),
    ] = None,
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

    Answers that the store has are not asked for again: after a kill, or with one more model, only what is
    missing is done. Images that cannot be read are told at the end, with exit code 1.

    Class folders are matched with the model's outputs by name: WNIDs or class names for ImageNet's, names of
    `--classes` for others. What cannot be matched is refused.

    `--processes 8` shares the work among eight processes, which load the models themselves.

    With `--precision 1` the images come in a random order, and the run ends when the suite's headline
    numbers have intervals narrower than ± 1 point: often a small part of the images.
    """
    from beaufort.evaluation import LazyModel, evaluate, plan
    from beaufort.models import parse_options

    given = parse_options(options or [])
    given.update(
        {key: value for key, value in (("device", device), ("classes", classes)) if value is not None}
    )
    chosen: dict[str, Any] = {"labels": labels, "convention": convention, "truths": truths}
    models = [LazyModel(text, given) for text in model]
    if dry_run:
        planned = plan(
            models, suite, data, store, limit=limit, first=first, seed=seed, strict=strict, **chosen
        )
        _show_plan(planned, as_json)
        return
    with answers_bar() as progress:
        evaluation = evaluate(
            models,
            suite,
            data,
            store,
            limit=limit,
            first=first,
            **chosen,
            jobs=jobs,
            processes=processes,
            batch_size=_batch_size(batch_size),
            seed=seed,
            keep_logits=keep_logits,
            strict=strict,
            precision=None if precision is None else precision / 100,
            progress=progress,
        )
    _show(evaluation, as_json)


def _batch_size(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"--batch-size must be auto or a positive integer, got {text!r}")
    return int(text)


@contextlib.contextmanager
def answers_bar() -> Iterator[Callable[[Progress], None] | None]:
    """A bar with the time left and the accuracy so far, on a terminal's stderr; None elsewhere."""
    with progress_bar() as show:
        if show is None:
            yield None
        else:
            yield lambda at: show(at.done, at.total, f"{at.model} {at.condition} {at.accuracy or 0:.1%}")


def _show(evaluation: Evaluation, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_as_dict(evaluation), indent=2))
    else:
        rows = [
            (
                result.model,
                result.condition,
                f"{result.accuracy:.2%}",
                str(result.images),
                "stored" if result.reused else "new",
            )
            for result in evaluation.results
        ]
        typer.echo(table([("model", "condition", "accuracy", "images", ""), *rows]))
        _tell_labels({result.model: result.labels for result in evaluation.results})
        if left_out := max(result.unlabeled for result in evaluation.results):
            typer.echo(f"{left_out} images have no label and are left out")
    if evaluation.stop and not as_json:
        typer.echo(_stopped(evaluation.stop))
    for note in evaluation.notes:
        typer.echo(f"note: {printable(note)}", err=True)
    for problem in evaluation.problems[:20]:
        typer.echo(f"problem: {printable(problem.id)}: {printable(problem.message)}", err=True)
    if evaluation.problems:
        typer.echo(f"{len(evaluation.problems)} images could not be read and have no answer", err=True)
        raise typer.Exit(1)


def _tell_labels(words: Mapping[str, str]) -> None:
    """What counts as which class, by model."""
    for said in dict.fromkeys(words.values()):
        models = [printable(model) for model, one in words.items() if one == said]
        typer.echo(f"{', '.join(models)}: {said}")


def _as_dict(evaluation: Evaluation) -> dict[str, Any]:
    results = [{**vars(result), "accuracy": result.accuracy} for result in evaluation.results]
    problems = [problem._asdict() for problem in evaluation.problems]
    facts = {"results": results, "problems": problems, "notes": list(evaluation.notes)}
    stop = evaluation.stop
    return facts if stop is None else {**facts, "stop": {**vars(stop), "met": stop.met}}


def _stopped(stop: Stop) -> str:
    end = "stopped" if stop.met else "ran out of images"
    return (
        f"{end} after {stop.images} of {stop.of} images: the widest headline interval is "
        f"± {100 * stop.widest:.2f} points, asked for were ± {100 * stop.precision:g}"
    )


def _show_plan(plan: Plan, as_json: bool) -> None:
    from beaufort.evaluation import cost

    seconds = cost(plan)
    facts = {
        "cells": len(plan.works),
        "stored": plan.reused,
        "images": plan.setup.count,
        "answers": plan.images,
        "seconds": round(seconds, 1),
        "labels": {work.model.spec.name: str(work.space) for work in plan.works},
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    models = {work.model.spec.name for work in plan.works}
    conditions = {str(work.condition) for work in plan.works}
    typer.echo(
        f"{len(models)} models × {len(conditions)} conditions × {plan.setup.count} images: "
        f"{facts['cells']} cells, {facts['stored']} of them stored. {plan.images} answers to go, "
        f"about {_duration(seconds)} on this machine."
    )
    _tell_labels({work.model.spec.name: str(work.space) for work in plan.works})


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
