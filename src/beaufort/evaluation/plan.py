"""Which cells there are, and what is missing of each."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any, Generic, TypeVar

from beaufort.arrays import Bytes
from beaufort.conditions import Condition
from beaufort.corruptions import SCALES
from beaufort.datasets import Dataset, Sample
from beaufort.errors import OptionError
from beaufort.evaluation.lazy import LazyModel
from beaufort.store import Cell, Listing, Store
from beaufort.suites import Pictures, Step, Suite

__all__ = ["Plan", "Setup", "Work", "make_plan"]

Range = tuple[int, int]
Facts = dict[str, Any]
T = TypeVar("T")


class Once(Generic[T]):
    """A value that is made by the first thread that asks for it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._lock = Lock()

    def __call__(self) -> T:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


@dataclass(frozen=True)
class Setup:
    """What every cell of a run shares."""

    dataset: Dataset
    count: int
    """How many images of the data set, from the first on."""
    prepare: tuple[Step, ...]
    scale: str
    seed: int
    suite: Suite | None = None
    """The suite that the conditions come from, if they come from one."""

    @property
    def data(self) -> dict[str, Any]:
        """The facts of the data set."""
        facts: dict[str, Any] = {"name": self.dataset.name, "digest": self.dataset.digest()}
        return facts if self.dataset.order is None else {**facts, "order": self.dataset.order}

    @property
    def steps(self) -> list[str]:
        """What is done to a picture before it is corrupted, as text."""
        return [*([] if self.grey else ["rgb"]), *map(str, self.prepare)]

    @property
    def grey(self) -> bool:
        """Whether grey pictures stay grey: digits do; of photos the published sets made color pictures."""
        return self.scale == "mnist"

    def image(self, sample: Sample) -> Bytes:
        """A picture made ready, `(h, w, c)`."""
        return self.pictures.ready(sample.image)

    @property
    def pictures(self) -> Pictures:
        """The pictures of the data set, made ready."""
        return Pictures(self.dataset, self.prepare, self.grey)


@dataclass(frozen=True, eq=False)
class Work:
    """One cell and the ranges of images that have no answer in the store yet."""

    model: LazyModel
    condition: Condition
    facts: tuple[Facts, Once[Facts], Facts]
    """Of the model, the data and the condition; those of the data are computed when they are needed."""
    gaps: tuple[Range, ...]

    @cached_property
    def cell(self) -> Cell:
        """What the store knows it by."""
        model, data, condition = self.facts
        return Cell(model, data(), condition)

    @property
    def images(self) -> int:
        """How many images there are to do."""
        return sum(stop - start for start, stop in self.gaps)


@dataclass(frozen=True)
class Plan:
    """All cells of a run, those that are done included."""

    setup: Setup
    works: tuple[Work, ...]
    listing: Listing
    """What the store had when it was looked at."""

    @property
    def images(self) -> int:
        """How many answers are still to be had."""
        return sum(work.images for work in self.works)

    @property
    def reused(self) -> int:
        """How many cells the store has whole."""
        return sum(not work.gaps for work in self.works)


def make_plan(
    models: Sequence[LazyModel], conditions: Sequence[Condition], setup: Setup, store: Store
) -> Plan:
    """What there is to do; the store is looked at, nothing is run."""
    names = [model.spec.name for model in models]
    if twice := {name for name in names if names.count(name) > 1}:
        raise OptionError(f"two models are called {sorted(twice)[0]!r}; give one of them another name")
    for model in models:
        _check_classes(model, setup)
    facts = _condition_facts(conditions, setup)
    abouts = [_model_facts(model) for model in models]
    _check_different(abouts)
    listing = store.listing()
    data = Once(lambda: setup.data)
    works = []
    for model, about in zip(models, abouts, strict=True):
        for condition, fact in zip(conditions, facts, strict=True):
            work = Work(model, condition, (about, data, fact), ((0, setup.count),))
            if listing:  # where nothing can be stored, nobody waits until all data are read for their digest
                work = replace(work, gaps=tuple(store.missing(work.cell, setup.count, listing)))
            works.append(work)
    return Plan(setup, tuple(works), listing)


def _check_classes(model: LazyModel, setup: Setup) -> None:
    classes, highest = model.spec.classes, int(setup.dataset.labels[: setup.count].max(initial=0))
    if classes is not None and highest >= classes:
        raise OptionError(
            f"the model {model.spec.name} has {classes} classes, and {setup.dataset.name} has labels up to "
            f"{highest}; use a model of these classes, or data with labels below {classes}"
        )


def _model_facts(model: LazyModel) -> dict[str, Any]:
    spec = model.spec
    facts = {"name": spec.name, "digest": spec.digest, "preprocessing": spec.preprocessing.to_dict()}
    if not spec.reusable:  # nobody can say whether it is the model of an earlier run
        facts["run"] = uuid.uuid4().hex
    return facts


def _check_different(abouts: Sequence[dict[str, Any]]) -> None:
    """Two names for what the store takes for one model are a mistake within one run."""
    seen: list[dict[str, Any]] = []
    for about in abouts:
        facts = {key: value for key, value in about.items() if key != "name"}
        for other in seen:
            if facts == {key: value for key, value in other.items() if key != "name"}:
                raise OptionError(
                    f"the models {other['name']} and {about['name']} cannot be told apart: same weights and "
                    "preprocessing, or functions with the same version; give them different versions"
                )
        seen.append(about)


def _condition_facts(conditions: Sequence[Condition], setup: Setup) -> list[dict[str, Any]]:
    side, channels = None, 3
    if setup.count and any(not condition.clean for condition in conditions):
        first = setup.image(setup.dataset[0])
        channels = first.shape[-1]
        side = None if setup.scale in SCALES else min(first.shape[:2])
    about: dict[str, Any] = {"scale": setup.scale, "seed": setup.seed, "side": side, "channels": channels}
    return [{**condition.facts(**about), "prepare": setup.steps} for condition in conditions]
