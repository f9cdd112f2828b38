"""Trackers: objects that `evaluate` notifies of a run, such as clients of experiment trackers.

A tracker has some of these methods:

| method | called |
|---|---|
| `on_start(plan)` | before the first prediction |
| `on_scores(scores)` | after the last prediction, with the scores of each dataset of the suite |
| `on_end(run)` | last |

`mlflow`, `wandb` and `tensorboard` are built in. A package adds one as an entry point of the group
`beaufort.trackers`: a function that takes the options of `name:option=value,…` as keyword arguments and
returns the tracker.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any

from beaufort._core.errors import MissingExtraError, OptionError
from beaufort._core.registry import Registry

if TYPE_CHECKING:
    from beaufort.evaluation import Plan
    from beaufort.results.run import Run
    from beaufort.results.scores import Scores

trackers: Registry[Callable[..., Any]] = Registry("tracker", "beaufort.trackers")
"""Functions that return each tracker, by name."""


def open_tracker(tracker: Any) -> Any:
    """Return the tracker that a text such as `mlflow:experiment=robustness` names; others as they are."""
    if not isinstance(tracker, str):
        return tracker
    name, _, rest = tracker.partition(":")
    options: dict[str, str] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or not key.isidentifier():
            raise OptionError(f"options of the tracker {name} must be given as NAME=VALUE, got {item!r:.60}")
        options[key] = value
    try:
        return trackers[name](**options)
    except TypeError as error:
        raise OptionError(f"invalid options of the tracker {name}: {error}") from None


def scalars(scores: Scores) -> dict[str, float]:
    """Return the numbers of all models as `model/metric`, and the ends of intervals with `_low` and `_high`.

    Proportions are in [0, 1]. Every corruption has its mean error as `model/error/corruption`.
    """
    found: dict[str, float] = {}
    for one in scores.models:
        named = dict(one.metrics)
        if scores.with_clean and one.clean is not None:
            named["clean_accuracy"] = one.clean
        for name, value in named.items():
            found[f"{one.model}/{name}"] = value.value
            found[f"{one.model}/{name}_low"] = value.low
            found[f"{one.model}/{name}_high"] = value.high
        found |= {f"{one.model}/error/{name}": value.value for name, value in one.corruptions.items()}
    return found


def facts(plan: Plan) -> dict[str, str]:
    """Return what a run evaluates, as texts: its models, suite, datasets and numbers of cells and images."""
    return {
        "models": ", ".join(dict.fromkeys(cell.model.spec.name for cell in plan.cells)),
        "suite": str(plan.suite or "custom conditions"),
        "datasets": ", ".join(dict.fromkeys(source.dataset.name for source in plan.sources)),
        "images": str(sum(source.count for source in plan.sources)),
        "cells": str(len(plan.cells)),
    }


class Trackers:
    """All trackers of one run."""

    def __init__(self, given: Sequence[Any]) -> None:
        self._all = [open_tracker(one) for one in given]

    def start(self, plan: Plan) -> None:
        """Notify all trackers; their errors end the run before anything is computed."""
        for one in self._all:
            if hasattr(one, "on_start"):
                one.on_start(plan)

    def end(self, run: Run) -> None:
        """Notify all trackers of the results; their errors become warnings, since the results are there."""
        if not self._all:
            return
        scored = run.part_scores(calibration=False) if run.scorable else ()
        for one in self._all:
            calls: list[tuple[str, Any]] = [*(("on_scores", scores) for scores in scored), ("on_end", run)]
            for method, value in calls:
                try:
                    getattr(one, method, _ignore)(value)
                except Exception as error:  # whatever a client raises
                    text = f"{method} of {type(one).__name__} failed: {type(error).__name__}: {error}"
                    warnings.warn(text, stacklevel=3)


def _ignore(value: Any) -> None:
    """Stand in for a method that a tracker does not have."""


class _MLflow:
    """Logs to the active MLflow run, or to a new one."""

    def __init__(self, experiment: str = "", run: str = "") -> None:
        self._mlflow = _client("mlflow")
        self._experiment, self._name = experiment, run
        self._opened = ExitStack()

    def on_start(self, plan: Plan) -> None:
        if self._mlflow.active_run() is None:
            if self._experiment:
                self._mlflow.set_experiment(self._experiment)
            self._opened.enter_context(self._mlflow.start_run(run_name=self._name or None))
        self._mlflow.log_params({f"beaufort.{name}": value[:500] for name, value in facts(plan).items()})

    def on_scores(self, scores: Scores) -> None:
        self._mlflow.log_metrics(scalars(scores))

    def on_end(self, _: Run) -> None:
        self._opened.close()


class _WandB:
    """Logs to the active Weights & Biases run, or to a new one."""

    def __init__(self, project: str = "", mode: str = "") -> None:
        self._wandb = _client("wandb")
        self._project, self._mode = project or "beaufort", mode or None
        self._run: Any = None
        self._own = False

    def on_start(self, plan: Plan) -> None:
        self._run, self._own = self._wandb.run, self._wandb.run is None
        if self._own:
            self._run = self._wandb.init(project=self._project, mode=self._mode)
        self._run.config.update({f"beaufort.{name}": value for name, value in facts(plan).items()})

    def on_scores(self, scores: Scores) -> None:
        self._run.log(scalars(scores))

    def on_end(self, _: Run) -> None:
        if self._own:
            self._run.finish()


class _TensorBoard:
    """Writes an event file that TensorBoard reads."""

    def __init__(self, directory: str = "runs", step: str = "0") -> None:
        if not step.isdecimal():
            raise OptionError(f"step of the tracker tensorboard must be an integer, got {step!r:.60}")
        _client("tensorboard")
        _client("torch")
        self._directory, self._step = directory, int(step)
        self._writer: Any = None

    def on_start(self, plan: Plan) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(self._directory)
        table = "\n".join(f"| {name} | {value} |" for name, value in facts(plan).items())
        self._writer.add_text("beaufort", f"| run | |\n|---|---|\n{table}", self._step)

    def on_scores(self, scores: Scores) -> None:
        for name, value in scalars(scores).items():
            self._writer.add_scalar(name, value, self._step)

    def on_end(self, _: Run) -> None:
        self._writer.close()


def _client(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(f"the package {package} is not installed: pip install {package}") from error


for _name, _make in {"mlflow": _MLflow, "tensorboard": _TensorBoard, "wandb": _WandB}.items():
    trackers.register(_name, _make)
