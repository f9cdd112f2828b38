"""Datasets: ids, labels and classes in memory, images decoded on access."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, ImageFileError, OptionError
from beaufort._core.validation import validate_choice, validate_count
from beaufort.data._digest import Content, digest_of
from beaufort.data.labels import LabelSets

MAX_CLASSES = 1_000_000
"""Labels must be below this number."""

_CHUNK_SIZE = 8
"""Number of images that a thread decodes in a row; small, so that all threads finish together."""


@dataclass(frozen=True)
class Sample:
    """An image with its id and label."""

    id: str
    label: int
    image: Bytes
    """Shape `(h, w, c)` at the stored size, with one or three channels."""


class Problem(NamedTuple):
    """A part of a dataset that cannot be read."""

    id: str
    message: str


class Pixels(Protocol):
    """The images of a dataset, read by index.

    Two members are optional: `read_many(indices)`, for images that are faster to read together, and
    `chunk_size`, the number of images that a thread should read in a row.
    """

    def read(self, index: int) -> Bytes:
        """Return an image `(h, w, c)`; raise an `ImageFileError` if it cannot be read."""

    def contents(self, count: int) -> Iterator[Content]:
        """Return the stored bytes of the first `count` images, for the digest."""


def read_several(pixels: Pixels, indices: Sequence[int]) -> Iterator[Bytes]:
    """Yield images; raise an `ImageFileError` at the first that cannot be read."""
    together: Callable[[Sequence[int]], Iterator[Bytes]] | None = getattr(pixels, "read_many", None)
    return map(pixels.read, indices) if together is None else together(indices)


def best_chunk_size(pixels: Pixels) -> int:
    """Return the number of images that a thread should read in a row."""
    chunk_size: int = getattr(pixels, "chunk_size", _CHUNK_SIZE)
    return chunk_size


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labeled images in a fixed order; `dataset[i]` decodes one image."""

    name: str
    classes: tuple[str, ...]
    """Name of each label; its number as text if no name is known."""
    ids: Sequence[str]
    """Unique; a relative path, or `split/index`. They do not depend on the location of the dataset."""
    labels: NDArray[np.int64]
    pixels: Pixels
    problems: tuple[Problem, ...] = ()
    """Unreadable files found on opening; they are not among the samples."""
    ignored: tuple[Problem, ...] = ()
    """Files that are not images, judged by their names."""
    strict: bool = False
    """Whether the first problem or ignored file raises an error."""
    shuffle_seed: int | None = None
    """Seed of the shuffled order; None for the original order."""
    original: Dataset | None = None
    """The dataset in its original order, if this one is shuffled."""
    notes: tuple[str, ...] = ()
    """Unusual facts that a user should know, such as an unexpected number of images."""
    by_name: bool = False
    """Whether labels are indices into the sorted class names, rather than numbers given by the source."""
    is_balanced: bool = False
    """Whether the shuffled order takes one image of each class in turn."""
    label_sets: LabelSets | None = None
    """Label sets, if samples have several valid labels."""
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Further metadata by column name and id; it does not affect predictions."""

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.labels):
            raise ImageFileError(f"{self.name} has {len(self.ids)} images and {len(self.labels)} labels")
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise ImageFileError(
                f"labels of {self.name} must be from 0 to {len(self.classes) - 1}, got {self.labels.min()} "
                f"to {self.labels.max()}"
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
        """Return the first `count` samples; all if it is None."""
        if count is None:
            return self
        count = validate_count("limit", count)
        return replace(self, ids=self.ids[:count], labels=self.labels[:count])

    def column(self, name: str) -> list[str]:
        """Return the value of each sample in a column, '' if it has none; `class` is the class name."""
        if name == "class" and name not in self.columns:
            return [self.classes[label] for label in self.labels]
        values = self.columns[validate_choice(f"column of {self.name}", name, ["class", *self.columns])]
        return [values.get(id, "") for id in self.ids]

    def select(self, indices: NDArray[np.int64]) -> Dataset:
        """Return the samples with these indices, in that order, as a dataset."""
        ids = [self.ids[index] for index in indices.tolist()]
        pixels = _Chosen(self.pixels, indices, len(self))
        chosen = replace(self, ids=ids, labels=self.labels[indices], pixels=pixels)
        return replace(chosen, shuffle_seed=None, original=None, is_balanced=False)

    def relabeled(self, classes: Sequence[str], label_of: Mapping[str, int] | None = None) -> Dataset:
        """Return the samples whose class has a label among other classes, with that label.

        Args:
            classes: the other classes, in the order of their labels.
            label_of: label by class name; by default, the class with the same name.
        """
        wanted = label_of or {name: label for label, name in enumerate(classes)}
        labels = np.array([wanted.get(name, -1) for name in self.classes], np.int64)[self.labels]
        kept = np.flatnonzero(labels >= 0).astype(np.int64)
        return replace(self.select(kept), classes=tuple(classes), labels=labels[kept], by_name=True)

    def shuffled(self, seed: int) -> Dataset:
        """Return the samples in a random order, so that the first few are a random sample of all.

        Ids, images and the digest do not change.
        """
        places = np.random.default_rng([seed % 2**64, len(self)]).permutation(len(self))
        return self._ordered(places, seed)

    def balanced(self, seed: int) -> Dataset:
        """Return the samples in a random order with balanced classes, so that the first few have all classes.

        Each round takes one sample of every class that has samples left, in a random order.
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
        """Return a sha256 of all that can change a prediction: classes, ids, labels and every stored byte.

        It does not depend on the location or the container. Hashes of files are cached by size and times;
        `fresh` reads all files again.
        """
        one = self._original
        return digest_of(one.classes, one.ids, one.labels, one.pixels.contents(len(one)), fresh=fresh)

    def labels_digest(self) -> str:
        """Return a sha256 of the classes, ids and labels."""
        one = self._original
        return digest_of(one.classes, one.ids, one.labels, ())

    def images_digest(self) -> str:
        """Return a sha256 of the images alone."""
        one = self._original
        return digest_of((), (), np.empty(0, np.int64), one.pixels.contents(len(one)))


