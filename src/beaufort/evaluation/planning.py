"""Which cells there are, and what is missing of each."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError, OptionError
from beaufort.corruptions import SCALES
from beaufort.data import Dataset, PreparedImages, Problem, Sample, Step, worth_decoders
from beaufort.data.labels import DatasetLabels, Grouping, LabelSets, LabelSpace, ModelOutputs, find_space
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.models import ModelSpec
from beaufort.store import Cell, Listing, Store, StoreError
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition
from beaufort.suites.shifts import Demanding

Range = tuple[int, int]
Labels = str | Path | Grouping | LabelSpace | None
"""How labels and outputs come together, as `find_space` takes it."""
Facts = dict[str, Any]
T = TypeVar("T")

_READERS = 16
"""Cells of a store that are looked at side by side: one that is far away answers slowly."""


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
    """What all cells of a run on one data set share: the images, how they are prepared, the seed."""

    dataset: Dataset
    count: int
    """How many images of the data set, from the first on."""
    prepare: tuple[Step, ...]
    scale: str
    seed: int
    suite: Suite | None = None
    """The suite that the conditions come from, if they come from one."""
    truths: LabelSets | None = None
    """The labels that are right for each image, where that is not the data set's alone."""
    stored: bool = False
    """Whether the pictures were corrupted before they were stored, as those of CIFAR-10-C were."""
    frames: int = 1
    """How many versions of one image a picture has, below each other: the frames of a stored sequence."""
    least_side: int = 0
    """Pixels that both sides of a picture must have at least, once it is made ready."""

    @property
    def data(self) -> dict[str, Any]:
        """The facts of the data set."""
        digest = self.dataset.labels_digest() if self.stored else self.dataset.digest()
        return {"name": self.dataset.name, "digest": digest, **self.order}

    @property
    def order(self) -> dict[str, Any]:
        """The facts of the order of the images; none if it is the data set's own."""
        if self.dataset.order is None:
            return {}
        return {"spread" if self.dataset.spread else "order": self.dataset.order}

    def labels(self, space: LabelSpace) -> dict[str, Any]:
        """The facts of how answers are scored; none where a label is the number of the one right output."""
        facts = space.facts()
        return facts if self.truths is None else {**facts, "truths": self.truths.digest}

    def truth(self, space: LabelSpace) -> NDArray[np.int64]:
        """The right label, or labels, of each image, as `beaufort.store.correct` takes them."""
        dataset = self.dataset
        return dataset.labels if self.truths is None else self.truths.labels(dataset.ids, space)

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
    def pictures(self) -> PreparedImages:
        """The pictures of the data set, made ready."""
        return PreparedImages(self.dataset, self.prepare, self.grey, self.least_side)

    @cached_property
    def worth_decoders(self) -> bool:
        """Whether processes should decode the pictures for a device; they are tried once."""
        return worth_decoders(self.pictures, self.count)

    def first_image(self) -> Bytes:
        """The first picture that can be read, made ready; an error if none can."""
        problems = []
        for picture in map(self.pictures, range(self.count)):
            if not isinstance(picture, Problem):
                return picture
            problems.append(picture)
        raise no_picture(self.dataset.name, problems)


def no_picture(name: str, problems: Sequence[Problem]) -> ImageFileError:
    """The error for data of which no picture can be read, with the first problem if there is one."""
    why = f"; the first is {problems[0].id}: {problems[0].message}" if problems else ""
    return ImageFileError(f"no picture of {name} can be read{why}")


@dataclass(frozen=True, eq=False)
class Work:
    """One cell and the ranges of images that have no answer in the store yet."""

    model: LazyModel
    condition: Condition
    facts: tuple[Facts, Once[Facts], Once[Facts]]
    """Of the model, the data and the condition; digests are computed when they are needed."""
    gaps: tuple[Range, ...]
    space: LabelSpace
    setup: Setup
    place: int = 0
    """Of the setup in the plan."""

    @cached_property
    def cell(self) -> Cell:
        """What the store knows it by."""
        model, data, condition = self.facts
        return Cell(model, data(), condition())

    @property
    def images(self) -> int:
        """Number of images without an answer."""
        return sum(stop - start for start, stop in self.gaps)


