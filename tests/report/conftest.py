"""Small stores and large results, made here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort.data import Dataset, from_arrays
from beaufort.evaluation import predictions
from beaufort.metrics import BASELINE_NAMES, get_baseline
from beaufort.report import examples_of_images, write_report
from beaufort.results import Predictions, Results, ResultSetting, Scores, open_results, score
from beaufort.store import Cell, FileStore
from beaufort.suites import Suite, get_suite
from beaufort.suites.conditions import Condition

NAMES = ("good", "middling", "bad")
CLASSES = ("polar_bear", 'cat "Tom"', "</script><b>dog", "fish & chips")
SUITE = Suite(
    name="small",
    version=1,
    title="A small suite",
    dataset="toys",
    scale="cifar",
    corruptions=("gaussian_noise", "fog", "contrast"),
    severities=(1, 3, 5),
    metrics=("mean_accuracy",),
)
ORIGIN = {
    "time": "2026-01-02T03:04:05+00:00",
    "command": [
        "/home/someone/venv/bin/beaufort",
        "run",
        "--data",
        "/home/someone/photos",
        "--store=/srv/x/out",
    ],
    "python": "3.11.2",
    "versions": {"beaufort": "0.1.0", "numpy": "2.0"},
    "machine": {"system": "Linux", "processor": "x86_64", "cores": 2},
    "git": "abc1234",
}


def dataset(count: int = 60, side: int = 32, channels: int = 3) -> Dataset:
    rng = np.random.default_rng(5)
    coarse = rng.integers(0, 256, (count, 4, 4, channels))
    images = coarse.repeat(side // 4, axis=1).repeat(side // 4, axis=2).astype(np.uint8)
    return from_arrays("toys", images, np.arange(count) % len(CLASSES), classes=CLASSES)


def all_classes(suite: Suite, classes: Sequence[str] = CLASSES) -> tuple[str, ...]:
    """As many classes as the suite's published baseline has, so that it may be divided by."""
    wanted = get_baseline(suite.baseline).classes if suite.baseline in BASELINE_NAMES else None
    more = range(len(classes), wanted or len(classes))
    return (*classes, *(f"class_{i}" for i in more))


def logits(labels: np.ndarray, strength: float, seed: Sequence[int]) -> np.ndarray:
    """Return predictions whose accuracy grows with the strength."""
    rng = np.random.default_rng(list(seed))
    noise = rng.normal(0, 1, (len(labels), len(CLASSES)))
    return np.asarray(noise + strength * np.eye(len(CLASSES))[labels], np.float32)


def fill(
    folder: Path,
    data: Dataset,
    suite: Suite = SUITE,
    names: Sequence[str] = NAMES,
    *,
    lacking: Sequence[str] = (),
) -> FileStore:
    """A store as a run writes it; models in `lacking` have predictions for clean images only."""
    store = FileStore(folder)
    about = {"name": data.name, "digest": data.digest()}
    models = [
        {"name": name, "digest": f"sha256:{place:064x}"} for place, name in enumerate((*names, *lacking))
    ]
    for place, model in enumerate(models):
        for row, condition in enumerate(suite.conditions(data.name)):
            if model["name"] in lacking and not condition.clean:
                continue
            facts = {
                **condition.facts(scale=suite.scale),
                "prepare": [] if suite.scale == "mnist" else ["rgb"],
            }
            strength = 4.5 - 0.5 * place - 0.6 * (condition.severity or (0 if condition.clean else 3))
            table = predictions(data.ids, data.labels, logits(data.labels, strength, (place, row)))
            store.write(Cell(model, about, facts), 0, table, ORIGIN)
    facts = {"suite": suite.as_dict(), "data": about, "seed": 0, "models": models}
    store.write_run(facts, {"images": len(data), "classes": list(all_classes(suite)), **ORIGIN})
    return store


def results_of(
    names: Sequence[str], suite: Suite, count: int, classes: Sequence[str] = CLASSES, *, few: bool = False
) -> Results:
    """Results without a store: random predictions of any number of models."""
    rng = np.random.default_rng(11)
    conditions = tuple(suite.conditions("made"))
    labels = (np.arange(count) if few else np.arange(count) % len(classes)).astype(np.int32)
    cells: dict[str, dict[Condition, Cell]] = {}
    sources: dict[str, Predictions] = {}
    for place, name in enumerate(names):
        cells[name] = {
            condition: Cell({"name": name, "digest": f"sha256:{place:064x}"}, {"name": "made"}, {"row": row})
            for row, condition in enumerate(conditions)
        }
        hard = np.array([0.1 + 0.12 * (condition.severity or 0) for condition in conditions])[:, None]
        wrong = rng.random((len(conditions), count)) < hard + 0.002 * place
        best = np.where(wrong, (labels + 1) % len(classes), labels).astype(np.int32)

        def uniform(low: float, high: float, shape: tuple[int, ...] = best.shape) -> NDArray[np.float32]:
            return rng.uniform(low, high, shape).astype(np.float32)

        sources[name] = Predictions(
            name,
            conditions,
            tuple(f"made/{i}" for i in range(count)),
            labels,
            np.stack([best, (best + 1) % len(classes)], axis=-1),
            confidence=uniform(0.3, 1),
            nll=uniform(0, 2),
            brier=uniform(0, 2),
            entropy=uniform(0, 2),
            unread=0,
        )
    setting = ResultSetting("0" * 64, None, 0)
    return Results(suite, setting, "made", all_classes(suite, classes), cells, {}, sources, (ORIGIN,))


def scored(results: Results, **options: Any) -> Scores:
    return score(results, **{"resamples": 300, **options})


@pytest.fixture(scope="session")
def data() -> Dataset:
    return dataset()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, data: Dataset) -> Path:
    folder = tmp_path_factory.mktemp("report") / "store"
    fill(folder, data, lacking=["unfinished"])
    return folder


@pytest.fixture(scope="session")
def scores(store: Path) -> Scores:
    return scored(open_results(str(store)))


@pytest.fixture(scope="session")
def alone(store: Path) -> Scores:
    return scored(open_results(str(store)), models=["middling"])


@pytest.fixture(scope="session")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a hundred models."""
    names = [f"net-{i:03}" for i in range(99)] + ["<script>alert(1)</script>"]
    many = scored(results_of(names, get_suite("imagenet-c"), 60))
    target = tmp_path_factory.mktemp("large") / "report.html"
    return write_report(many, target, examples=examples_of_images(many))


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scores, Dataset]:
    """MNIST-C: one published severity, a published baseline, gray images of 28×28."""
    data = dataset(count=40, side=28, channels=1)
    store = fill(tmp_path_factory.mktemp("digits") / "store", data, get_suite("mnist-c"), NAMES[:2])
    return scored(open_results(store)), data


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Functions that create results."""
    parts: dict[str, Callable[..., Any]] = {
        "results_of": results_of,
        "scored": scored,
        "fill": fill,
        "dataset": dataset,
    }
    return SimpleNamespace(**parts, suite=SUITE, classes=CLASSES, origin=ORIGIN)
