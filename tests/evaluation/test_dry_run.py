"""A dry run, and a run in other processes, hold one model in memory at a time."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort.cli import app
from beaufort.data import Dataset, from_arrays
from beaufort.evaluation import LazyModel, plan
from beaufort.models import ModelSpec, Preprocessing, adapters
from beaufort.models.load import Adapter
from beaufort.results import evaluate
from beaufort.suites.conditions import Condition
from beaufort.suites.shifts import shifts
from beaufort.testing._contracts import example_image

IMAGES = np.stack([example_image(32, 32, variant=i) for i in range(10)])
LABELS = np.arange(10) % 5
LOADED: weakref.WeakSet[Counted] = weakref.WeakSet()
LOADS: list[tuple[str, int]] = []
"""For each time that a model was loaded, its name and how many were in memory with it."""


class Counted:
    """A model that is counted while it lives."""

    def __init__(self, name: str) -> None:
        self.spec = ModelSpec(
            name=name,
            source=f"counted:{name}",
            preprocessing=Preprocessing(),
            classes=5,
            weights=f"declared:{name}",
        )
        LOADED.add(self)
        LOADS.append((name, len(LOADED)))

    def __call__(self, images: np.ndarray) -> np.ndarray:
        return images.reshape(len(images), -1)[:, :5].astype(np.float32)


class Patient:
    """A shift that looks at every model before the run."""

    passes = 2

    def __init__(self, level: str) -> None:
        self.level = level

    def check(self, model: Counted) -> None:
        assert len(LOADED) == 1

    def facts(self, **_: Any) -> dict[str, Any]:
        return {"corruption": "patient", "level": self.level}

    def predict(self, model: Any, images: Any, **_: Any) -> Any:
        raise AssertionError("nothing is run")


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = Adapter("counted", f"{__name__}:Counted", (), "", "counted:a", "Counted.")
    monkeypatch.setitem(adapters._things, "counted", adapter)
    monkeypatch.setitem(shifts._things, "patient", Patient)
    LOADS.clear()
    LOADED.clear()  # of what other tests may have left to the collector of garbage


def dataset() -> Dataset:
    return from_arrays("toys", IMAGES, LABELS)


def test_the_command_has_one_model_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("toys.npz", images=IMAGES, labels=LABELS)
    models = [word for name in "abc" for word in ("--model", f"counted:{name}")]
    command = ["run", *models, "--data", "toys.npz", "--corruption", "fog", "--severity", "3", "--dry-run"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "3 models × 2 conditions × 10 images" in done.output
    assert {name for name, _ in LOADS} == {"a", "b", "c"}
    assert max(alive for _, alive in LOADS) == 1
    assert not LOADED


@pytest.mark.usefixtures("no_model_checks")
def test_shifts_look_at_one_model_after_the_other(tmp_path: Path) -> None:
    models = [LazyModel(f"counted:{name}") for name in "ab"]
    planned = plan(models, [Condition.parse("toys/patient@1")], dataset(), tmp_path)
    assert not LOADED
    assert planned.estimate_seconds() > 0
    assert [name for name, _ in LOADS] == ["a", "b"] * 3
    assert max(alive for _, alive in LOADS) == 1


def test_a_single_model_is_loaded_once(tmp_path: Path) -> None:
    planned = plan([LazyModel("counted:a")], ["contrast"], dataset(), tmp_path)
    assert planned.estimate_seconds() > 0
    assert LOADS == [("a", 1)]


def test_models_stay_for_a_run_in_this_process(tmp_path: Path) -> None:
    models = [LazyModel(f"counted:{name}") for name in "ab"]
    plan(models, ["contrast"], dataset(), tmp_path, keep_models=True)
    assert [model.load().spec.name for model in models] == ["a", "b"]
    assert [name for name, _ in LOADS] == ["a", "b"]


def test_with_processes_this_one_plans_with_one_model_in_memory(tmp_path: Path) -> None:
    options = [f"counted:{name}" for name in "ab"], ["contrast"], dataset(), tmp_path
    evaluate(*options)
    LOADS.clear()
    assert all(result.reused for result in evaluate(*options, engine="processes:1").results)
    assert LOADS == [("a", 1), ("b", 1)]
