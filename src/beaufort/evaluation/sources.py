"""The images of a run: each dataset, prepared as its suite says, with its conditions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, ImageFileError, OptionError
from beaufort.corruptions.sequences import sequences
from beaufort.data import (
    Dataset,
    PreparedImages,
    Problem,
    Step,
    StoredSet,
    check_same_images,
    is_one_condition,
    parse_spec,
    select_classes,
    should_use_decoders,
    stored_set,
)
from beaufort.data.labels import LabelSets, LabelSpace, label_maps
from beaufort.data.objects import Data, DataSource, as_dataset
from beaufort.data.protocols import protocols
from beaufort.evaluation.options import RunOptions
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import frames_shift_name


@dataclass(frozen=True)
class ImageSource:
    """The images of one dataset, how they are prepared, and the seed: what its cells have in common."""

    dataset: Dataset
    count: int
    """How many images of the dataset, from the first on."""
    prepare: tuple[Step, ...]
    scale: str
    seed: int
    suite: Suite | None = None
    """The suite that the conditions come from, if they come from one."""
    label_sets: LabelSets | None = None
    """The valid labels of each image, where that is not the dataset's label alone."""
    stored: bool = False
    """Whether the images were corrupted before they were stored, as those of CIFAR-10-C were."""
    frames: int = 1
    """How many versions of one image are stacked in a stored image: the frames of a stored sequence."""
    least_side: int = 0
    """Minimum number of pixels of both sides of a prepared image."""

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the dataset; its digest is computed."""
        digest = self.dataset.labels_digest() if self.stored else self.dataset.digest()
        return {"name": self.dataset.name, "digest": digest, **self.order}

    @property
    def order(self) -> dict[str, Any]:
        """The facts of the order of the images; none if it is the dataset's own."""
        if self.dataset.shuffle_seed is None:
            return {}
        return {"spread" if self.dataset.is_balanced else "order": self.dataset.shuffle_seed}

    def scoring_facts(self, space: LabelSpace) -> dict[str, Any]:
        """The facts of how predictions are scored; none where a label is the number of the right output."""
        facts = space.facts()
        return facts if self.label_sets is None else {**facts, "truths": self.label_sets.digest}

    def truth(self, space: LabelSpace) -> NDArray[np.int64]:
        """The valid label, or labels, of each image, as `correct` takes them."""
        dataset = self.dataset
        return dataset.labels if self.label_sets is None else self.label_sets.labels(dataset.ids, space)

    @property
    def steps(self) -> list[str]:
        """The preparation as text."""
        return [*([] if self.grey else ["rgb"]), *map(str, self.prepare)]

    @property
    def grey(self) -> bool:
        """Whether grey images stay grey: digits do; the published sets made color images of photos."""
        return self.scale == "mnist"

    @cached_property
    def images(self) -> PreparedImages:
        """The prepared images by their place."""
        return PreparedImages(self.dataset, self.prepare, self.grey, self.least_side)

    @cached_property
    def should_use_decoders(self) -> bool:
        """Whether processes should decode the images for a device; a few are tried once."""
        return should_use_decoders(self.images, self.count)

    @cached_property
    def first_image(self) -> tuple[int, Bytes]:
        """The first image that can be read, and its place; an error if none can."""
        problems = []
        for place in range(self.count):
            try:
                pixels = self.dataset[place].image
                self._sizes[place] = pixels.shape[0], pixels.shape[1]
                return place, self.images.prepare(pixels)
            except BeaufortError:
                problem = self.images(place)
                problems += [problem] if isinstance(problem, Problem) else []
        raise no_image(self.dataset.name, problems)

    def original_size(self, place: int) -> tuple[int, int]:
        """Height and width of an image before it is prepared."""
        if place not in self._sizes:
            pixels = self.dataset[place].image
            self._sizes[place] = pixels.shape[0], pixels.shape[1]
        return self._sizes[place]

    @cached_property
    def _sizes(self) -> dict[int, tuple[int, int]]:
        return {}

    def read(self, places: range) -> Iterator[Bytes | Problem]:
        """Some prepared images; the one that planning decoded already is not decoded again."""
        known = vars(self).get("first_image")
        if known is None or known[0] not in places:
            yield from self.images.read_many(places)
            return
        place, image = known
        for one in (range(places.start, place), None, range(place + 1, places.stop)):
            if one is None:
                yield image
            elif one:
                yield from self.images.read_many(one)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "first_image"}


