"""`beaufort place`: where a model stands among reference models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import printable
from beaufort.cli._evaluation import answers_bar, unread
from beaufort.cli._options import Filter, Json, data_by_name, model_options
from beaufort.cli._testbed_options import Clean

if TYPE_CHECKING:
    from beaufort.testbed.place import Placement, Standing


def place(
    scores: Annotated[
        Path | None,
        typer.Option(help="CSV with setting, accuracy (percent), n; convention and preprocessing if known."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="A store instead; with --data the one that keeps the answers, results if not given."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Which model of the store; with --data the model to run, as for `beaufort run`."),
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="Run the model over these images first, as for `beaufort run`.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="What to run; the one that the grid is about if not given.")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="What to know about the model that is run; may be repeated."),
    ] = None,
    filters: Filter = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Run only so many images, spread over the classes.")
    ] = None,
    grid: Annotated[
        str,
        typer.Option(
            help="The reference models: paper, latest, timm, robustbench-imagenet, …, or a CSV file."
        ),
    ] = "paper",
    x: Clean = None,
    fit_on: Annotated[
        list[str] | None, typer.Option(help="Fit the trend on these models; the grid's own if not given.")
    ] = None,
    scale: Annotated[str, typer.Option(help="Axes of the fit: logit, probit or linear.")] = "logit",
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.", min=0, max=2**32 - 1)] = 720257663,
    as_json: Json = False,
) -> None:
    """Place a model: on each shift its effective robustness, its rank among similar models, its neighbors.

    `beaufort place --scores scores.csv --grid timm`

    `beaufort place --model timm:resnet50.a1_in1k --data imagenet/val --grid paper` runs the model first, and
    keeps its answers as `beaufort run` does: what the store has is not run again.

    A shift is placed if the scores have both its accuracy and the standard accuracy that it is compared with.
    The exit code is 1 if pictures could not be shown to the model.
    """
    from beaufort.testbed import load_grid
    from beaufort.testbed.place import place as place_scores
    from beaufort.testbed.scores import read_scores
    from beaufort.testbed.stored_scores import scores_of_store

    if (scores is not None) + (data is not None or store is not None) != 1:
        raise OptionError("one of --scores, --store and --data must be given")
    if scores is not None and model is not None:
        raise OptionError("--model must come with --store or --data: scores are of one model")
    for_runs = {"--suite": suite, "--set": options, "--filter": filters, "--limit": limit}
    if data is None and (unused := [name for name, value in for_runs.items() if value is not None]):
        raise OptionError(f"{unused[0]} must come with --data, which runs a model: nothing is run without")
    loaded = load_grid(grid, fit_on=fit_on)
    whole = True
    if scores is not None:
        own = read_scores(scores)
    elif data is not None:
        kept = store or "results"
        name, whole = _run(model, suite, data, kept, options, filters, limit, grid)
        own = scores_of_store(kept, name, loaded)
    else:
        assert store is not None
        own = scores_of_store(store, model, loaded)
    found = place_scores(loaded, own, x=x, scale=scale, level=level, seed=seed)
    if as_json:
        told = {**_as_dict(found), "fit_on": loaded.fit_rule}
        typer.echo(json.dumps(told, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        _show(found, loaded.fit_rule)
    if not found.standings:
        raise OptionError(
            f"scores must have a shift of the grid {loaded.name} and its standard accuracy, got none that "
            "could be placed"
        )
    if not whole:
        raise typer.Exit(1)


_SUITES = {
    "paper": "imagenet-c",
    "latest": "imagenet-c",
    "robustbench-imagenet": "imagenet-c",
    "robustbench-cifar10": "cifar10-c",
    "robustbench-cifar100": "cifar100-c",
}
"""The suite that a grid is about, where it can be made from clean images."""


def _run(
    model: str | None,
    suite: str | None,
    data: list[str],
    store: str,
    options: list[str] | None,
    filters: list[str] | None,
    limit: int | None,
    grid: str,
) -> tuple[str, bool]:
    """Run a model and print what there is to say about it; its name, and whether it saw all of the data."""
    from beaufort.evaluation import LazyModel, evaluate

    if model is None:
        raise OptionError("data must come with a model to run; add --model")
    asked = suite or _SUITES.get(grid)
    if asked is None:
        raise OptionError(f"suite must be given for the grid {grid}, which does not tell what to run")
    lazy = LazyModel(model, model_options(options, filter=filters))
    with answers_bar() as progress:
        found = evaluate([lazy], asked, data_by_name(data), store, limit=limit, progress=progress)
    for note in found.notes:
        typer.echo(f"note: {printable(note)}", err=True)
    if found.problems:
        typer.echo(unread(found), err=True)
    return lazy.spec.name, not found.problems


def _show(found: Placement, rule: str) -> None:
    for one in found.standings:
        typer.echo(_standing_text(one) + "\n")
    for name, why in found.skipped:
        typer.echo(f"not placed: {printable(name)}: {printable(why)}")
    for warning in found.warnings:
        typer.echo(f"warning: {printable(warning)}", err=True)
    if found.standings:
        typer.echo(f"trend of the grid {printable(found.grid)}, fitted on {rule}")
    if any(one.robustness.interval for one in found.standings):
        typer.echo(f"{100 * found.level:g} % intervals, which cover {found.covers}")


def _standing_text(one: Standing) -> str:
    own = one.robustness
    low, high = one.similar_range
    rho = "rho is not defined at this standard accuracy"
    if own.rho is not None:
        ends = f" [{own.interval.low:+z.2f}, {own.interval.high:+z.2f}]" if own.interval else ""
        rho = f"rho {own.rho:+z.2f}{ends} points"
        if one.p_holm is None:
            rho += "; whether that is more than chance is not known without n"
        else:
            p = f"p = {one.p_holm:.2g}" if one.p_holm > 1e-16 else "p < 1e-16"
            rho += f": {one.verdict} the trend ({p}, Holm)"
    beyond = "; outside of the accuracies that were fitted on" if own.extrapolated else ""
    scatter = f"the models fitted on scatter by {one.scatter:.2f} points"
    if one.percentile is not None:
        similar = f"{one.similar} models with {low:.2f} to {high:.2f} % there"
        scatter = f"above {_percent(one.percentile)} % of the {similar}; {scatter}"
    lines = [
        f"{one.y}: {own.shifted:.2f} % at {own.clean:.2f} % on {one.x}{beyond}",
        f"  {rho}",
        f"  {scatter}",
    ]
    names = (f"{n.model} ({n.clean:.2f}, {n.shifted:.2f}, rho {n.rho:+z.2f})" for n in one.neighbors)
    return "\n".join(map(printable, [*lines, f"  nearest: {'; '.join(names)}"]))


def _percent(value: float) -> str:
    """A whole percentage; 0 and 100 only if it is none or all."""
    if value in (0, 100) or 0.5 < value < 99.5:
        return f"{value:.0f}"
    return f"{min(max(value, 0.1), 99.9):.1f}"


def _as_dict(found: Placement) -> dict[str, Any]:
    return {
        "grid": found.grid,
        "level": found.level,
        "interval_covers": found.covers,
        "shifts": [
            {
                "x": one.x,
                "y": one.y,
                "accuracy_x": one.robustness.clean,
                "accuracy_y": one.robustness.shifted,
                "expected": one.robustness.expected,
                "rho": one.robustness.rho,
                "low": one.robustness.interval.low if one.robustness.interval else None,
                "high": one.robustness.interval.high if one.robustness.interval else None,
                "p": one.p,
                "p_holm": one.p_holm,
                "verdict": one.verdict,
                "extrapolated": one.robustness.extrapolated,
                "percentile": one.percentile,
                "scatter": one.scatter,
                "similar": {"n": one.similar, "low": one.similar_range[0], "high": one.similar_range[1]},
                "neighbors": [vars(near) for near in one.neighbors],
            }
            for one in found.standings
        ],
        "skipped": [{"setting": name, "why": why} for name, why in found.skipped],
        "warnings": list(found.warnings),
    }
