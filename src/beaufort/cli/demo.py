"""`beaufort demo`: a first evaluation without data or models of your own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.text import counted, printable
from beaufort._core.validation import validate_choice
from beaufort.cli._console import table
from beaufort.cli._evaluation import predictions_bar
from beaufort.cli._options import Json, Output

if TYPE_CHECKING:
    from beaufort.studies.demo import Demo


def demo(
    sample: Annotated[
        str, typer.Argument(metavar="[digits|imagenet]", help="Images to evaluate.")
    ] = "digits",
    *,
    output: Output = Path("demo"),
    as_json: Json = False,
) -> None:
    """Evaluate a small classifier on a whole benchmark, print a table and write a report.

    `beaufort demo` runs 10,000 handwritten digits through the 15 corruptions of MNIST-C.

    `beaufort demo imagenet` runs 20 photos through the 75 conditions of ImageNet-C, as a smoke test.
    """
    from beaufort.studies.demo import run_demo

    with predictions_bar() as progress:
        result = run_demo(
            validate_choice("sample", sample, ("digits", "imagenet")),
            output,
            log=None if as_json else lambda line: typer.echo(f"{line} …", err=True),
            progress=progress,
        )
    typer.echo(json.dumps(_as_dict(result), indent=2) if as_json else _summary(result))


def _summary(demo: Demo) -> str:
    from beaufort.metrics import metrics

    one, sample = demo.scores.models[0], demo.sample
    published = sample.column[1] if sample.column else ""
    rows = [("accuracy in %", one.model, "95 % interval", published)]
    for row in demo.rows:
        interval = f"{100 * row.low:.2f} to {100 * row.high:.2f}"
        printed = "" if row.printed is None else f"{100 * row.printed:.2f}"
        rows.append((row.name, f"{100 * row.value:.2f}", interval, printed))
    numbers = [f"{metrics[name].title} {value:.1%}" for name, value in one.metrics.items()]
    baseline = demo.scores.baseline
    lines = [
        table(rows),
        "",
        f"{demo.scores.suite}, {counted(one.images, 'image')}: {'; '.join(numbers)}",
        *([f"baseline: {baseline.title} ({baseline.source})"] if baseline else []),
        *([sample.note] if sample.note else []),
        "",
        f"report: {printable(demo.report)}",
        f"predictions, for `beaufort report` and `beaufort results query`: {printable(demo.store)}",
    ]
    return "\n".join(lines)


def _as_dict(demo: Demo) -> dict[str, object]:
    one = demo.scores.models[0]
    return {
        "model": one.model,
        "suite": str(demo.scores.suite),
        "images": one.images,
        "rows": [row._asdict() for row in demo.rows],
        "metrics": {name: vars(value) for name, value in one.metrics.items()},
        "report": str(demo.report),
        "store": str(demo.store),
        "note": demo.sample.note,
    }
