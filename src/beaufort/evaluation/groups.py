"""From a suite and data to what is shown: each data set, made ready, with its conditions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from beaufort._core.errors import OptionError
from beaufort.corruptions.sequences import sequences
from beaufort.data import (
    Dataset,
    Step,
    StoredSequences,
    StoredSet,
    check_same_images,
    is_one_condition,
    select_classes,
    stored_sequences,
    stored_set,
)
from beaufort.data.labels import LabelSets, label_maps
from beaufort.data.protocols import protocols
from beaufort.evaluation.arguments import Data, DataSource, find_dataset
from beaufort.evaluation.planning import Setup
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import kind_of_frames

Group = tuple[Setup, Sequence[Condition]]


@dataclass(frozen=True)
class Choice:
    """What is said about data beside what they are."""

    limit: int | None = None
    first: int | None = None
    seed: int = 0
    strict: bool = False
    shuffled: bool = False
    """Whether images come in a random order."""
    truths: LabelSets | None = None


def find_groups(
    suite: Suite | Sequence[Condition], data: Data, clean: DataSource | None, choice: Choice
) -> list[Group]:
    """Every data set with its conditions; stored pictures are a data set for each of them."""
    if not isinstance(suite, Suite):
        dataset, count = _limited(_opened(_one(data, None), choice), choice)
        setup = Setup(
            dataset, count, (), "auto", choice.seed, None, choice.truths, least_side=_least_side(suite)
        )
        return [(setup, list(suite))]
    if not suite.parts:
        return list(_groups_of(suite, _one(data, suite), clean, choice))
    if clean is not None:
        raise OptionError(
            "clean is for stored pictures of a suite of one data set; name data by part instead"
        )
    return [
        group
        for part, source in _by_part(suite, data).items()
        for group in _groups_of(suite.part(part), source, None, choice, name=part)
    ]


def _one(data: Data, suite: Suite | None) -> DataSource:
    if not isinstance(data, Mapping):
        return data
    named = set(data) - ({suite.name, suite.dataset} if suite else set())
    if len(data) != 1 or named:
        raise OptionError(
            f"data must be one data set{f', as {suite.dataset}=PATH or a path alone' if suite else ''}, got "
            f"{', '.join(data) or 'none'}"
        )
    return next(iter(data.values()))


def _by_part(suite: Suite, data: Data) -> dict[str, DataSource]:
    """The data of each part; a data set of the catalog need not be named."""
    from beaufort._core.catalog import entries

    names = [part.name for part in suite.parts]
    if not isinstance(data, Mapping) and len(names) == 1:
        return {names[0]: data}
    if not isinstance(data, Mapping):
        raise OptionError(
            f"{suite} has {len(names)} data sets, {', '.join(names)}; give each by its name, as "
            f"{names[0]}=PATH"
        )
    known = {*names, *(part.dataset for part in suite.parts)}
    if other := [name for name in data if name not in known]:
        raise OptionError(f"{other[0]!r} is not a data set of {suite}; it has {', '.join(names)}")
    found: dict[str, DataSource] = {}
    for part in suite.parts:
        source = data.get(part.name, data.get(part.dataset))
        if source is None and part.dataset in entries:
            source = part.dataset
        if source is None:
            lacking = [p.name for p in suite.parts if p.name not in data and p.dataset not in data]
            raise OptionError(f"{suite} needs data for {', '.join(lacking)}; give it as {lacking[0]}=PATH")
        found[part.name] = source
    return found


def _groups_of(
    suite: Suite, source: DataSource, clean: DataSource | None, choice: Choice, *, name: str | None = None
) -> Iterator[Group]:
    text = str(source) if isinstance(source, str | os.PathLike) else None
    stored = stored_set(text, strict=choice.strict) if text is not None and suite.corruptions else None
    if stored is not None:
        yield from _stored_groups(suite, stored, clean, choice, name)
        return
    films = stored_sequences(text, strict=choice.strict) if text is not None and suite.sequences else None
    if films is not None:
        yield from _stored_film_groups(suite, films, clean, choice, name)
        return
    if clean is not None:
        raise OptionError(
            "clean is for stored pictures, as cifar10-c:FOLDER or cifar10-p:FOLDER; other data are the clean "
            "images themselves"
        )
    if text is not None and suite.corruptions and is_one_condition(text):
        whole = text.rpartition("#")[0]
        raise OptionError(
            f"data must be clean images or all stored pictures of {suite.name}, got one condition of them, "
            f"{text}, which would be corrupted again; give {whole}"
        )
    dataset = _opened(source, choice)
    if suite.classes is not None:
        dataset = select_classes(dataset, label_maps[suite.classes])
    if suite.held_out is not None:
        dataset = dataset.at(protocols[suite.held_out].split(dataset).test)
    dataset = dataset if name is None else replace(dataset, name=name)
    dataset, count = _limited(dataset, choice)
    truths = dataset.label_sets if choice.truths is None else choice.truths
    by_steps: dict[tuple[Step, ...], list[Condition]] = {}
    for condition in suite.conditions(dataset.name):
        by_steps.setdefault(suite.steps(condition.corruption), []).append(condition)
    for steps, conditions in by_steps.items():
        setup = Setup(
            dataset, count, steps, suite.scale, choice.seed, suite, truths, least_side=_least_side(conditions)
        )
        yield setup, conditions


def _least_side(conditions: Sequence[Condition]) -> int:
    return max((condition.least_side for condition in conditions), default=0)


def _stored_groups(
    suite: Suite, stored: StoredSet, clean: DataSource | None, choice: Choice, name: str | None
) -> Iterator[Group]:
    """The stored pictures of every condition, on the same images."""
    if suite.shifts:
        raise OptionError(f"{suite} has shifts that are made from clean images; stored pictures have none")
    first = _opened(clean, choice) if clean is not None else stored.clean()
    if first is None and suite.clean_in_mean:
        raise OptionError(
            f"{suite.name} counts the clean images in its mean, and {stored.location} has none; give them as "
            "clean (--clean)"
        )
    conditions = [one for one in suite.conditions(name or stored.name) if not one.clean or first is not None]
    sets = ((str(one.done) or "clean", _open_one(stored, first, one)) for one in conditions)
    for condition, opened in zip(conditions, check_same_images(sets), strict=True):
        dataset, count = _limited(replace(opened, name=condition.dataset), choice)
        prepare = suite.prepare if condition.clean else ()
        setup = Setup(dataset, count, prepare, suite.scale, choice.seed, suite, choice.truths, stored=True)
        yield setup, [condition]


def _stored_film_groups(
    suite: Suite, films: StoredSequences, clean: DataSource | None, choice: Choice, name: str | None
) -> Iterator[Group]:
    """The stored strips of every sequence, on the same images."""
    first = None if clean is None or not suite.clean else _opened(clean, choice)
    lengths = {sequence: sequences[sequence][0].length(suite.scale) for sequence in suite.sequences}
    strips = ((one, films.open(one, frames, first)) for one, frames in lengths.items())
    sets = strips if first is None else chain([("clean", first)], strips)
    opened = iter(check_same_images(sets))
    conditions = suite.conditions(name or films.name)
    setup = partial(
        Setup, scale=suite.scale, seed=choice.seed, suite=suite, truths=choice.truths, stored=True
    )
    if first is not None:
        dataset, count = _limited(replace(next(opened), name=conditions[0].dataset), choice)
        yield setup(dataset, count, suite.prepare), conditions[:1]
    for sequence, frames in lengths.items():
        dataset, count = _limited(replace(next(opened), name=conditions[0].dataset), choice)
        some = [one for one in conditions if one.corruption == kind_of_frames(sequence)]
        yield setup(dataset, count, (), frames=frames), some


def _open_one(stored: StoredSet, clean: Dataset | None, condition: Condition) -> Dataset:
    if condition.corruption is None:
        assert clean is not None
        return clean
    return stored.open(condition.corruption, condition.severity)


def _opened(source: DataSource, choice: Choice) -> Dataset:
    return find_dataset(source, strict=choice.strict)


def _limited(dataset: Dataset, choice: Choice) -> tuple[Dataset, int]:
    """The data set in the order in which its images are shown, and how many of them are."""
    limit, first = choice.limit, choice.first
    if limit is not None and first is not None:
        raise OptionError(f"only one of limit and first can be given, got {limit} and {first}")
    wanted = first if limit is None else limit
    count = len(dataset) if wanted is None else min(wanted, len(dataset))
    if count < 1:
        raise OptionError(
            f"there is no image to evaluate on: {dataset.name} has {len(dataset)}, the limit is {wanted}"
        )
    if choice.shuffled and dataset.order is None:
        return dataset.shuffled(choice.seed), count
    if limit is not None and dataset.order is None and count < len(dataset):
        dataset = dataset.spread_out(choice.seed)
    return dataset, count
