"""What a run shows while it works, and its numbers when it ends."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from beaufort._core.plugins import named_modules
from beaufort._core.text import counted, printable, without_secrets
from beaufort.cli._console import progress_bar, table

if TYPE_CHECKING:
    from beaufort.evaluation import Progress
    from beaufort.results import ModelScores, Run, Scores, Stop

_SHOWN = 20
"""Problems told in full; `--json` lists all."""
_NODES = 3
"""Nodes of a cluster that are named while a run is under way."""


@contextlib.contextmanager
def predictions_bar() -> Iterator[Callable[[Progress], None]]:
    """How far a run is, with the time left and the accuracy so far, on stderr."""
    with progress_bar("predictions") as show:
        yield lambda at: show(at.done, at.total, _at(at))


def _at(progress: Progress) -> str:
    """Where a run is; the accuracy as soon as an image with a label was answered; how fast each node is."""
    place = f"{progress.model} {progress.condition}"
    known = "" if progress.accuracy is None else f" {progress.accuracy:.1%}"
    rates = sorted(((speed.rate, node) for node, speed in progress.nodes.items()), reverse=True)
    told = [f"{node} {rate:,.0f}/s" for rate, node in rates[:_NODES]]
    if rest := rates[_NODES:]:
        told.append(f"{counted(len(rest), 'more node')} {sum(rate for rate, _ in rest):,.0f}/s")
    return "; ".join([place + known, *told])


def unread(run: Run) -> str:
    """In a sentence, how much of the data a model did not see."""
    many = counted(len(run.problems), "image or file", "images or files")
    return f"{many} could not be read and {'has' if len(run.problems) == 1 else 'have'} no prediction"


def show_run(run: Run, store: str, data: str | Mapping[str, str], *, as_json: bool) -> None:
    """Tell what came of a run, and end with 1 if it had problems."""
    parts = run.part_scores(calibration=False) if run.predictions else ()
    if as_json:
        typer.echo(json.dumps(_as_dict(run, parts), indent=2))
    else:
        for scores in parts:
            _show_numbers(run, scores)
        datasets = [result.condition.partition("/")[0] for result in run.results]
        both = zip(run.results, datasets, strict=True)
        tell_labels({(result.model, dataset): result.labels for result, dataset in both})
        if left_out := max((result.unlabeled for result in run.results), default=0):
            typer.echo(f"{counted(left_out, 'image')} without a label left out")
        if run.stop:
            typer.echo(_stopped(run.stop))
        for node, speed in run.nodes.items():
            typer.echo(
                f"node {printable(node)}: {counted(speed.answers, 'prediction')}, {speed.rate:,.0f} per "
                f"second, workers busy {speed.busy:.0%} of the time"
            )
        if run.predictions:
            typer.echo(_next(run, store, data))
    for note in run.notes:
        typer.echo(f"note: {printable(note)}", err=True)
    for problem in run.problems[:_SHOWN]:
        typer.echo(f"problem: {printable(problem.id)}: {printable(problem.message)}", err=True)
    for failure in run.failures[:_SHOWN]:
        typer.echo(f"failed: {printable(failure)}", err=True)
    if run.failures:
        typer.echo(_told_of_failures(run), err=True)
    if run.problems:
        more = "" if len(run.problems) <= _SHOWN else "; --json lists all"
        typer.echo(f"{unread(run)}{more}", err=True)
    if run.problems or run.failures:
        raise typer.Exit(1)


def _told_of_failures(run: Run) -> str:
    count = len(run.failures)
    more = "" if count <= _SHOWN else "; --json lists all"
    return (
        f"{counted(count, 'part')} could not be done, and the models concerned have no numbers here{more}. "
        "All else is stored; the same command tries again what is missing"
    )


def tell_labels(words: Mapping[tuple[str, str], str]) -> None:
    """What counts as which class, by model and data set."""
    several = len({dataset for _, dataset in words}) > 1
    for said in dict.fromkeys(words.values()):
        told = [
            f"{printable(model)} on {dataset}" if several else printable(model)
            for (model, dataset), one in words.items()
            if one == said
        ]
        typer.echo(f"{', '.join(told)}: {said}")


def _show_numbers(run: Run, scores: Scores) -> None:
    """The headline numbers of each model, with intervals."""
    keys = {cell.fingerprint for row in scores.results.cells.values() for cell in row.values()}
    results = [result for result in run.results if result.fingerprint in keys]
    reused = sum(result.reused for result in results)
    cells = counted(len(results), "condition" if len(scores.models) == 1 else "cell")
    kept = f"{cells}, {reused:,} of them stored before" if reused else cells
    typer.echo(
        f"{scores.suite} on {printable(scores.results.dataset)}: {counted(scores.images, 'image')}, {kept}; "
        f"{100 * scores.level:g} % intervals\n"
    )
    rows = [_head(scores), *(_row(one, scores.with_clean) for one in scores.models)]
    typer.echo(table(rows if any(row[-1] for row in rows[1:]) else [row[:-1] for row in rows]))
    typer.echo()
    for note in scores.notes:
        typer.echo(f"note: {note}", err=True)


def _head(scores: Scores) -> tuple[str, ...]:
    names = [scores.metric_title(name) for name in scores.models[0].metrics]
    return ("model", *names, *(["clean accuracy"] if scores.with_clean else []), "most errors under")


def _row(one: ModelScores, with_clean: bool) -> tuple[str, ...]:
    from beaufort.metrics import metrics

    numbers = [metrics[name].shown(value) for name, value in one.metrics.items()]
    clean = [f"{one.clean:.1%}"] if with_clean else []
    return (one.model, *numbers, *clean, _worst(one))


def _worst(one: ModelScores) -> str:
    """The corruption with the most errors; empty if two have as many, or there is only one."""
    errors = sorted(one.corruptions.items(), key=lambda item: -item[1].value)
    if len(errors) < 2 or errors[0][1].value == errors[1][1].value:
        return ""
    name, error = errors[0]
    return f"{name}: {error:.1%}"


def _next(run: Run, store: str, data: str | Mapping[str, str]) -> str:
    """What to do with the answers, as commands."""
    place = _quoted(without_secrets(store))
    models = list(dict.fromkeys(result.model for result in run.results))
    corrupted = isinstance(data, str) and all(
        one.suite.corruptions and not (one.stored or one.suite.shifts or one.suite.sequences)
        for one in run.predictions
    )
    shown = f" --data {_quoted(without_secrets(str(data)))}" if corrupted else ""
    own = "".join(f" --import {_quoted(name)}" for name in named_modules())
    steps = [f"beaufort report {place}{shown} -o report.html{own}"]
    if len(models) > 1:
        steps.append(f"beaufort compare {' '.join(map(_quoted, models))} --store {place}{own}")
    steps.append(f"beaufort query --store {place}    (every condition)")
    return "\n".join(["next:", *(f"  {printable(step)}" for step in steps)])


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _as_dict(run: Run, parts: Sequence[Scores]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "scores": [
            {
                "suite": str(scores.suite),
                "data": scores.results.dataset,
                "metrics": {
                    one.model: {name: vars(value) for name, value in one.metrics.items()}
                    for one in scores.models
                },
                **({"sequences": movement_of(scores)} if scores.suite.sequences else {}),
            }
            for scores in parts
        ],
        "results": [{**vars(result), "accuracy": result.accuracy} for result in run.results],
        "problems": [problem._asdict() for problem in run.problems],
        "failures": list(run.failures),
        "nodes": {node: {**vars(speed), "answers_a_second": speed.rate} for node, speed in run.nodes.items()},
        "notes": [*run.notes, *(note for scores in parts for note in scores.notes)],
    }
    stop = run.stop
    return facts if stop is None else {**facts, "stop": {**vars(stop), "met": stop.met}}


def movement_of(scores: Scores) -> dict[str, Any]:
    """How much answers move over sequences, by model, kind and sequence."""
    return {
        one.model: {
            kind: {name: vars(value) for name, value in some.items()} for kind, some in one.movement.items()
        }
        for one in scores.models
    }


def _stopped(stop: Stop) -> str:
    end = "stopped" if stop.met else "ran out of images"
    return (
        f"{end} after {stop.images} of {stop.of} images: the widest headline interval is "
        f"± {100 * stop.widest:.2f} points, asked for were ± {stop.precision:g}"
    )
