"""`beaufort compare`: models side by side, and which differences are more than chance."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._console import table
from beaufort.cli._evaluation import movement_of
from beaufort.cli._options import (
    Baseline,
    ClusterBy,
    GroupBy,
    Json,
    Store,
    StoredSeed,
    Suite,
    TrainingRuns,
    column,
    seed_models,
)

if TYPE_CHECKING:
    from beaufort.metrics.stats import Estimate
    from beaufort.results import Comparison, SeedSpread


def compare(
    results: Annotated[
        list[str],
        typer.Argument(help="Two or more: a MODEL of --store, a STORE of one model, or STORE::MODEL."),
    ],
    *,
    store: Store = "results",
    suite: Suite = None,
    baseline: Baseline = None,
    stored_seed: StoredSeed = None,
    cluster_by: ClusterBy = None,
    group_by: GroupBy = None,
    training_runs: TrainingRuns = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Show all conditions, not only the significant, and calibration scores."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare models on the same images: paired differences with intervals, tests, a ranking with ties.

    `beaufort compare resnet50 mobilenet_v2 --store results`

    A difference is the second less the first, on the same images. Its interval and its p are adjusted for
    all differences shown, so that all of them hold together with 95 %; two models share a letter exactly if
    they are not told apart. Under each condition McNemar's exact test looks at the images that only one of
    the two gets right; Holm's correction keeps one false alarm over all conditions of all pairs at 5 %.
    """
    from beaufort.results import compare as compare_models
    from beaufort.results import join_results, open_target_parts, pair_parts

    targets = [open_target_parts(text, store, suite=suite, seed=stored_seed) for text in results]
    comparisons = [
        compare_models(
            join_results(parts),
            baseline=baseline,
            clusters=column(cluster_by),
            groups=column(group_by),
            seeds=seed_models(training_runs),
        )
        for parts in pair_parts(targets)
    ]
    if as_json:
        found = [_as_dict(comparison) for comparison in comparisons]
        typer.echo(json.dumps(found[0] if len(found) == 1 else {"parts": found}, indent=2))
        return
    for number, comparison in enumerate(comparisons):
        if len(comparisons) > 1:
            gap = "" if number == 0 else "\n"
            typer.echo(
                f"{gap}== {comparison.scores.suite.name}; what holds together does so on this data set\n"
            )
        _show(comparison, every)


def _show(comparison: Comparison, every: bool) -> None:
    from beaufort.metrics import metrics
    from beaufort.report.wording import units

    scores = comparison.scores
    against = f", baseline {scores.baseline.title}" if scores.baseline else ""
    typer.echo(
        f"{scores.suite} on {scores.results.dataset}, {counted(scores.images, 'image')}{against}; "
        f"{100 * scores.level:g} % intervals over {units(scores)}\n"
    )
    for note in scores.notes:
        typer.echo(f"note: {note}\n")
    names = list(scores.models[0].metrics)
    rows = [
        (
            place.place,
            printable(one.model),
            *(metrics[name].shown(one.metrics[name]) for name in names),
            " ".join(place.groups),
        )
        for one, place in zip(scores.models, scores.ranking, strict=True)
    ]
    typer.echo(table([("place", "model", *(metrics[name].title for name in names), "tie group"), *rows]))
    differences = [
        (
            f"{printable(one.second)} - {printable(one.first)}",
            metrics[one.metric].title,
            _points(one.difference, 100 if metrics[one.metric].in_percent else 1),
            _p(one.p),
            "" if one.told_apart else "not told apart",
        )
        for one in comparison.differences
    ]
    typer.echo("\n" + table([("difference", "metric", "points", "p", ""), *differences]))
    typer.echo(
        f"intervals and p are adjusted for {counted(scores.pairs.size, 'difference')} (Bonferroni): all "
        f"intervals hold together with {100 * scores.level:g} %"
    )
    if every:
        _show_calibration(comparison)
    _show_groups(comparison)
    _show_seeds(comparison)
    for (first, second), tests in comparison.conditions.items():
        shown = [test for test in tests if every or test.p_holm < 0.05]
        typer.echo(
            f"\n{printable(first)} and {printable(second)}: "
            f"{sum(test.p_holm < 0.05 for test in tests)} of {len(tests)} conditions differ (Holm, 5 %, "
            f"over {counted(len(tests) * len(comparison.conditions), 'test')})"
        )
        if shown:
            head = ("condition", "first", "second", "only first", "only second", "p", "p (Holm)")
            lines = [
                (
                    str(test.condition),
                    f"{test.first.value:.1%}",
                    f"{test.second.value:.1%}",
                    str(test.only_first),
                    str(test.only_second),
                    _p(test.p),
                    _p(test.p_holm),
                )
                for test in shown
            ]
            typer.echo(table([head, *lines]))


