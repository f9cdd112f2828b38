"""Image sources of a run: datasets with their preparation and conditions."""

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
    check_all_imagenet_classes,
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
from beaufort.data.selections import selections
from beaufort.evaluation.options import RunOptions
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import frames_shift_name
from beaufort.suites.published_shifts import PublishedShift
from beaufort.suites.streams import Schedule, Stream


@dataclass(frozen=True)
class ImageSource:
    """The images of one dataset with their preparation and the seed, shared by cells."""

    dataset: Dataset
    count: int
    """Number of images of the dataset that are used, from the first on."""
    prepare: tuple[Step, ...]
    scale: str
    seed: int
    suite: Suite | None = None
    """Suite of the conditions; None for a list of conditions."""
    label_sets: LabelSets | None = None
    """Several valid labels per image; None if there is one."""
    stored: bool = False
    """Whether the images are stored with their corruptions, as in CIFAR-10-C."""
    frames: int = 1
    """Number of frames stacked in each image of a stored sequence."""
    least_side: int = 0
    """Minimum height and width of a prepared image."""
    schedule: Schedule | None = None
    """Order of a stream, whose positions are the images of the dataset; None outside of a stream."""
    base: ImageSource | None = None
    """The images of a stream in the order of their dataset."""

    def streamed(self, stream: Stream) -> ImageSource:
        """Return the images in the order of a stream, with ids that have their position and condition."""
        if self.label_sets is not None:
            raise OptionError("streams cannot be used with label sets; pass images with one label each")
        whole = self.dataset
        schedule = stream.schedule(whole.labels[: self.count])
        dataset = replace(
            whole.select(schedule.images),
            ids=schedule.ids(whole.ids),
            original=whole.original or whole,
            shuffle_seed=whole.shuffle_seed,
            is_balanced=whole.is_balanced,
        )
        return replace(self, dataset=dataset, count=len(dataset), schedule=schedule, base=self)

    @property
    def facts(self) -> dict[str, Any]:
        """Facts of the dataset; computes its digest."""
        digest = self.dataset.labels_digest() if self.stored else self.dataset.digest()
        return {"name": self.dataset.name, "digest": digest, **self.order}

    @property
    def order(self) -> dict[str, Any]:
        """Facts of the order of the images; empty for that of the dataset."""
        if self.dataset.shuffle_seed is None:
            return {}
        return {"spread" if self.dataset.is_balanced else "order": self.dataset.shuffle_seed}

    def scoring_facts(self, space: LabelSpace) -> dict[str, Any]:
        """Return the facts of the labels; empty if a label is the index of its output."""
        facts = space.facts()
        # "truths" is the earlier name of label sets, which is part of fingerprints.
        return facts if self.label_sets is None else {**facts, "truths": self.label_sets.digest}

    def labels(self, space: LabelSpace) -> NDArray[np.int64]:
        """Return the valid label, or labels, of each image, as `correct` takes them."""
        dataset = self.dataset
        return dataset.labels if self.label_sets is None else self.label_sets.labels(dataset.ids, space)

    @property
    def steps(self) -> list[str]:
        """Preparation as text."""
        return [*([] if self.gray else ["rgb"]), *map(str, self.prepare)]

    @property
    def gray(self) -> bool:
        """Whether gray images stay gray, as those of digits; gray photos become RGB, as in published sets."""
        return self.scale == "mnist"

    @cached_property
    def images(self) -> PreparedImages:
        """Prepared images by index."""
        return PreparedImages(self.dataset, self.prepare, self.gray, self.least_side)

    @cached_property
    def should_use_decoders(self) -> bool:
        """Whether processes should decode the images for a device; determined from a few images."""
        return should_use_decoders(self.images, self.count)

    @cached_property
    def first_image(self) -> tuple[int, Bytes]:
        """Index of the first readable image, and the prepared image; an error if there is none."""
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
        """Return the height and width of an image before its preparation."""
        if place not in self._sizes:
            pixels = self.dataset[place].image
            self._sizes[place] = pixels.shape[0], pixels.shape[1]
        return self._sizes[place]

    @cached_property
    def _sizes(self) -> dict[int, tuple[int, int]]:
        return {}

    def read(self, places: range) -> Iterator[Bytes | Problem]:
        """Yield prepared images; the one decoded by planning is not decoded again."""
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
    """Return the error for data without a readable image, with the first problem."""
    why = f"; the first is {problems[0].id}: {problems[0].message}" if problems else ""
    return ImageFileError(f"cannot read any image of {name}{why}")