@dataclass(frozen=True)
class Plan:
    """All cells of a run, those that are done included."""

    setups: tuple[Setup, ...]
    """One for each data set, and for each condition of a stored one."""
    works: tuple[Work, ...]
    listing: Listing
    """The files of the store when the plan was made."""
    suite: Suite | None = None
    """The suite that was asked for; None for a list of conditions."""

    @property
    def setup(self) -> Setup:
        """The first setup; there is only one unless the suite has several data sets."""
        return self.setups[0]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Files of the data that were found to be broken on opening: what they hold is not shown."""
        return tuple(dict.fromkeys(one for setup in self.setups for one in setup.dataset.problems))

    @property
    def images(self) -> int:
        """Number of answers that are missing, over all cells."""
        return sum(work.images for work in self.works)

    @property
    def reused(self) -> int:
        """Number of cells for which the store has every answer."""
        return sum(not work.gaps for work in self.works)


def make_plan(
    models: Sequence[LazyModel],
    groups: Sequence[tuple[Setup, Sequence[Condition]]],
    store: Store,
    labels: Labels = None,
    convention: str | None = None,
    suite: Suite | None = None,
    *,
    keep_models: bool,
) -> Plan:
    """What there is to do; the store is looked at, and nothing is run.

    Only a model that does not say how many outputs it has is shown an image, to count them, unless the store
    has a record of them.

    Args:
        models: those to ask.
        groups: each data set with its conditions.
        store: where answers are kept.
        labels: as for `evaluate`; those of the suite if None.
        convention: likewise.
        suite: the suite that was asked for; None for a list of conditions.
        keep_models: whether models that had to be loaded stay in memory, all together.
    """
    names = [model.spec.name for model in models]
    if twice := {name for name in names if names.count(name) > 1}:
        raise OptionError(
            f"models must have different names, got {sorted(twice)[0]!r} twice; in Python, "
            "`as_model(…, name='other')` gives a name"
        )
    _count_outputs(models, groups[0][0], store, keep_models=keep_models)
    spaces = [
        {id(model): space_of(model.spec, setup, labels, convention) for model in models}
        for setup, _ in groups
    ]
    every = [condition for _, conditions in groups for condition in conditions]
    _check_models(models, every, keep_models=keep_models)
    abouts = [_model_facts(model) for model in models]
    _check_different(abouts)
    listing = store.listing()
    sides = [
        (Once(lambda setup=setup: setup.data), _condition_facts(conditions, setup))  # type: ignore[misc]
        for setup, conditions in groups
    ]
    works = []
    for model, about in zip(models, abouts, strict=True):
        for place, ((setup, conditions), (data, facts)) in enumerate(zip(groups, sides, strict=True)):
            space = spaces[place][id(model)]
            mine = _with_labels(data, setup.labels(space))
            for condition, fact in zip(conditions, facts, strict=True):
                whole = ((0, setup.count),)
                works.append(Work(model, condition, (about, mine, fact), whole, space, setup, place))
    if listing:  # where nothing is stored, nobody waits until all data are read for their digest
        works = _without_stored(works, store, listing)
    return Plan(tuple(setup for setup, _ in groups), tuple(works), listing, suite)


def _count_outputs(models: Sequence[LazyModel], setup: Setup, store: Store, *, keep_models: bool) -> None:
    """Know the number of outputs of every model: a service need not be there if all its answers are."""

    def image() -> Bytes:
        picture = setup.first_image()
        return picture[: len(picture) // setup.frames]

    for model in models:
        if model.spec.classes is None:
            model.count_outputs(_recorded_outputs(model.spec, store), image)
            if not keep_models:
                model.let_go()


def _recorded_outputs(spec: ModelSpec, store: Store) -> int | None:
    """How many outputs a model had in an earlier run of the store, if that is the same model."""
    if not spec.reusable:
        return None
    with suppress(StoreError):  # a record that cannot be read is told by those who need it
        for record in store.runs():
            names = {(one.get("name"), one.get("digest")) for one in record.get("models", ())}
            same = (spec.name, spec.digest) in names
            for notes in record.get("shown", [record]) if same else ():
                if (outputs := notes.get("outputs")) is not None:
                    return int(outputs)
    return None


def _without_stored(works: Sequence[Work], store: Store, listing: Listing) -> list[Work]:
    """The works with the gaps that the store leaves; stored files are read, several at a time."""

    def gaps(work: Work) -> tuple[Range, ...]:
        return tuple(store.missing(work.cell, work.setup.count, listing))

    with ThreadPoolExecutor(_READERS, thread_name_prefix="beaufort planning") as pool:
        return [replace(work, gaps=left) for work, left in zip(works, pool.map(gaps, works), strict=True)]


def _check_models(models: Sequence[LazyModel], conditions: Sequence[Condition], *, keep_models: bool) -> None:
    """Let shifts that are made for a model look at every one of them, before hours are spent on others."""
    for model in models:
        for condition in conditions:
            shift = condition.shift
            if isinstance(shift, Demanding):
                shift.check(model.load())
        if not keep_models:
            model.let_go()


def _with_labels(data: Once[Facts], labels: Facts) -> Once[Facts]:
    """The facts of the data with those of how answers are scored, if there are any."""
    return Once(lambda: {**data(), "labels": labels}) if labels else data


def space_of(
    spec: ModelSpec, setup: Setup, labels: Labels = None, convention: str | None = None
) -> LabelSpace:
    """The label space in which a model answers for a data set."""
    dataset, suite = setup.dataset, setup.suite
    used = np.unique(dataset.labels)
    if suite is not None:
        labels = suite.grouping if labels is None else labels
        convention = suite.convention if convention is None else convention
    return find_space(
        DatasetLabels(dataset.name, dataset.classes, used, dataset.by_name),
        ModelOutputs(
            spec.name,
            spec.classes,
            spec.class_names,
            spec.label_space,
            suite.label_space if suite else None,
        ),
        labels=labels,
        convention=convention,
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


def _condition_facts(conditions: Sequence[Condition], setup: Setup) -> list[Once[Facts]]:
    if setup.stored:
        digest = Once(setup.dataset.images_digest)
        return [
            Once(lambda condition=condition: _stored_facts(condition, setup, digest()))  # type: ignore[misc]
            for condition in conditions
        ]
    side, channels = None, 3
    if setup.count and any(not condition.clean for condition in conditions):
        first = setup.first_image()
        channels = first.shape[-1]
        side = None if setup.scale in SCALES else min(first.shape[:2])
    about: dict[str, Any] = {"scale": setup.scale, "seed": setup.seed, "side": side, "channels": channels}
    found = [{**condition.facts(**about), "prepare": setup.steps} for condition in conditions]
    return [Once(lambda facts=facts: facts) for facts in found]  # type: ignore[misc]


def _stored_facts(condition: Condition, setup: Setup, digest: str) -> Facts:
    """Of pictures that are a condition already: what they are, and nothing of how they were made."""
    made = {"corruption": condition.corruption, "stored": digest}
    strength: Facts = {} if condition.clean else {"severity": condition.severity}
    level = {} if condition.level is None else {"level": condition.level}
    return {**made, **strength, **level, "prepare": setup.steps}
