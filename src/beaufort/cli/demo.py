"""`beaufort demo`: the first five minutes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._console import table
from beaufort.cli._evaluation import predictions_bar
from beaufort.cli._options import Json, Output

if TYPE_CHECKING:
    from beaufort.studies.demo import Demo


def demo(
    *,
    imagenet: Annotated[
        bool, typer.Option("--imagenet", help="Photos instead of digits: 20 of them, a smoke test.")
    ] = False,
    output: Output = Path("demo"),
    as_json: Json = False,
) -> None:
    """Evaluate a small classifier on a whole benchmark, print its table, write its report.

    `beaufort demo` takes 10,000 handwritten digits through the 15 corruptions of MNIST-C.

    `beaufort demo --imagenet` takes 20 photos through the 75 conditions of ImageNet-C.
    """
    from beaufort.studies.demo import run_demo

    with predictions_bar() as progress:
        made = run_demo(
            "imagenet" if imagenet else "digits",
            output,
            tell=None if as_json else lambda line: typer.echo(f"{line} …", err=True),
            progress=progress,
        )
    typer.echo(json.dumps(_as_dict(made), indent=2) if as_json else _told(made))


def _told(made: Demo) -> str:
    from beaufort.metrics import metrics

    one, sample = made.scores.models[0], made.sample
    against = sample.column[1] if sample.column else ""
    head = ("accuracy in %", one.model, "95 % interval", against)
    rows = [
        (
            row.name,
            f"{100 * row.value:.2f}",
            f"{100 * row.low:.2f} to {100 * row.high:.2f}",
            "" if row.printed is None else f"{100 * row.printed:.2f}",
        )
        for row in made.rows
    ]
    numbers = [f"{metrics[name].title} {value:.1%}" for name, value in one.metrics.items()]
    baseline = made.scores.baseline
    lines = [
        table([head, *rows]),
        "",
        f"{made.scores.suite}, {counted(one.images, 'image')}: {'; '.join(numbers)}",
        *([f"baseline: {baseline.title} ({baseline.source})"] if baseline else []),
        *([sample.note] if sample.note else []),
        "",
        f"open {printable(made.report)} to see where it breaks",
        f"the answers are in {printable(made.store)}, for `beaufort report` and `beaufort query`",
    ]
    return "\n".join(lines)


def _as_dict(made: Demo) -> dict[str, object]:
    one = made.scores.models[0]
    return {
        "model": one.model,
        "suite": str(made.scores.suite),
        "images": one.images,
        "rows": [row._asdict() for row in made.rows],
        "metrics": {name: vars(value) for name, value in one.metrics.items()},
        "report": str(made.report),
        "store": str(made.store),
        "note": made.sample.note,
    }
