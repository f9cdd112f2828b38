"""Simulate how often a gate passes, fails and stays undecided, and whether planned sample sizes suffice.

    python -m benchmarks gate rates
    python -m benchmarks gate plans
    python -m benchmarks gate repeated

Predictions are simulated, so that the true drop is known; verdicts come from `beaufort.results.gate`. `rates`
tabulates them by true drop and number of images, with one point allowed, under both rules. `plans` counts how
often a gate decides as planned with the number of images from `plan_images`. `repeated` looks at a gate again
and again while images are added, with and without always-valid intervals.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beaufort.results import (
    RULES,
    Check,
    Decision,
    ListedStore,
    Results,
    ResultSetting,
    gate,
    plan_images,
    spread_of_results,
)
from beaufort.store import Cell
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition
from benchmarks.recording import record

SUITE = Suite(
    name="simulated",
    version=1,
    dataset="photos",
    scale="cifar",
    corruptions=("fog", "frost"),
    severities=(1, 3),
    clean=False,
)


@dataclass(frozen=True)
class Memory:
    """A store in memory, with the part of its interface that `Results` uses."""

    correct: NDArray[np.bool_]
    """Of one model, with shape `(conditions, images)`."""
    location: str = "memory"

    def read(self, cell: Cell, _listing: Any, _columns: Sequence[str]) -> Any:
        correct = self.correct[SUITE.conditions().index(Condition.parse(cell.condition["name"]))]
        n = len(correct)
        zeros = np.zeros(n, np.float32)
        return pa.table(
            {
                "place": np.arange(n),
                "id": [f"photo/{i}" for i in range(n)],
                "label": np.ones(n, np.int32),
                "top": pa.FixedSizeListArray.from_arrays(pa.array(correct.astype(np.int32)), 1),
                "p": pa.FixedSizeListArray.from_arrays(pa.array(zeros + 1), 1),
                "nll": zeros,
                "brier": zeros,
                "entropy": zeros,
            }
        )


def simulate(
    rng: np.random.Generator,
    images: int,
    drop: float,
    *,
    accuracy: float = 0.6,
    spread: float = 1.5,
    same: float = 0.4,
    other: float = 0.1,
) -> tuple[Results, Results]:
    """Return results of a new and an old model; the true mean accuracy of the new one is `drop` lower.

    The difficulty of an image follows a beta distribution (a small `spread` makes images differ more) and is
    shared by all of its versions and by both models, except for a fraction `other` of the images. A fraction
    `same` of the remaining predictions is equal in both models. The defaults resemble two small ImageNet
    networks.
    """
    a, b = spread * accuracy, spread * (1 - accuracy)
    chance, own = rng.beta(a, b, images), rng.beta(a, b, images)
    shape = len(SUITE.conditions()), images
    old = rng.random(shape) < chance
    new = np.where(rng.random(shape) < same, old, rng.random(shape) < chance)
    new = np.where(rng.random(images) < other, rng.random(shape) < own, new)
    new &= rng.random(shape) >= drop / accuracy
    return _results("new", new), _results("old", old)


def _results(name: str, correct: NDArray[np.bool_]) -> Results:
    cells = {
        condition: Cell({"name": name}, {"name": "photos"}, {"name": str(condition)})
        for condition in SUITE.conditions()
    }
    store: Any = Memory(correct)
    setting = ResultSetting("simulated", None, 0)
    return Results(SUITE, setting, "photos", (), {name: cells}, {}, {name: ListedStore(store, {})})


def checks(
    images: int, drop: float, repeats: int, *, max_drop: float = 0.01, **options: float
) -> Iterator[Check]:
    """Yield the checks of simulated gates."""
    rng = np.random.default_rng([images, round(1e4 * drop)])
    for _ in range(repeats):
        yield gate(*simulate(rng, images, drop, **options), max_drop=max_drop).checks[0]


def decisions(images: int, drop: float, repeats: int, **options: float) -> Counter[str]:
    """Count the decisions of simulated gates."""
    return Counter(check.decision.value for check in checks(images, drop, repeats, **options))


def rates(repeats: int) -> None:
    print(f"percent of {repeats} gates with one point allowed; mean accuracy 60 %, four versions per image")
    print("| true drop | images | passed | failed | undecided | old rule: passed | failed |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for drop, images in itertools.product((0.0, 0.005, 0.01, 0.03), (100, 200, 500, 2000)):
        found = list(checks(images, drop, repeats))
        new, old = (Counter(replace(one, rule=rule).decision.value for one in found) for rule in RULES)
        counts = (new["passed"], new["failed"], new["undecided"], old["passed"], old["failed"])
        cells = " | ".join(f"{100 * count / repeats:.1f}" for count in counts)
        record(f"passed, drop {100 * drop:g}, {images} images", 100 * new["passed"] / repeats, "%")
        print(f"| {100 * drop:g} | {images:,} | {cells} |", flush=True)


def plans(repeats: int) -> None:
    print(f"percent of {repeats} gates that decide as planned")
    print("| accuracy | drop | allowed | planned | images to fail | failed | images to pass | passed |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for accuracy, drop, allowed, probability in (
        (0.5, 0.05, 0.01, 0.8),
        (0.5, 0.04, 0.02, 0.9),
        (0.95, 0.03, 0.01, 0.8),
        (0.95, 0.03, 0.01, 0.9),
        (0.95, 0.02, 0.01, 0.8),
    ):
        rng = np.random.default_rng(1)
        worse, equal = (
            plan_images(
                spread_of_results(*simulate(rng, 20_000, true, accuracy=accuracy)),
                drop=drop,
                max_drop=allowed,
                probability=probability,
            )
            for true in (drop, 0.0)
        )
        assert worse.to_fail
        assert equal.to_pass
        fails = decisions(worse.to_fail, drop, repeats, max_drop=allowed, accuracy=accuracy)["failed"]
        passes = decisions(equal.to_pass, 0.0, repeats, max_drop=allowed, accuracy=accuracy)["passed"]
        case = f"accuracy {accuracy:.0%}, drop {100 * drop:g}, power {100 * probability:g} %"
        record(f"failed as planned, {case}", 100 * fails / repeats, "%")
        record(f"passed as planned, {case}", 100 * passes / repeats, "%")
        print(
            f"| {accuracy:.0%} | {100 * drop:g} | {100 * allowed:g} | {100 * probability:g} "
            f"| {worse.to_fail:,} | {100 * fails / repeats:.1f} "
            f"| {equal.to_pass:,} | {100 * passes / repeats:.1f} |",
            flush=True,
        )


LOOKS = (200, 300, 450, 700, 1000, 1500, 2300, 3500, 5000, 7500, 11_000, 16_000)
"""Numbers of images after which a repeated gate is looked at."""


@dataclass(frozen=True)
class Repeated:
    """What a gate that is repeated after more and more images ends with."""

    decision: Decision
    images: int


def repeat(new: Results, old: Results, *, always_valid: bool, looks: Sequence[int] = LOOKS) -> Repeated:
    """Repeat a gate until it decides."""
    check = gate(new, old, always_valid=always_valid).checks[0]
    assert check.form is not None
    for images in looks:
        form = replace(check.form, values=check.form.values[:images])
        estimate = form.estimate(check.estimate.level, always_valid=always_valid)
        decision = replace(check, estimate=estimate).decision
        if decision is not Decision.UNDECIDED:
            break
    return Repeated(decision, images)


def repeated(repeats: int) -> None:
    """Print decisions of repeated gates at and beyond the limit, and the images they need."""
    planned = plan_images(
        spread_of_results(*simulate(np.random.default_rng(1), 20_000, 0.03)), drop=0.03, max_drop=0.01
    )
    print(f"fixed numbers of images for a drop of 3 points, 80 %: {planned.to_fail:,}")
    print(
        f"percent of {repeats} gates with one point allowed, looked at after {len(LOOKS)} numbers of images"
    )
    print("| true drop | intervals | passed | failed | images, median | images, mean |")
    print("|---:|---|---:|---:|---:|---:|")
    for drop in (0.01, 0.03, 0.05, 0.08):
        for always_valid in (False, True) if drop == 0.01 else (True,):
            rng = np.random.default_rng(round(1e4 * drop))
            ended = [
                repeat(*simulate(rng, LOOKS[-1], drop), always_valid=always_valid) for _ in range(repeats)
            ]
            rates = {name: 100 * sum(one.decision == name for one in ended) / repeats for name in Decision}
            used = [one.images for one in ended]
            kind = "always valid" if always_valid else "for a fixed number"
            case = f"drop {100 * drop:g}, {kind}"
            for name in (Decision.PASSED, Decision.FAILED):
                record(f"repeated gate {name}, {case}", rates[name], "%")
            record(f"images of a repeated gate, {case}", float(np.mean(used)), "images")
            print(
                f"| {100 * drop:g} | {kind} | {rates[Decision.PASSED]:.1f} | {rates[Decision.FAILED]:.1f} "
                f"| {np.median(used):,.0f} | {np.mean(used):,.0f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("rates", "plans", "repeated"))
    parser.add_argument("--repeats", type=int, default=1000)
    options = parser.parse_args()
    {"rates": rates, "plans": plans, "repeated": repeated}[options.command](options.repeats)