def _show_calibration(comparison: Comparison) -> None:
    rows = [
        (
            f"{printable(one.second)} - {printable(one.first)}",
            {"clean": "clean", "corrupted": "corrupted"}.get(one.group, f"severity {one.group}"),
            one.metric,
            f"{one.difference:+.3f}",
        )
        for one in comparison.calibration
    ]
    typer.echo("\n" + table([("difference", "images", "calibration", "each interval by itself"), *rows]))


def _show_groups(comparison: Comparison) -> None:
    for model in comparison.scores.models:
        if model.groups is None:
            continue
        rows = [(printable(name), f"{one:.1%}", str(one.n)) for name, one in model.groups.accuracies.items()]
        typer.echo(f"\n{printable(model.model)}, accuracy by group; these intervals hold together:")
        typer.echo(table([("group", "accuracy", "n"), *rows]))
        typer.echo(f"worst group: {model.groups.worst:.1%} ({printable(model.groups.worst_name)})")


def _show_seeds(comparison: Comparison) -> None:
    from beaufort.metrics import metrics

    for seeds in comparison.scores.seeds:
        typer.echo(f"\n{printable(seeds.name)}, {len(seeds.models)} trainings:")
        rows = [
            (
                metrics[name].title,
                metrics[name].shown(one.mean),
                *_spread(one, 100 if metrics[name].in_percent else 1),
            )
            for name, one in seeds.metrics.items()
        ]
        typer.echo(table([("metric", "mean, these trainings", "SD over trainings", "range"), *rows]))


def _spread(one: SeedSpread, times: int) -> tuple[str, str]:
    return f"{times * one.deviation:.2f}", f"{times * one.lowest:.1f} to {times * one.highest:.1f}"


def _points(estimate: Estimate, times: int) -> str:
    value, low, high = (times * one for one in (estimate.value, estimate.low, estimate.high))
    return f"{value:+z.2f} [{low:+z.2f}, {high:+z.2f}]"


def _p(value: float) -> str:
    if value < 1e-12:
        return "<1e-12"
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.0e}"


def _as_dict(comparison: Comparison) -> dict[str, Any]:
    scores = comparison.scores
    return {
        "suite": str(scores.suite),
        "dataset": scores.results.dataset,
        "images": scores.images,
        "baseline": scores.baseline.name if scores.baseline else None,
        "level": scores.level,
        "ranking": [vars(place) for place in scores.ranking],
        "metrics": {one.model: {k: vars(v) for k, v in one.metrics.items()} for one in scores.models},
        **({"sequences": movement_of(scores)} if scores.suite.sequences else {}),
        "notes": list(scores.notes),
        "family": scores.pairs.size,
        "differences": [
            {**vars(one), "difference": vars(one.difference), "told_apart": one.told_apart}
            for one in comparison.differences
        ],
        "calibration": [{**vars(one), "difference": vars(one.difference)} for one in comparison.calibration],
        "clusters": scores.clusters,
        "groups": {one.model: asdict(one.groups) for one in scores.models if one.groups is not None},
        "seeds": [asdict(one) for one in scores.seeds],
        "conditions": [
            {
                "first": first,
                "second": second,
                "tests": [
                    {
                        **vars(test),
                        "condition": str(test.condition),
                        "first": vars(test.first),
                        "second": vars(test.second),
                    }
                    for test in tests
                ],
            }
            for (first, second), tests in comparison.conditions.items()
        ],
    }
