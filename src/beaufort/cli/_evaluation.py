"""Progress of a run, and its results when it ends."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from beaufort._core.plugins import named_modules
from beaufort._core.text import counted, printable, without_secrets
from beaufort.cli._console import MOST_LINES, progress_bar, table

if TYPE_CHECKING:
    from beaufort.evaluation import ModelCost, Progress
    from beaufort.results import ModelScores, Results, Run, Scores, Stop

_NODES = 3
"""Number of nodes of a cluster that the progress names."""


@contextlib.contextmanager
def predictions_bar() -> Iterator[Callable[[Progress], None]]:
    """Show the progress of a run, with the accuracy so far."""
    shown: set[str] = set()
    with progress_bar("predictions") as show:

        def report(at: Progress) -> None:
            for warning in at.warnings:
                if warning not in shown:
                    shown.add(warning)
                    typer.echo(f"warning: {printable(warning)}", err=True)
            show(at.done, at.total, _at(at))

        yield report


def _at(progress: Progress) -> str:
    """Return where a run is, the accuracy so far if it is known, and how fast each node is."""
    place = f"{progress.model} {progress.condition}"
    known = "" if progress.accuracy is None else f" {progress.accuracy:.1%}"
    rates = sorted(((speed.rate, node) for node, speed in progress.nodes.items()), reverse=True)
    speeds = [f"{node} {rate:,.0f}/s" for rate, node in rates[:_NODES]]
    if rest := rates[_NODES:]:
        speeds.append(f"{counted(len(rest), 'more node')} {sum(rate for rate, _ in rest):,.0f}/s")
    return "; ".join([place + known, *speeds])


def cost_lines(costs: Sequence[ModelCost]) -> Iterator[str]:
    """Yield the latency and the memory of models."""
    head = ("model", "device", "ms per image", "ratio", "CPU ms per image", "ratio", "memory", "ratio")
    rows = [
        (
            printable(one.model),
            printable(one.device),
            f"{1000 * one.seconds.value:.2f}",
            f"{one.ratio:.2f}",
            f"{1000 * one.cpu_seconds.value:.2f}",
            f"{one.cpu_ratio:.2f}",
            "–" if one.memory is None else f"{one.memory / 2**20:,.0f} MiB",
            "–" if one.memory_ratio is None else f"{one.memory_ratio:.2f}",
        )
        for one in costs
    ]
    first = costs[0]
    yield table([head, *rows])
    yield (
        f"ratios to {printable(first.model)}: medians of {first.ratio.n} rounds with "
        f"{100 * first.ratio.level:g} % intervals, {counted(first.batch_size, 'image')} at a time, "
        "including preprocessing; peak memory of the process, beyond that of Python itself\n"
    )


def unread(run: Run) -> str:
    """Return a sentence on images without a prediction."""
    many = counted(len(run.problems), "image or file", "images or files")
    return f"{many} could not be read and {'has' if len(run.problems) == 1 else 'have'} no prediction"


def show_run(run: Run, store: str, data: str | Mapping[str, str], *, as_json: bool) -> None:
    """Print the results of a run, and exit with 1 if it had problems."""
    parts = run.part_scores(calibration=False) if run.predictions else ()
    if as_json:
        typer.echo(json.dumps(_as_dict(run, parts), indent=2))
    else:
        for scores in parts:
            _show_numbers(run, scores)
        for stream in run.streams:
            typer.echo(f"{printable(stream.title)}\n\n{table(stream.rows)}\n")
            for note in stream.notes:
                typer.echo(f"note: {note}", err=True)
        datasets = [result.condition.partition("/")[0] for result in run.results]
        both = zip(run.results, datasets, strict=True)
        print_labels({(result.model, dataset): result.labels for result, dataset in both})
        if run.costs:
            typer.echo("\n".join(cost_lines(run.costs)))
        if left_out := max((result.unlabeled for result in run.results), default=0):
            typer.echo(f"omitted {counted(left_out, 'image')} without a label")
        if run.stop:
            typer.echo(_stopped(run.stop))
        for node, speed in run.nodes.items():
            typer.echo(
                f"node {printable(node)}: {counted(speed.predictions, 'prediction')}, {speed.rate:,.0f} per "
                f"second, workers busy {speed.busy:.0%} of the time"
            )
        if run.predictions:
            typer.echo(_next(run, store, data))
    for note in run.notes:
        typer.echo(f"note: {printable(note)}", err=True)
    for problem in run.problems[:MOST_LINES]:
        typer.echo(f"problem: {printable(problem.id)}: {printable(problem.message)}", err=True)
    for failure in run.failures[:MOST_LINES]:
        typer.echo(f"failed: {printable(failure)}", err=True)
    if run.failures:
        typer.echo(
            f"{counted(len(run.failures), 'part')} failed{_more(run.failures)}; their models are missing "
            "above. All other predictions are stored. Run the same command again to retry",
            err=True,
        )
    if run.problems:
        typer.echo(unread(run) + _more(run.problems), err=True)
    if run.problems or run.failures:
        raise typer.Exit(1)


def _more(problems: Sequence[Any]) -> str:
    return "" if len(problems) <= MOST_LINES else "; --json lists all"


def print_labels(words: Mapping[tuple[str, str], str]) -> None:
    """Print what counts as which class, by model and dataset."""
    several = len({dataset for _, dataset in words}) > 1
    for rule in dict.fromkeys(words.values()):
        where = [
            f"{printable(model)} on {dataset}" if several else printable(model)
            for (model, dataset), one in words.items()
            if one == rule
        ]
        typer.echo(f"{', '.join(where)}: {rule}")


def _show_numbers(run: Run, scores: Scores) -> None:
    """Print the headline numbers of each model, with intervals."""
    keys = {cell.fingerprint for row in scores.results.cells.values() for cell in row.values()}
    results = [result for result in run.results if result.fingerprint in keys]
    reused = sum(result.reused for result in results)
    cells = counted(len(results), "condition" if len(scores.models) == 1 else "cell")
    stored = f"{cells}, {reused:,} of them stored before" if reused else cells
    images = counted(scores.images, "image")
    typer.echo(
        f"{scores.suite} on {printable(scores.results.dataset)}: {images}, {stored}; "
        f"{100 * scores.level:g} % intervals\n"
    )
    names = [scores.metric_title(name) for name in scores.models[0].metrics]
    header = ("model", *names, *(["clean accuracy"] if scores.with_clean else []), "most errors under")
    rows = [header, *(_row(one, scores.with_clean) for one in scores.models)]
    typer.echo(table(rows if any(row[-1] for row in rows[1:]) else [row[:-1] for row in rows]))
    typer.echo()
    show_replies(scores.results)
    for note in scores.notes:
        typer.echo(f"note: {note}", err=True)


def show_replies(results: Results, models: Sequence[str] | None = None) -> None:
    """Print the outcomes of the replies of chat models, if there are any."""
    from beaufort.metrics.stats import Estimate
    from beaufort.report.summary_tables import reply_table
    from beaufort.results import score_replies

    if (found := reply_table(score_replies(results, models))) is None:
        return
    rows = [
        [f"{cell:.1%}" if isinstance(cell, Estimate) else printable(cell or "–") for cell in row]
        for row in found.rows
    ]
    typer.echo(table([[name.lower() for name in found.header], *rows]))
    typer.echo("replies without a prediction count as errors\n")


def replies_of(results: Results, models: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the outcomes of replies as JSON, under the key `replies`, if there are any."""
    from beaufort.results import score_replies

    replies = [asdict(one) for one in score_replies(results, models)]
    return {"replies": replies} if replies else {}