def no_image(name: str, problems: Sequence[Problem]) -> ImageFileError:
    """The error for data of which no image can be read, with the first problem if there is one."""
    why = f"; the first is {problems[0].id}: {problems[0].message}" if problems else ""
    return ImageFileError(f"no image of {name} can be read{why}")


@dataclass(frozen=True)
class _Finder:
    """Opens data as the options say."""

    limit: int | None
    seed: int
    options: RunOptions

    @property
    def label_sets(self) -> LabelSets | None:
        found = self.options.label_sets
        return found if isinstance(found, LabelSets) else None

    def open(self, data: DataSource) -> Dataset:
        return as_dataset(data, strict=self.options.strict)

    def limited(self, dataset: Dataset) -> tuple[Dataset, int]:
        """The dataset in the order in which its images are evaluated, and how many of them are."""
        limit, first = self.limit, self.options.first
        if limit is not None and first is not None:
            raise OptionError(f"limit and first cannot be used together, got {limit} and {first}")
        wanted = first if limit is None else limit
        count = len(dataset) if wanted is None else min(wanted, len(dataset))
        if count < 1:
            raise OptionError(f"{dataset.name} has no image to evaluate on")
        if self.options.precision is not None and dataset.shuffle_seed is None:
            return dataset.shuffled(self.seed), count
        if limit is not None and dataset.shuffle_seed is None and count < len(dataset):
            dataset = dataset.balanced(self.seed)
        return dataset, count


Sources = list[tuple[ImageSource, list[Condition]]]
"""Every dataset with its conditions; stored images are a dataset for each condition."""


def find_sources(
    suite: Suite | Sequence[Condition], data: Data, limit: int | None, seed: int, options: RunOptions
) -> Sources:
    """Every dataset with its conditions."""
    finder = _Finder(limit, seed, options)
    if not isinstance(suite, Suite):
        dataset, count = finder.limited(finder.open(_one(data, None)))
        least = _least_side(suite)
        source = ImageSource(dataset, count, (), "auto", seed, None, finder.label_sets, least_side=least)
        return [(source, list(suite))]
    if not suite.parts:
        return list(_sources_of(suite, _one(data, suite), options.clean, finder))
    if options.clean is not None:
        raise OptionError("clean requires a suite of one dataset; pass the data of each part by its name")
    return [
        one
        for part, given in _by_part(suite, data).items()
        for one in _sources_of(suite.part(part), given, None, finder, name=part)
    ]


def _one(data: Data, suite: Suite | None) -> DataSource:
    if not isinstance(data, Mapping):
        return data
    named = set(data) - ({suite.name, suite.dataset} if suite else set())
    if len(data) != 1 or named:
        hint = f", as {suite.dataset}=PATH or a path alone" if suite else ""
        raise OptionError(f"data must be one dataset{hint}, got {', '.join(data) or 'an empty mapping'}")
    return next(iter(data.values()))


def _by_part(suite: Suite, data: Data) -> dict[str, DataSource]:
    """The data of each part; a dataset of the catalog need not be named."""
    from beaufort._core.catalog import entries

    names = [part.name for part in suite.parts]
    if not isinstance(data, Mapping) and len(names) == 1:
        return {names[0]: data}
    if not isinstance(data, Mapping):
        raise OptionError(
            f"{suite} has {len(names)} datasets, {', '.join(names)}; pass each by its name, as "
            f"{names[0]}=PATH"
        )
    known = {*names, *(part.dataset for part in suite.parts)}
    if other := [name for name in data if name not in known]:
        raise OptionError(f"{other[0]!r} is not a dataset of {suite}; it has {', '.join(names)}")
    found: dict[str, DataSource] = {}
    for part in suite.parts:
        given = data.get(part.name, data.get(part.dataset))
        if given is None and part.dataset in entries:
            given = part.dataset
        if given is None:
            lacking = [p.name for p in suite.parts if p.name not in data and p.dataset not in data]
            raise OptionError(f"{suite} needs data for {', '.join(lacking)}; pass it as {lacking[0]}=PATH")
        found[part.name] = given
    return found


