"""`beaufort power`: how many images a gate needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import printable
from beaufort.cli._options import (
    Baseline,
    ClusterBy,
    Json,
    MaxDrop,
    Metric,
    OptionalStore,
    Reference,
    StoredSeed,
    Suite,
    as_share,
    column,
)

if TYPE_CHECKING:
    from beaufort import suites
    from beaufort.results import ImagePlan, Spread


def power(
    result: Annotated[
        str | None,
        typer.Argument(help="A MODEL of --store, a STORE of one model, or STORE::MODEL, as for `gate`."),
    ] = None,
    *,
    drop: Annotated[float, typer.Option(help="The true drop that is to be noticed, points of the metric.")],
    probability: Annotated[
        float, typer.Option(help="Probability that the gate decides correctly, in percent.")
    ] = 80.0,
    max_drop: MaxDrop = 1.0,
    reference: Reference = None,
    store: OptionalStore = None,
    suite: Suite = None,
    accuracy: Annotated[
        float | None, typer.Option(help="Stated instead of a store: accuracy under damage, percent.")
    ] = None,
    clean_accuracy: Annotated[
        float | None, typer.Option(help="Stated: accuracy on clean images, percent; --accuracy if not given.")
    ] = None,
    differ: Annotated[
        float | None,
        typer.Option(
            help="Assumed percentage of predictions on which exactly one of the two models is right."
        ),
    ] = None,
    alike: Annotated[
        float | None,
        typer.Option(help="Assumed correlation of the difference between versions of one image, 0 to 1."),
    ] = None,
    metric: Metric = None,
    baseline: Baseline = None,
    stored_seed: StoredSeed = None,
    cluster_by: ClusterBy = None,
    as_json: Json = False,
) -> None:
    """Say how many images let a gate answer with some probability.

    `beaufort power --suite imagenet-c --accuracy 40 --drop 3 --probability 90`

    `beaufort power new --reference old --store results --drop 3`

    Two numbers: so many images let `beaufort gate` fail a model whose true drop is --drop, and so many let it
    pass a model that is as good as the old one. From two models of a store, the spread of their paired
    differences is measured; from one, or from stated accuracies, it is assumed as said. A suite of several
    data sets has a plan for each, as a gate judges each.
    """
    from beaufort.results import plan_images, spread_of_accuracies
    from beaufort.suites import get_suite

    _check_percent(accuracy=accuracy, clean_accuracy=clean_accuracy, probability=probability)
    if not max_drop < drop:
        raise OptionError(f"drop must be above max_drop, got {drop:g} and {max_drop:g} points")
    if accuracy is not None:
        if any(given is not None for given in (result, reference, store, stored_seed, cluster_by)):
            raise OptionError(
                "--accuracy cannot be used together with a store, its models, --stored-seed or --cluster-by"
            )
        if suite is None:
            raise OptionError("--accuracy needs --suite: the conditions that a drop is a mean over")
        whole = get_suite(suite)
        spreads = [
            (
                one,
                spread_of_accuracies(
                    one,
                    accuracy / 100,
                    clean=as_share(clean_accuracy),
                    metric=metric,
                    baseline=baseline,
                    differ=as_share(differ),
                    alike=alike,
                ),
            )
            for one in whole.parts or (whole,)
        ]
    else:
        if clean_accuracy is not None:
            raise OptionError("--clean-accuracy requires --accuracy; a store knows its clean accuracy")
        spreads = _measured(
            result,
            reference,
            store or "results",
            suite,
            stored_seed,
            metric=metric,
            baseline=baseline,
            clusters=column(cluster_by),
            differ=as_share(differ),
            alike=alike,
        )
    asked = {"drop": drop / 100, "max_drop": max_drop / 100, "probability": probability / 100}
    _show([(plan_images(spread, **asked), spread, one) for one, spread in spreads], as_json)


def _check_percent(**values: float | None) -> None:
    """What was typed in percent is told in percent; the functions behind take shares."""
    for name, value in values.items():
        if value is not None and not 0 < value < 100:
            raise OptionError(f"{name} must be a percentage between 0 and 100, got {value:g}")


def _measured(
    result: str | None,
    reference: str | None,
    store: str,
    suite: str | None,
    seed: int | None,
    **options: object,
) -> list[tuple[suites.Suite, Spread]]:
    """The spread on each data set of the suite."""
    from beaufort.results import open_target_parts, pair_parts, spread_of_results

    targets = [open_target_parts(store if result is None else result, store, suite=suite, seed=seed)]
    if reference is not None:
        targets.append(open_target_parts(reference, store, suite=suite, seed=seed))
    return [
        (models[0].suite, spread_of_results(*models, **options))  # type: ignore[arg-type]
        for models in pair_parts(targets)
    ]


def _show(plans: list[tuple[ImagePlan, Spread, suites.Suite]], as_json: bool) -> None:
    if as_json:
        found = [_as_dict(*one) for one in plans]
        typer.echo(json.dumps(found[0] if len(found) == 1 else {"parts": found}, indent=2))
        return
    for plan, spread, suite in plans:
        if len(plans) > 1:
            typer.echo(f"== {printable(suite.name)}")
        typer.echo(_told(plan, spread, suite))


def _told(plan: ImagePlan, spread: Spread, suite: suites.Suite) -> str:
    from beaufort.metrics import metrics

    title = metrics[plan.metric].title
    sure = f"with a probability of {100 * plan.probability:g} %"
    lines = [
        *(f"note: {printable(note)}" for note in spread.notes),
        f"{suite}, {title}, at most {_points(plan.max_drop)} worse; {printable(spread.source)}",
        f"{_count(plan.to_fail, spread)}: a gate fails a model that is {_points(plan.drop)} worse, {sure}",
    ]
    if plan.max_drop:
        same = "a gate passes a model that is as good as the old one"
        lines.append(f"{_count(plan.to_pass, spread)}: {same}, {sure}")
    else:
        lines.append("no number of images lets an equally good model pass if no drop is allowed")
    return "\n".join(lines)


def _count(needed: int | None, spread: Spread) -> str:
    unit = "image" if spread.images == 1 else "cluster"
    if needed is None:
        return f"more than a billion {unit}s"
    rounded = _rounded(needed)
    more = "" if spread.images == 1 else f" (about {_rounded(round(needed * spread.images)):,} images)"
    return f"about {rounded:,} {unit}{'s' * (rounded != 1)}{more}"


def _rounded(count: int) -> int:
    """Up to two digits that are sure: a plan is not more exact than its assumptions."""
    step = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // step) * step


def _points(share: float) -> str:
    return f"{100 * share:g} point{'s' * (round(100 * share, 9) != 1)}"


def _as_dict(plan: ImagePlan, spread: Spread, suite: suites.Suite) -> dict[str, object]:
    return {
        "suite": str(suite),
        **vars(plan),
        "unit": "image" if spread.images == 1 else "cluster",
        "images_per_unit": spread.images,
        "deviation": spread.deviation(plan.drop),
        "source": spread.source,
        "notes": list(spread.notes),
    }
