"""The first five minutes: a small classifier through a whole benchmark, beside what a paper printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from beaufort._core.catalog import pull
from beaufort._core.errors import OptionError
from beaufort.evaluation import Progress
from beaufort.metrics import published_table
from beaufort.report import examples_of_data, write_report
from beaufort.results import Scores, evaluate, open_results, score


@dataclass(frozen=True)
class DemoSetup:
    """What a demo shows."""

    model: str
    data: str
    suite: str
    files: tuple[str, ...]
    """Entries of the catalog that it needs."""
    column: tuple[str, str] | None
    """A paper's table and a network of it, to stand beside the result."""
    note: str = ""
    """What must be said about its numbers."""


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
    """A line of the table: accuracy under one corruption, and what a paper has there."""

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
    tell: Callable[[str], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Demo:
    """Get the data, evaluate the classifier on the whole suite, score it, and write the page.

    Args:
        name: `digits` or `imagenet`.
        output: a folder for the answers and the page; a second run takes up what is there.
        tell: called with a line before each step.
        progress: called after every batch.
    """
    if name not in DEMOS:
        raise OptionError(f"name must be {' or '.join(map(repr, DEMOS))}, got {name!r}")
    sample, folder = DEMOS[name], Path(output)
    say = tell or (lambda _: None)
    say(f"getting {', '.join(sample.files)}")
    for entry in sample.files:
        pull(entry)
    store = folder / "results"
    say(f"showing {sample.data} to {sample.model} under every condition of {sample.suite}")
    evaluate([sample.model], sample.suite, sample.data, store, progress=progress)
    say("working out the intervals, drawing the page")
    scores = score(open_results(str(store), suite=sample.suite))
    examples = examples_of_data(scores, sample.data)
    report = write_report(scores, folder / "report.html", examples=examples)
    return Demo(sample, scores, _rows(sample, scores), report, store)


def _rows(sample: DemoSetup, scores: Scores) -> tuple[DemoRow, ...]:
    """Clean images and each corruption, the mean over its severities."""
    one = scores.models[0]
    printed = published_table(sample.column[0])[sample.column[1]] if sample.column else {}
    rows = []
    if one.clean:
        rows.append(DemoRow("clean", one.clean.value, one.clean.low, one.clean.high, printed.get("clean")))
    for name, error in one.corruptions.items():
        rows.append(DemoRow(name, 1 - error.value, 1 - error.high, 1 - error.low, printed.get(name)))
    mean = one.metrics["mean_accuracy"]
    column = [row.printed for row in rows if row.printed is not None]
    whole = len(column) == len(rows)
    rows.append(
        DemoRow("mean", mean.value, mean.low, mean.high, sum(column) / len(column) if whole else None)
    )
    return tuple(rows)