def _sources_of(
    suite: Suite, data: DataSource, clean: DataSource | None, finder: _Finder, *, name: str | None = None
) -> Iterator[tuple[ImageSource, list[Condition]]]:
    spec = parse_spec(str(data)) if isinstance(data, str | os.PathLike) else None
    strict = finder.options.strict
    stored = stored_set(spec, strict=strict) if spec is not None else None
    if stored is not None and suite.corruptions and not stored.has_sequences:
        yield from _stored_sources(suite, stored, clean, finder, name)
        return
    if stored is not None and suite.sequences and stored.has_sequences:
        yield from _stored_sequences(suite, stored, clean, finder, name)
        return
    if clean is not None:
        raise OptionError(
            "clean requires stored images, as cifar10-c:FOLDER or cifar10-p:FOLDER; other data are the clean "
            "images themselves"
        )
    if spec is not None and suite.corruptions and is_one_condition(spec):
        whole = spec.text.rpartition("#")[0]
        raise OptionError(
            f"{spec.text} is one condition of a corrupted set, and {suite.name} would corrupt it again; pass "
            f"clean images, or all stored images: {whole}"
        )
    dataset = finder.open(data if spec is None else spec)
    if suite.classes is not None:
        dataset = select_classes(dataset, label_maps[suite.classes])
    if suite.held_out is not None:
        dataset = dataset.select(protocols[suite.held_out].split(dataset).test)
    dataset = dataset if name is None else replace(dataset, name=name)
    dataset, count = finder.limited(dataset)
    sets = dataset.label_sets if finder.label_sets is None else finder.label_sets
    by_steps: dict[tuple[Step, ...], list[Condition]] = {}
    for condition in suite.conditions(dataset.name):
        by_steps.setdefault(suite.steps(condition.corruption), []).append(condition)
    for steps, conditions in by_steps.items():
        least = _least_side(conditions)
        yield (
            ImageSource(dataset, count, steps, suite.scale, finder.seed, suite, sets, least_side=least),
            conditions,
        )


def _least_side(conditions: Sequence[Condition]) -> int:
    return max((condition.least_side for condition in conditions), default=0)


def _stored_sources(
    suite: Suite, stored: StoredSet, clean: DataSource | None, finder: _Finder, name: str | None
) -> Iterator[tuple[ImageSource, list[Condition]]]:
    """The stored images of every condition, on the same base images."""
    if suite.shifts:
        raise OptionError(f"{suite} has shifts that are made from clean images; stored images have none")
    first = finder.open(clean) if clean is not None else stored.clean()
    if first is None and suite.clean_in_mean:
        raise OptionError(
            f"{suite.name} counts the clean images in its mean, and {stored.location} has none; pass them as "
            "clean (--config clean=…)"
        )
    conditions = [one for one in suite.conditions(name or stored.name) if not one.clean or first is not None]
    sets = ((str(one.done) or "clean", _open_one(stored, first, one)) for one in conditions)
    for condition, opened in zip(conditions, check_same_images(sets), strict=True):
        dataset, count = finder.limited(replace(opened, name=condition.dataset))
        prepare = suite.prepare if condition.clean else ()
        source = ImageSource(
            dataset, count, prepare, suite.scale, finder.seed, suite, finder.label_sets, stored=True
        )
        yield source, [condition]


def _stored_sequences(
    suite: Suite, stored: StoredSet, clean: DataSource | None, finder: _Finder, name: str | None
) -> Iterator[tuple[ImageSource, list[Condition]]]:
    """The stored frames of every sequence, on the same base images."""
    first = None if clean is None or not suite.clean else finder.open(clean)
    lengths = {sequence: sequences[sequence][0].length(suite.scale) for sequence in suite.sequences}
    strips = ((one, stored.open_sequence(one, frames, first)) for one, frames in lengths.items())
    sets = strips if first is None else chain([("clean", first)], strips)
    opened = iter(check_same_images(sets))
    conditions = suite.conditions(name or stored.name)
    source = partial(
        ImageSource,
        scale=suite.scale,
        seed=finder.seed,
        suite=suite,
        label_sets=finder.label_sets,
        stored=True,
    )
    if first is not None:
        dataset, count = finder.limited(replace(next(opened), name=conditions[0].dataset))
        yield source(dataset, count, suite.prepare), list(conditions[:1])
    for sequence, frames in lengths.items():
        dataset, count = finder.limited(replace(next(opened), name=conditions[0].dataset))
        some = [one for one in conditions if one.corruption == frames_shift_name(sequence)]
        yield source(dataset, count, (), frames=frames), some


def _open_one(stored: StoredSet, clean: Dataset | None, condition: Condition) -> Dataset:
    if condition.corruption is None:
        assert clean is not None
        return clean
    return stored.open(condition.corruption, condition.severity)