@dataclass(frozen=True)
class _Finder:
    """Opens datasets with the options of a run."""

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
        """Return the dataset in the order of evaluation, and the number of images to evaluate."""
        limit, first = self.limit, self.options.first
        if limit is not None and first is not None:
            raise OptionError("limit and first cannot be used together")
        wanted = first if limit is None else limit
        count = len(dataset) if wanted is None else min(wanted, len(dataset))
        if count < 1:
            raise OptionError(f"{dataset.name} has no images")
        if self.options.precision is not None and dataset.shuffle_seed is None:
            return dataset.shuffled(self.seed), count
        if limit is not None and dataset.shuffle_seed is None and count < len(dataset):
            dataset = dataset.balanced(self.seed)
        return dataset, count


Sources = list[tuple[ImageSource, list[Condition]]]
"""Image sources with their conditions; each condition of stored images has its own source."""


def find_sources(
    suite: Suite | Sequence[Condition], data: Data, limit: int | None, seed: int, options: RunOptions
) -> Sources:
    """Return the image sources of a suite or of conditions."""
    finder = _Finder(limit, seed, options)
    if not isinstance(suite, Suite):
        dataset, count = finder.limited(finder.open(_one(data, None)))
        least = _least_side(suite)
        source = ImageSource(dataset, count, (), "auto", seed, None, finder.label_sets, least_side=least)
        return list(_with_streams(source, list(suite), options))
    if not suite.parts:
        return list(_sources_of(suite, _one(data, suite), options.clean, finder))
    if options.clean is not None:
        raise OptionError("clean requires a suite of one dataset; pass the data of each part as NAME=PATH")
    return [
        one
        for part, given in _by_part(suite, data).items()
        for one in _sources_of(
            suite.part(part), given, None, finder, name=part, complete=part in _compared_on_imagenet(suite)
        )
    ]


def _compared_on_imagenet(suite: Suite) -> set[str]:
    """The parts that are compared with a counterpart on all classes of ImageNet, and these counterparts."""
    labels = {part.name: part.labels for part in suite.parts}
    pairs = [(part.name, part.counterpart) for part in suite.parts if part.counterpart is not None]
    return {name for pair in pairs if {labels[one] for one in pair} == {"imagenet-1k"} for name in pair}


def _one(data: Data, suite: Suite | None) -> DataSource:
    if not isinstance(data, Mapping):
        return data
    named = set(data) - ({suite.name, suite.dataset} if suite else set())
    if len(data) != 1 or named:
        hint = f", such as {suite.dataset}=PATH or PATH" if suite else ""
        raise OptionError(f"data must be one dataset{hint}, got {', '.join(data) or 'an empty mapping'}")
    return next(iter(data.values()))


def _by_part(suite: Suite, data: Data) -> dict[str, DataSource]:
    """Return the data of each part; datasets of the catalog need not be given."""
    from beaufort._core.catalog import entries

    names = [part.name for part in suite.parts]
    if not isinstance(data, Mapping) and len(names) == 1:
        return {names[0]: data}
    if not isinstance(data, Mapping):
        raise OptionError(
            f"{suite} has {len(names)} datasets, {', '.join(names)}; pass each as NAME=PATH, such as "
            f"{names[0]}=PATH"
        )
    known = {*names, *(part.dataset for part in suite.parts)}
    if other := [name for name in data if name not in known]:
        raise OptionError(f"unknown dataset {other[0]!r} of {suite}; available: {', '.join(names)}")
    found: dict[str, DataSource] = {}
    for part in suite.parts:
        given = data.get(part.name, data.get(part.dataset))
        if given is None and part.dataset in entries:
            given = part.dataset
        if given is None:
            missing = [p.name for p in suite.parts if p.name not in data and p.dataset not in data]
            raise OptionError(f"{suite} requires data for {', '.join(missing)}; pass {missing[0]}=PATH")
        found[part.name] = given
    return found