@dataclass(frozen=True, eq=False)
class _Chosen:
    """A selection of images, in any order."""

    pixels: Pixels
    places: NDArray[np.int64]
    count: int
    """Number of images before the selection."""

    def read(self, index: int) -> Bytes:
        return self.pixels.read(int(self.places[index]))

    @property
    def chunk_size(self) -> int:
        return best_chunk_size(self.pixels)

    def read_many(self, indices: Sequence[int]) -> Iterator[Bytes]:
        return read_several(self.pixels, self.places[indices].tolist())

    def contents(self, count: int) -> Iterator[Content]:
        every = list(self.pixels.contents(self.count))
        if len(every) == self.count:  # one file per image
            yield from (every[place] for place in self.places[:count])
            return
        for index in range(count):
            yield Content(lambda index=index: [self.read(index).tobytes()])  # type: ignore[misc]


@dataclass(frozen=True)
class TransformedPixels:
    """Images transformed by a function."""

    pixels: Pixels
    function: Callable[[Bytes], Bytes]
    """Takes and returns an image; must be picklable."""
    note: str
    """Stands for the function in the digest."""

    def read(self, index: int) -> Bytes:
        return self.function(self.pixels.read(index))

    def contents(self, count: int) -> Iterator[Content]:
        yield Content(lambda: [f"{self.note}\n".encode()])
        yield from self.pixels.contents(count)


class DatasetIterator(Iterator[Sample | Problem]):
    """Samples in order, with a `Problem` in place of each that cannot be read."""

    def __init__(self, dataset: Dataset, start: int = 0, stop: int | None = None) -> None:
        self.dataset = dataset
        self.problems: list[Problem] = []
        """Problems found so far."""
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
    """Iterate over a dataset, or a slice of it, with one image in memory at a time."""
    return DatasetIterator(dataset, start, stop)


def numbered(labels: NDArray[np.int64], at_least: int = 0) -> tuple[str, ...]:
    """Return numbers as names of classes.

    >>> numbered(np.array([0, 2]))
    ('0', '1', '2')
    """
    highest = int(labels.max(initial=-1))
    if highest >= MAX_CLASSES:
        raise ImageFileError(f"labels must be below {MAX_CLASSES:,}, got {highest}")
    return tuple(map(str, range(max(highest + 1, at_least))))


def strict_error(problem: Problem) -> ImageFileError:
    """Return the error that a strict dataset raises at its first problem."""
    return ImageFileError(f"{problem.id}: {problem.message}")