def _row(one: ModelScores, with_clean: bool) -> tuple[str, ...]:
    from beaufort.metrics import metrics

    numbers = [metrics[name].shown(value) for name, value in one.metrics.items()]
    clean = [f"{one.clean:.1%}"] if with_clean else []
    return (one.model, *numbers, *clean, _worst(one))


def _worst(one: ModelScores) -> str:
    """Return the corruption with the most errors; empty if there are two or there is only one corruption."""
    errors = sorted(one.corruptions.items(), key=lambda item: -item[1].value)
    if len(errors) < 2 or errors[0][1].value == errors[1][1].value:
        return ""
    name, error = errors[0]
    return f"{name}: {error:.1%}"


def _next(run: Run, store: str, data: str | Mapping[str, str]) -> str:
    """Return what to do next, as commands."""
    place = shlex.quote(without_secrets(store))
    models = list(dict.fromkeys(result.model for result in run.results))
    corrupted = isinstance(data, str) and all(
        one.suite.corruptions and not (one.stored or one.suite.shifts or one.suite.sequences)
        for one in run.predictions
    )
    shown = f" --data {shlex.quote(without_secrets(str(data)))}" if corrupted else ""
    own = "".join(f" --import {shlex.quote(name)}" for name in named_modules())
    steps = [f"beaufort report {place}{shown} -o report.html{own}"]
    if len(models) > 1:
        steps.append(f"beaufort compare {' '.join(map(shlex.quote, models))} --store {place}{own}")
    steps.append(f"beaufort results query --store {place}    (every condition)")
    return "\n".join(["next:", *(f"  {printable(step)}" for step in steps)])


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
                **replies_of(scores.results),
            }
            for scores in parts
        ],
        "results": [{**vars(result), "accuracy": result.accuracy} for result in run.results],
        "problems": [problem._asdict() for problem in run.problems],
        "failures": list(run.failures),
        "nodes": {
            node: {**vars(speed), "predictions_per_second": speed.rate} for node, speed in run.nodes.items()
        },
        **({"costs": [asdict(one) for one in run.costs]} if run.costs else {}),
        "notes": [*run.notes, *(note for scores in parts for note in scores.notes)],
    }
    if run.streams:
        facts["streams"] = [one.as_dict() for one in run.streams]
    stop = run.stop
    return facts if stop is None else {**facts, "stop": {**vars(stop), "met": stop.met}}


def movement_of(scores: Scores) -> dict[str, Any]:
    """Return how much predictions change over sequences, by model, kind and sequence."""
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
        f"± {100 * stop.widest:.2f} points; requested: ± {stop.precision:g}"
    )