def _sources_of(
    suite: Suite,
    data: DataSource,
    clean: DataSource | None,
    finder: _Finder,
    *,
    name: str | None = None,
    complete: bool = False,
) -> Iterator[tuple[ImageSource, list[Condition]]]:
    spec = parse_spec(str(data)) if isinstance(data, str | os.PathLike) else None
    strict = finder.options.strict
    stored = stored_set(spec, strict=strict) if spec is not None else None
    published = _published_shifts(suite)
    if stored is not None and suite.streamed:
        raise OptionError(
            f"streams corrupt clean images themselves; pass clean images instead of {stored.location}"
        )
    if stored is not None and (suite.corruptions or published) and not stored.has_sequences:
        yield from _stored_sources(suite, stored, clean, finder, name)
        return
    if stored is not None and suite.sequences and stored.has_sequences:
        yield from _stored_sequences(suite, stored, clean, finder, name)
        return
    if published:
        kind = published[0].suite
        raise OptionError(f"{suite} requires the published images; pass {kind}:FOLDER")
    if clean is not None:
        raise OptionError(
            "clean requires stored images such as cifar10-c:FOLDER or cifar10-p:FOLDER; other data are clean "
            "images already"
        )
    if spec is not None and suite.corruptions and is_one_condition(spec):
        whole = spec.text.rpartition("#")[0]
        raise OptionError(
            f"{spec.text} is one condition of a corrupted set, which {suite.name} would corrupt again; pass "
            f"clean images, or all stored images as {whole}"
        )
    dataset = finder.open(data if spec is None else spec)
    if complete:
        check_all_imagenet_classes(dataset)
    if suite.classes is not None:
        dataset = select_classes(dataset, label_maps[suite.classes])
    if suite.held_out is not None:
        dataset = dataset.select(protocols[suite.held_out].split(dataset).test)
    if suite.images is not None:
        dataset = selections[suite.images].select(dataset)
    dataset = dataset if name is None else replace(dataset, name=name)
    dataset, count = finder.limited(dataset)
    sets = dataset.label_sets if finder.label_sets is None else finder.label_sets
    by_steps: dict[tuple[Step, ...], list[Condition]] = {}
    for condition in suite.conditions(dataset.name):
        by_steps.setdefault(suite.steps(condition.corruption), []).append(condition)
    for steps, conditions in by_steps.items():
        least = _least_side(conditions)
        source = ImageSource(dataset, count, steps, suite.scale, finder.seed, suite, sets, least_side=least)
        yield from _with_streams(source, conditions, finder.options)


def _with_streams(
    source: ImageSource, conditions: Sequence[Condition], options: RunOptions
) -> Iterator[tuple[ImageSource, list[Condition]]]:
    """Yield the source with its conditions; each stream has a source of its own."""
    streams = {one: shift for one in conditions if isinstance(shift := one.shift, Stream)}
    if others := [one for one in conditions if one not in streams]:
        yield source, others
    if streams and options.precision is not None:
        raise OptionError("precision cannot be used with streams, which fix the order of images")
    if streams and options.batch_size is not None and not options.allow_batch_dependence:
        raise OptionError("batch_size cannot be used with streams; write batch=N in the stream")
    for condition, stream in streams.items():
        yield source.streamed(stream), [condition]


def _published_shifts(suite: Suite) -> list[PublishedShift]:
    """Return the shifts of a suite that exist as published images only."""
    found = (Condition.parse(f"x/{text}").shift for text in suite.shifts)
    return [shift for shift in found if isinstance(shift, PublishedShift)]


def _least_side(conditions: Sequence[Condition]) -> int:
    return max((condition.least_side for condition in conditions), default=0)


def _stored_sources(
    suite: Suite, stored: StoredSet, clean: DataSource | None, finder: _Finder, name: str | None
) -> Iterator[tuple[ImageSource, list[Condition]]]:
    """Yield the stored images of every condition, made from the same clean images."""
    if len(_published_shifts(suite)) < len(suite.shifts):
        raise OptionError(
            f"{suite} has shifts that require clean images; pass these instead of stored images"
        )
    first = finder.open(clean) if clean is not None else stored.clean()
    if first is None and suite.clean_in_mean:
        raise OptionError(
            f"{suite.name} includes the clean images in its mean, and {stored.location} has none; pass them "
            "as --config clean=PATH"
        )
    conditions = [one for one in suite.conditions(name or stored.name) if not one.clean or first is not None]
    chosen = None if suite.images is None else selections[suite.images]
    every = ((str(one.done) or "clean", _open_one(stored, first, one)) for one in conditions)
    sets = ((done, one if chosen is None else chosen.select(one)) for done, one in every)
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
    """Yield the stored frames of every sequence, made from the same clean images."""
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
    if isinstance(shift := condition.shift, PublishedShift):
        return stored.open(shift.corruption, shift.severity)
    return stored.open(condition.corruption, condition.severity)
