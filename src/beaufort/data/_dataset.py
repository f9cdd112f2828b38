"""A data set: ids, labels and classes at hand, pictures one at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, ImageFileError, OptionError, UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_count
from beaufort.data._digest import Content, digest_of
from beaufort.data.labels import LabelSets

MOST_CLASSES = 1_000_000
"""Labels of this size and above are refused as a mistake."""

_AT_ONCE = 8
"""Pictures that a thread decodes in a row: few, so that all threads end together."""


@dataclass(frozen=True)
class Sample:
    """A picture with its id and its label."""

    id: str
    label: int
    image: Bytes
    """`(h, w, c)` at its stored size, with one channel or three."""


class Problem(NamedTuple):
    """Something of a data set that could not be read."""

    id: str
    message: str


class Pixels(Protocol):
    """The pictures of a data set, read by index."""

    def read(self, index: int) -> Bytes:
        """One picture `(h, w, c)`; an `ImageFileError` if it cannot be read."""

    def contents(self, count: int) -> Iterator[Content]:
        """The stored bytes of the first `count` pictures, for the digest."""


def read_several(pixels: Pixels, indices: Sequence[int]) -> Iterator[Bytes]:
    """Some pictures, each when it is asked for; an `ImageFileError` at the first that cannot be read.

    Pixels that take less time together have a method `read_many` that does this.
    """
    together: Callable[[Sequence[int]], Iterator[Bytes]] | None = getattr(pixels, "read_many", None)
    return map(pixels.read, indices) if together is None else together(indices)


def best_chunk_size(pixels: Pixels) -> int:
    """How many pictures one thread best reads in a row; where nothing is decoded, `chunk_size` says more."""
    chunk_size: int = getattr(pixels, "chunk_size", _AT_ONCE)
    return chunk_size


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labeled pictures in a fixed order; `dataset[i]` decodes that picture and no other."""

    name: str
    classes: tuple[str, ...]
    """What each label is called; the number as text where nothing better is known."""
    ids: Sequence[str]
    """Unique; a path in the data set, or `split/index`. The same wherever the data set lies."""
    labels: NDArray[np.int64]
    pixels: Pixels
    problems: tuple[Problem, ...] = ()
    """Files that were found to be broken on opening; they are not among the samples."""
    ignored: tuple[Problem, ...] = ()
    """Files beside the pictures that are none, by their names."""
    strict: bool = False
    """Whether the first problem, or file that is left out, raises an error."""
    shuffle_seed: int | None = None
    """Seed of the shuffled order; None for the original order."""
    original: Dataset | None = None
    """The data set in its original order, if this one is shuffled."""
    by_name: bool = False
    """Whether labels are indices into the sorted class names, rather than numbers given by the source."""
    is_balanced: bool = False
    """Whether the shuffled order takes one image of each class in turn."""
    label_sets: LabelSets | None = None
    """Sets of classes of which any is right, where a sample has more than one label."""
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """What else is known about samples, by the name of a column and their id; an answer depends on none."""

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.labels):
            raise ImageFileError(f"{self.name} has {len(self.ids)} images and {len(self.labels)} labels")
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise ImageFileError(
                f"labels of {self.name} must be from 0 to {len(self.classes) - 1}, one for each class, got "
                f"{self.labels.min()} to {self.labels.max()}"
            )
        if self.strict and (found := sorted({*self.problems, *self.ignored})):
            raise strict_error(found[0])

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Sample:
        i = operator.index(index)
        if not -len(self) <= i < len(self):
            raise IndexError(f"index {index} is out of bounds for {self.name} with {len(self)} samples")
        i %= len(self)
        return Sample(self.ids[i], int(self.labels[i]), self.pixels.read(i))

    def first(self, count: int | None) -> Dataset:
        """The first `count` samples; all if it is None."""
        if count is None:
            return self
        count = validate_count("limit", count)
        return replace(self, ids=self.ids[:count], labels=self.labels[:count])

    def column(self, name: str) -> list[str]:
        """For each sample its value in a column, or what its class is called for `class`; '' for no value."""
        if name == "class" and name not in self.columns:
            return [self.classes[label] for label in self.labels]
        if name not in self.columns:
            raise UnknownNameError(
                unknown_message(f"column of {self.name}", name, {"class": (), **self.columns})
            )
        values = self.columns[name]
        return [values.get(id, "") for id in self.ids]

    def select(self, places: NDArray[np.int64]) -> Dataset:
        """The samples of some numbers, in that order, as a dataset of its own."""
        ids = [self.ids[place] for place in places.tolist()]
        pixels = _Chosen(self.pixels, places, len(self))
        chosen = replace(self, ids=ids, labels=self.labels[places], pixels=pixels)
        return replace(chosen, shuffle_seed=None, original=None, is_balanced=False)

    def relabeled(self, classes: Sequence[str], label_of: Mapping[str, int] | None = None) -> Dataset:
        """The samples whose class has a label among other classes, with that label.

        Args:
            classes: the other classes, in the order of their labels.
            label_of: the label of each class of this dataset that has one; by equal names if None.
        """
        wanted = label_of or {name: label for label, name in enumerate(classes)}
        labels = np.array([wanted.get(name, -1) for name in self.classes], np.int64)[self.labels]
        kept = np.flatnonzero(labels >= 0).astype(np.int64)
        return replace(self.select(kept), classes=tuple(classes), labels=labels[kept], by_name=True)

    def shuffled(self, seed: int) -> Dataset:
        """The same samples in a random order, so that the first few are a fair sample of all.

        Ids, pictures and the digest stay what they were; `order` tells the two apart.
        """
        places = np.random.default_rng([seed % 2**64, len(self)]).permutation(len(self))
        return self._ordered(places, seed)

    def balanced(self, seed: int) -> Dataset:
        """The same samples in an order that takes turns among the classes, so that the first few have all.

        In each turn a class gives one of its samples, in a random order seeded with `seed`, until it has none
        left; a turn goes through the classes in a random order, too.
        """
        rng = np.random.default_rng([seed % 2**64, len(self)])
        shuffled = rng.permutation(len(self))
        labels = self.labels[shuffled]
        by_class = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.diff(labels[by_class], prepend=-1))
        turn = np.empty(len(self), np.int64)
        turn[by_class] = np.arange(len(self)) - np.repeat(starts, np.diff([*starts, len(self)]))
        return self._ordered(shuffled[np.argsort(turn, kind="stable")], seed, balanced=True)

    def _ordered(self, places: NDArray[np.int64], seed: int, *, balanced: bool = False) -> Dataset:
        if self.shuffle_seed is not None:
            raise OptionError(f"{self.name} is already shuffled, with the seed {self.shuffle_seed}")
        return replace(self.select(places), shuffle_seed=seed, original=self, is_balanced=balanced)

    @property
    def _original(self) -> Dataset:
        return self if self.original is None else self.original

    def digest(self, *, fresh: bool = False) -> str:
        """A sha256 of all that can change an answer: classes, ids, labels and every stored byte.

        Where the data set lies, and in which container, does not matter. What a file holds is remembered
        by its size and times, so that the second call is quick; `fresh` reads everything again.
        """
        one = self._original
        return digest_of(one.classes, one.ids, one.labels, one.pixels.contents(len(one)), fresh=fresh)

    def labels_digest(self) -> str:
        """A sha256 of which samples there are and what they show, whatever their pictures look like."""
        one = self._original
        return digest_of(one.classes, one.ids, one.labels, ())

    def images_digest(self) -> str:
        """A sha256 of the pictures alone."""
        one = self._original
        return digest_of((), (), np.empty(0, np.int64), one.pixels.contents(len(one)))


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Some of the pictures, or all in another order."""

    pixels: Pixels
    places: NDArray[np.int64]
    count: int
    """Of all pictures."""

    def read(self, index: int) -> Bytes:
        return self.pixels.read(int(self.places[index]))

    @property
    def chunk_size(self) -> int:
        return best_chunk_size(self.pixels)

    def read_many(self, indices: Sequence[int]) -> Iterator[Bytes]:
        return read_several(self.pixels, self.places[indices].tolist())

    def contents(self, count: int) -> Iterator[Content]:
        every = list(self.pixels.contents(self.count))
        if len(every) == self.count:  # a file a picture
            yield from (every[place] for place in self.places[:count])
            return
        for index in range(count):
            yield Content(lambda index=index: [self.read(index).tobytes()])  # type: ignore[misc]


@dataclass(frozen=True)
class TransformedPixels:
    """Images of a dataset after a function."""

    pixels: Pixels
    function: Callable[[Bytes], Bytes]
    """From an image to an image; picklable."""
    note: str
    """What stands for the function in the digest."""

    def read(self, index: int) -> Bytes:
        return self.function(self.pixels.read(index))

    def contents(self, count: int) -> Iterator[Content]:
        yield Content(lambda: [f"{self.note}\n".encode()])
        yield from self.pixels.contents(count)


class DatasetIterator(Iterator[Sample | Problem]):
    """Samples in their order, with a `Problem` in the place of one that cannot be read."""

    def __init__(self, dataset: Dataset, start: int = 0, stop: int | None = None) -> None:
        self.dataset = dataset
        self.problems: list[Problem] = []
        """Those met so far."""
        self._indices = iter(range(*slice(start, stop).indices(len(dataset))))

    def __next__(self) -> Sample | Problem:
        index = next(self._indices)
        try:
            return self.dataset[index]
        except BeaufortError as error:
            problem = Problem(self.dataset.ids[index], str(error))
            if self.dataset.strict:
                raise strict_error(problem) from error
            self.problems.append(problem)
            return problem


def iterate(dataset: Dataset, start: int = 0, stop: int | None = None) -> DatasetIterator:
    """Go through a data set, or a slice of it, one picture in memory at a time."""
    return DatasetIterator(dataset, start, stop)


def numbered(labels: NDArray[np.int64], at_least: int = 0) -> tuple[str, ...]:
    """Names for classes that have none.

    >>> numbered(np.array([0, 2]))
    ('0', '1', '2')
    """
    highest = int(labels.max(initial=-1))
    if highest >= MOST_CLASSES:
        raise ImageFileError(f"labels must be below {MOST_CLASSES:,}, got {highest}")
    return tuple(map(str, range(max(highest + 1, at_least))))


def strict_error(problem: Problem) -> ImageFileError:
    """What a strict data set raises at its first problem."""
    return ImageFileError(f"{problem.id}: {problem.message}")
