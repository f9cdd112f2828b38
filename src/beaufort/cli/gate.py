"""`beaufort gate`: a check for CI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort.cli._console import printable
from beaufort.cli._options import Json, ResultSeed, Store, SuiteOfStore

if TYPE_CHECKING:
    from beaufort.results import Verdict

__all__ = ["gate"]


def gate(
    baseline: Annotated[
        str, typer.Option(help="The old result: a STORE of one model, STORE::MODEL, or a MODEL of --store.")
    ],
    result: Annotated[
        str | None,
        typer.Argument(help="The new one, named likewise; the only model of --store if not given."),
    ] = None,
    *,
    store: Store = "results",
    max_drop: Annotated[
        float, typer.Option(min=0, help="How many points of the metric it may be worse.")
    ] = 0.0,
    metric: Annotated[
        str | None, typer.Option(help="mce, relative_mce or mean_accuracy; the suite's first if not given.")
    ] = None,
    suite: SuiteOfStore = None,
    seed: ResultSeed = None,
    reference: Annotated[
        str | None, typer.Option(help="What mCE divides by: alexnet, conv1, …; the suite's own if not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fail if a model got worse: by more than is allowed, and by more than chance.

    `beaufort gate --store results --baseline main-results --max-drop 1.0`

    Exit code 0: good enough. 1: worse by more than --max-drop points, and the whole 95 % interval of the
    paired difference lies on the worse side. 2: the two cannot be compared: other data, another seed,
    another suite or version of it, or answers that are missing.
    """
    from beaufort.results import gate as judge
    from beaufort.results import open_target

    old = open_target(baseline, store, suite=suite, seed=seed)
    new = open_target(store if result is None else result, store, suite=suite, seed=seed)
    verdict = judge(new, old, max_drop=max_drop / 100, metric=metric, reference=reference)
    if as_json:
        typer.echo(json.dumps(_as_dict(verdict, new.models[0], old.models[0]), indent=2))
    else:
        typer.echo(_told(verdict, printable(new.models[0]), printable(old.models[0])))
    if not verdict.ok:
        raise typer.Exit(1)


def _told(verdict: Verdict, new: str, old: str) -> str:
    from beaufort.metrics import metrics

    title = metrics[verdict.metric].title
    drop = verdict.drop
    change = (
        f"{abs(100 * drop.value):.2f} points {'worse' if drop.value > 0 else 'better'}, "
        f"95 % interval of the drop [{100 * drop.low:+.2f}, {100 * drop.high:+.2f}]"
        if drop.value
        else "no difference"
    )
    lines = [
        f"{title} of {new}: {verdict.model:.2%}",
        f"{title} of the baseline {old}: {verdict.baseline:.2%}",
        f"{change}; {100 * verdict.max_drop:g} points allowed, {drop.n} images",
    ]
    if not verdict.ok:
        lines.append("gate: failed, worse than allowed and by more than chance")
    elif drop.value > verdict.max_drop:
        lines.append(
            "gate: passed; the drop is larger than allowed, but may be chance: use more images to know"
        )
    else:
        lines.append("gate: passed")
    return "\n".join(lines)


def _as_dict(verdict: Verdict, new: str, old: str) -> dict[str, object]:
    return {
        "ok": verdict.ok,
        "significant": verdict.significant,
        "metric": verdict.metric,
        "model": {"name": new, **vars(verdict.model)},
        "baseline": {"name": old, **vars(verdict.baseline)},
        "drop": vars(verdict.drop),
        "max_drop": verdict.max_drop,
    }
