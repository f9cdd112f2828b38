"""`beaufort power`: compute how many images a gate needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

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
    Seed,
    Suite,
    parse_keys,
    parse_number,
    read_column,
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
    drop: Annotated[float, typer.Option(help="True drop to detect, in points of the metric.")],
    probability: Annotated[
        float, typer.Option(help="Probability that the gate decides correctly, in percent.")
    ] = 80.0,
    max_drop: MaxDrop = 1.0,
    reference: Reference = None,
    store: OptionalStore = None,
    suite: Suite = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,…",
            help="Assumptions that replace stored predictions. Keys: accuracy=PERCENT (under corruption); "
            "clean=PERCENT; differ=PERCENT of predictions for which exactly one of the models is correct; "
            "alike=CORRELATION of the difference between versions of one image, 0 to 1.",
        ),
    ] = None,
    metric: Metric = None,
    baseline: Baseline = None,
    seed: Seed = None,
    cluster_by: ClusterBy = None,
    as_json: Json = False,
) -> None:
    """Compute how many images a gate needs to detect a drop.

    `beaufort power --suite imagenet-c --assume accuracy=40 --drop 3 --probability 90`

    `beaufort power new --reference old --store results --drop 3`

    Two numbers are printed: how many images `beaufort gate` needs to fail a model whose true drop is
    `--drop`, and how many to pass a model that is as good as the reference. The spread of the paired
    differences is measured with two models of a store; with one model, or with assumed accuracies, it is
    estimated as stated. Each dataset of a suite has its own plan, as a gate judges each.
    """
    from beaufort.results import plan_images, spread_of_accuracies
    from beaufort.suites import get_suite

    assumed = _assumptions(assume)
    if not 0 < probability < 100:
        raise OptionError(f"--probability must be a percentage between 0 and 100, got {probability:g}")
    if not max_drop < drop:
        raise OptionError(f"--drop must be larger than --max-drop, got {drop:g} and {max_drop:g} points")
    settings: dict[str, Any] = {
        "metric": metric,
        "baseline": baseline,
        "differ": assumed.get("differ"),
        "alike": assumed.get("alike"),
    }
    if "accuracy" in assumed:
        if any(value is not None for value in (result, reference, store, seed, cluster_by)):
            raise OptionError(
                "accuracy in --assume cannot be used together with a store, its models, --seed or "
                "--cluster-by"
            )
        if suite is None:
            raise OptionError("accuracy in --assume requires --suite")
        whole = get_suite(suite)
        accuracies = assumed["accuracy"], assumed.get("clean")
        spreads = [
            (one, spread_of_accuracies(one, accuracies[0], clean=accuracies[1], **settings))
            for one in whole.parts or (whole,)
        ]
    elif "clean" in assumed:
        raise OptionError("clean in --assume requires accuracy=PERCENT; a store has its own clean accuracy")
    else:
        settings["clusters"] = read_column(cluster_by)
        spreads = _measured(result, reference, store or "results", suite, seed, **settings)
    plan = {"drop": drop / 100, "max_drop": max_drop / 100, "probability": probability / 100}
    _print([(plan_images(spread, **plan), spread, one) for one, spread in spreads], as_json)


def _assumptions(texts: list[str] | None) -> dict[str, float]:
    """Return the numbers of `--assume`, percentages as fractions."""
    found = {}
    for key, text in parse_keys("--assume", texts, ["accuracy", "clean", "differ", "alike"]).items():
        value = parse_number("--assume", key, text)
        if key in ("accuracy", "clean") and not 0 < value < 100:
            raise OptionError(f"{key} in --assume must be a percentage between 0 and 100, got {value:g}")
        found[key] = value if key == "alike" else value / 100
    return found


def _measured(
    result: str | None,
    reference: str | None,
    store: str,
    suite: str | None,
    seed: int | None,
    **settings: Any,
) -> list[tuple[suites.Suite, Spread]]:
    """Return the spread on each dataset of the suite."""
    from beaufort.results import open_targets, pair_parts, spread_of_results

    texts = [(store if result is None else result, "model")]
    texts += [] if reference is None else [(reference, "reference")]
    targets = open_targets(texts, store, suite=suite, seed=seed)
    return [(models[0].suite, spread_of_results(*models, **settings)) for models in pair_parts(targets)]


def _print(plans: list[tuple[ImagePlan, Spread, suites.Suite]], as_json: bool) -> None:
    if as_json:
        parts = [_as_dict(*one) for one in plans]
        typer.echo(json.dumps(parts[0] if len(parts) == 1 else {"parts": parts}, indent=2))
        return
    for plan, spread, suite in plans:
        if len(plans) > 1:
            typer.echo(f"== {printable(suite.name)}")
        typer.echo(_summary(plan, spread, suite))


def _summary(plan: ImagePlan, spread: Spread, suite: suites.Suite) -> str:
    from beaufort.metrics import metrics

    title = metrics[plan.metric].title
    probability = f"with a probability of {100 * plan.probability:g} %"
    lines = [
        *(f"note: {printable(note)}" for note in spread.notes),
        f"{suite}, {title}, at most {_points(plan.max_drop)} worse; {printable(spread.source)}",
        f"{_count(plan.to_fail, spread)}: a gate fails a model {_points(plan.drop)} worse, {probability}",
    ]
    if plan.max_drop:
        same = "a gate passes a model as good as the reference"
        lines.append(f"{_count(plan.to_pass, spread)}: {same}, {probability}")
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
    """Round up to two significant digits: a plan is not more exact than its assumptions."""
    step = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // step) * step


def _points(fraction: float) -> str:
    return f"{100 * fraction:g} point{'s' * (round(100 * fraction, 9) != 1)}"


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
