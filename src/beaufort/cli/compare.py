"""`beaufort compare`: differences between models on the same images."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import counted, printable
from beaufort.cli._console import table
from beaufort.cli._deployment import deployment_dict, deployment_lines
from beaufort.cli._evaluation import movement_of, replies_of, show_replies
from beaufort.cli._options import (
    Baseline,
    ClusterBy,
    GroupBy,
    Json,
    Seed,
    Store,
    Suite,
    TrainingRuns,
    read_column,
    training_run_models,
)

if TYPE_CHECKING:
    from beaufort.results import Comparison, Results, SeedSpread


def compare(
    results: Annotated[
        list[str],
        typer.Argument(help="Two or more: a MODEL of --store, a STORE of one model, or STORE::MODEL."),
    ],
    *,
    store: Store = "results",
    suite: Suite = None,
    baseline: Baseline = None,
    seed: Seed = None,
    cluster_by: ClusterBy = None,
    group_by: GroupBy = None,
    training_runs: TrainingRuns = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Print all conditions, not only significant ones, and calibration."),
    ] = False,
    deployment: Annotated[
        bool,
        typer.Option(
            "--deployment",
            help="Report which predictions differ between two versions of a model, the original one first.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare models on the same images: a ranking with ties, paired differences, and tests.

    `beaufort compare resnet50 mobilenet_v2 --store results`

    `beaufort compare resnet50 resnet50_int8 --store results --deployment`

    Intervals and p-values of differences are adjusted for all pairs: those in the suite's first metric are
    one family, those in the other metrics a second one (single-step max-T). Two models share a tie group
    exactly if they do not differ significantly in the first metric. Under each condition, McNemar's exact
    test compares how many images only one of two models classifies correctly, with Holm's correction over
    all conditions of all pairs.
    """
    from beaufort.results import compare as compare_models
    from beaufort.results import join_results, open_targets, pair_parts

    targets = open_targets([(text, "model") for text in results], store, suite=suite, seed=seed)
    if deployment:
        for name, given in (
            ("--baseline", baseline),
            ("--group-by", group_by),
            ("--training-runs", training_runs),
        ):
            if given:
                raise OptionError(f"--deployment and {name} cannot be used together")
        _show_deployments(pair_parts(targets), read_column(cluster_by), every, as_json)
        return
    comparisons = [
        compare_models(
            join_results(parts),
            baseline=baseline,
            clusters=read_column(cluster_by),
            groups=read_column(group_by),
            seeds=training_run_models(training_runs),
            calibration=every or as_json,
        )
        for parts in pair_parts(targets)
    ]
    if as_json:
        parts = [_as_dict(comparison) for comparison in comparisons]
        typer.echo(json.dumps(parts[0] if len(parts) == 1 else {"parts": parts}, indent=2))
        return
    for number, comparison in enumerate(comparisons):
        if len(comparisons) > 1:
            gap = "" if number == 0 else "\n"
            typer.echo(
                f"{gap}== {comparison.scores.suite.name} (adjusted for the differences on this dataset)\n"
            )
        _show(comparison, every)


def _show_deployments(
    pairs: list[tuple[Results, ...]], clusters: dict[str, str] | None, every: bool, as_json: bool
) -> None:
    from beaufort.results import compare_deployment, join_results

    joined = [join_results(parts) for parts in pairs]  # models in the order of the command line
    found = [compare_deployment(one, clusters=clusters) for one in joined]
    if as_json:
        parts = [deployment_dict(one, results) for one, results in zip(found, joined, strict=True)]
        typer.echo(json.dumps(parts[0] if len(parts) == 1 else {"parts": parts}, indent=2))
        return
    for number, (one, results) in enumerate(zip(found, joined, strict=True)):
        typer.echo("\n" * (number > 0) + "\n".join(deployment_lines(one, results, every)))


def _show(comparison: Comparison, every: bool) -> None:
    from beaufort.metrics import metrics
    from beaufort.report.wording import families, units

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
        (printable(one), _p(one.p), "" if one.significant else "not significant")
        for one in comparison.differences
    ]
    typer.echo("\n" + table([("difference", "p", ""), *differences]))
    typer.echo(
        f"{100 * scores.level:g} % intervals and p-values, adjusted (single-step max-T) within "
        f"{families(scores)}. Models that share a tie group do not differ significantly in "
        f"{metrics[scores.headline].title}."
    )
    if any(scores.results.space(one.model).outcomes for one in scores.models):
        typer.echo()
        show_replies(scores.results, [one.model for one in scores.models])
    if every:
        _show_calibration(comparison)
    _show_groups(comparison)
    _show_seeds(comparison)
    for (first, second), tests in comparison.conditions.items():
        shown = [test for test in tests if every or test.p_holm < 0.05]
        typer.echo(
            f"\n{printable(first)} and {printable(second)} differ significantly under "
            f"{sum(test.p_holm < 0.05 for test in tests)} of {counted(len(tests), 'condition')} (McNemar, "
            f"Holm-adjusted for {counted(len(tests) * len(comparison.conditions), 'test')}, 5 %)"
        )
        if shown:
            accuracies = (f"accuracy of {first}", f"accuracy of {second}")
            head = ("condition", *accuracies, "only first correct", "only second correct", "p", "p (Holm)")
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
            one.group if one.group in ("clean", "corrupted") else f"severity {one.group}",
            str(one),
        )
        for one in comparison.calibration
    ]
    typer.echo("\n" + table([("images", "difference in calibration (intervals are not adjusted)"), *rows]))


def _show_groups(comparison: Comparison) -> None:
    for model in comparison.scores.models:
        if model.groups is None:
            continue
        rows = [(printable(name), f"{one:.1%}", str(one.n)) for name, one in model.groups.accuracies.items()]
        typer.echo(f"\n{printable(model.model)}, accuracy by group (intervals adjusted for all groups):")
        typer.echo(table([("group", "accuracy", "n"), *rows]))
        typer.echo(f"worst group: {model.groups.worst:.1%} ({printable(model.groups.worst_name)})")


def _show_seeds(comparison: Comparison) -> None:
    from beaufort.metrics import metrics

    for seeds in comparison.scores.seeds:
        typer.echo(f"\n{printable(seeds.name)}, {len(seeds.models)} training runs:")
        rows = [
            (
                metrics[name].title,
                metrics[name].shown(one.mean),
                *_spread(one, 100 if metrics[name].in_percent else 1),
            )
            for name, one in seeds.metrics.items()
        ]
        typer.echo(table([("metric", "mean", "SD over runs", "range"), *rows]))


def _spread(one: SeedSpread, times: int) -> tuple[str, str]:
    return f"{times * one.deviation:.2f}", f"{times * one.lowest:.1f} to {times * one.highest:.1f}"


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
        **replies_of(scores.results, [one.model for one in scores.models]),
        "notes": list(scores.notes),
        "families": [
            {"name": name, "metrics": list(some), "size": scores.pairs.size(name), "method": "max-T"}
            for name, some in scores.pairs.families.items()
        ],
        "differences": [
            {**vars(one), "difference": vars(one.difference), "significant": one.significant}
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
