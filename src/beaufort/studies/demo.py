"""The first five minutes: evaluate a small classifier on a whole benchmark, beside the numbers of a paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from beaufort._core.catalog import pull
from beaufort._core.validation import validate_choice
from beaufort.evaluation import Progress
from beaufort.metrics import published_table
from beaufort.report import examples_of_data, write_report
from beaufort.results import Scores, evaluate, open_results, score


@dataclass(frozen=True)
class DemoSetup:
    """What a demo evaluates."""

    model: str
    data: str
    suite: str
    files: tuple[str, ...]
    """Entries of the catalog to download."""
    column: tuple[str, str] | None
    """A published table and the network in it to compare with."""
    note: str = ""
    """A caveat about the numbers."""


DEMOS = {
    "digits": DemoSetup(
        "demo:digits", "mnist-test", "mnist-c", ("mnist-test",), ("mnist-c-figure3", "Conv1")
    ),
    "imagenet": DemoSetup(
        "demo:efficientnet-lite0",
        "foolbox-imagenet-20",
        "imagenet-c",
        ("efficientnet-lite0", "foolbox-imagenet-20", "frost"),
        None,
        "20 photos: a smoke test that shows how things work, not a measurement. One photo is 5 points.",
    ),
}


class DemoRow(NamedTuple):
    """Accuracy under one corruption with its interval, and the published accuracy."""

    name: str
    value: float
    low: float
    high: float
    printed: float | None


@dataclass(frozen=True, eq=False)
class Demo:
    """The result of a demo."""

    sample: DemoSetup
    scores: Scores
    rows: tuple[DemoRow, ...]
    report: Path
    store: Path


def run_demo(
    name: str = "digits",
    output: str | Path = "demo",
    *,
    log: Callable[[str], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Demo:
    """Download the data, evaluate the classifier on the whole suite, score it, and write the report.

    Args:
        name: `digits` or `imagenet`.
        output: directory for the predictions and the report; existing predictions are reused.
        log: called with a line before each step.
        progress: called after every batch.
    """
    sample, folder = DEMOS[validate_choice("demo", name, DEMOS)], Path(output)
    log = log or (lambda _: None)
    log(f"downloading {', '.join(sample.files)}")
    for entry in sample.files:
        pull(entry)
    store = folder / "results"
    log(f"evaluating {sample.model} on {sample.data} under every condition of {sample.suite}")
    evaluate([sample.model], sample.suite, sample.data, store, progress=progress)
    log("computing intervals and writing the report")
    scores = score(open_results(str(store), suite=sample.suite))
    examples = examples_of_data(scores, sample.data)
    report = write_report(scores, folder / "report.html", examples=examples)
    return Demo(sample, scores, _rows(sample, scores), report, store)


def _rows(sample: DemoSetup, scores: Scores) -> tuple[DemoRow, ...]:
    """Return rows for clean images, each corruption (mean over severities), and the mean of all."""
    one = scores.models[0]
    printed = published_table(sample.column[0])[sample.column[1]] if sample.column else {}
    rows = []
    if one.clean:
        rows.append(DemoRow("clean", one.clean.value, one.clean.low, one.clean.high, printed.get("clean")))
    for name, error in one.corruptions.items():
        rows.append(DemoRow(name, 1 - error.value, 1 - error.high, 1 - error.low, printed.get(name)))
    column = [row.printed for row in rows if row.printed is not None]
    mean, complete = one.metrics["mean_accuracy"], len(column) == len(rows)
    published = sum(column) / len(column) if complete else None
    return (*rows, DemoRow("mean", mean.value, mean.low, mean.high, published))
