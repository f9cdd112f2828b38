"""Decoded images of a block, and batches for the models.

Batches start at the start of a block, also in a resumed run: predictions do not change if rounding depends on
the batch size.

A block is decoded once for all conditions and kept in memory up to `HELD` bytes. Images beyond that are
decoded again for each condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from threading import Lock, Semaphore
from typing import NamedTuple, cast
from weakref import proxy

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort.data import Decoders, Problem
from beaufort.evaluation.planning import Range
from beaufort.evaluation.sources import ImageSource
from beaufort.evaluation.tasks import BLOCK, TaskPart
from beaufort.suites.conditions import Condition

HELD = 1 << 30
"""Maximum bytes of decoded images that a block keeps in memory."""

_TURNS = Semaphore(6)
"""Threads that decode until the decoder processes have started; more would wait for each other."""

Shape = tuple[int, ...]
_Decoded = tuple[Shape, Bytes | None] | Problem


class _Group(NamedTuple):
    """Images of one shape that form a batch under each condition."""

    rows: tuple[int, ...]
    """Indices in the dataset."""
    shape: Shape
    """Shape of each image."""
    last: bool
    """Whether this is the last group of its span."""


@dataclass(frozen=True)
class Batch:
    """Images of one shape under one condition, ready for a model."""

    part: TaskPart
    block: ImageBlock
    rows: tuple[int, ...]
    """Indices in the dataset; empty if no image of the last group of a span can be read."""
    shape: Shape
    """Shape of each image."""
    last: bool
    """Whether this is the last batch of its span."""

    @property
    def condition(self) -> Condition:
        """The condition of the images."""
        return self.part.condition

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the images."""
        return self.block.ids(self.rows)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.rows) * math.prod(self.shape)


class ImageBlock:
    """Images that are decoded and prepared by the threads of a pool, in order."""

    def __init__(
        self, source: ImageSource, span: Range, pool: Executor, decoders: Decoders | None = None
    ) -> None:
        self.span = span
        self._source = source
        self._ids: dict[tuple[int, ...], tuple[str, ...]] = {}
        self._decoders = decoders
        self._room = HELD
        self._lock = Lock()
        self._groups: dict[Range, _Groups] = {}
        self._at_once = source.images.chunk_size
        """Number of images that a thread decodes in one task."""
        self._coming = [pool.submit(self._decode_some, range(*part)) for part in self.tasks(span)]

    def tasks(self, span: Range) -> Iterator[Range]:
        """Split a span into parts that are decoded together."""
        for start in range(*span, self._at_once):
            yield start, min(start + self._at_once, span[1])

    def shapes(self, span: Range) -> list[tuple[int, Shape]]:
        """Return the indices and shapes of the readable images of a span; waits for decoding."""
        both = zip(range(*span), self._found(range(*span)), strict=True)
        return [(place, one[0]) for place, one in both if not isinstance(one, Problem)]

    def image(self, place: int) -> Bytes:
        """Return a readable image `(h, w, c)`."""
        (image,) = self._images((place,))
        return image

    def images(self, rows: tuple[int, ...]) -> Bytes:
        """Return readable images of one shape, `(n, h, w, c)`."""
        some = self._images(rows)
        return np.concatenate(some).reshape(len(some), *some[0].shape)

    def ids(self, rows: tuple[int, ...]) -> tuple[str, ...]:
        """Return the ids of a group of images; cached for the next condition."""
        if rows not in self._ids:
            ids = self._source.dataset.ids
            some = ids[rows[0] : rows[-1] + 1] if are_neighbors(rows) else map(ids.__getitem__, rows)
            self._ids[rows] = tuple(some)
        return self._ids[rows]

    def held(self, rows: tuple[int, ...]) -> list[Bytes] | None:
        """Return readable images if all are in memory."""
        found = cast("list[tuple[Shape, Bytes | None]]", self._found(rows))
        some = [image for _, image in found if image is not None]
        return some if len(some) == len(rows) else None

    def unread(self, span: Range) -> list[int]:
        """Return the indices of a span whose image cannot be read."""
        return [place for place in self._problems if span[0] <= place < span[1]]

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of images that cannot be read."""
        yield from self._problems.values()

    @cached_property
    def _problems(self) -> dict[int, Problem]:
        """Problems by index, collected once when all images are decoded."""
        both = enumerate(self._found(range(*self.span)), self.span[0])
        return {place: problem for place, problem in both if isinstance(problem, Problem)}

    def groups(self, span: Range, size_for: Callable[[int], int]) -> _Groups:
        """Return the groups of images of a span; cached for the next condition.

        Args:
            span: range of images.
            size_for: batch size, by the bytes of an image.
        """
        if span not in self._groups:
            self._groups[span] = _Groups(self, span, size_for)
        return self._groups[span]

    def decoded_to(self, place: int) -> bool:
        """Return whether the images up to an index are decoded."""
        return all(coming.done() for coming in self._coming[: (place - self.span[0]) // self._at_once + 1])

    def _images(self, places: Sequence[int]) -> list[Bytes]:
        """Return readable images; decode those again that are not in memory."""
        found = cast("list[tuple[Shape, Bytes | None]]", self._found(places))
        both = zip(places, found, strict=True)
        return [self._again(place) if image is None else image for place, (_, image) in both]

    def _found(self, places: Sequence[int]) -> list[_Decoded]:
        """Return the results of decoding some images, in the order of the dataset; waits for them."""
        if not places:
            return []
        first, last = (place - self.span[0] for place in (places[0], places[-1]))
        begin = first // self._at_once
        tasks = self._coming[begin : last // self._at_once + 1]
        some = list(chain.from_iterable(task.result() for task in tasks))
        before = self.span[0] + begin * self._at_once
        if are_neighbors(places):
            return some[places[0] - before : places[-1] + 1 - before]
        return [some[place - before] for place in places]

    def _decode_some(self, places: range) -> list[_Decoded]:
        if self._decoders is None:
            return self._decode_here(places)
        found = self._decoders.decode(places)
        if found is None:
            with _TURNS:
                found = self._decoders.decode(
                    places
                )  # the processes may have started while this thread waited
                if found is None:
                    return self._decode_here(places)
        both = zip(places, found, strict=True)
        return [self._kept(self._source.images(place) if image is None else image) for place, image in both]

    def _decode_here(self, places: range) -> list[_Decoded]:
        return list(map(self._kept, self._source.read(places)))

    def _again(self, place: int) -> Bytes:
        image = self._source.images(place)
        if isinstance(image, Problem):
            raise ImageFileError(f"{image.id} cannot be read any more: {image.message}")
        return image

    def _kept(self, image: Bytes | Problem) -> _Decoded:
        if isinstance(image, Problem):
            return image
        with self._lock:
            held = image.nbytes <= self._room
            self._room -= image.nbytes if held else 0
        return image.shape, image if held else None


class _Groups:
    """The images of a span in groups of consecutive images of one shape; there is at least one group.

    Groups hold a weak reference to their block, so that its images, often a gigabyte, are freed with the last
    reference to the block and not by the garbage collector.
    """

    def __init__(self, block: ImageBlock, span: Range, size_for: Callable[[int], int]) -> None:
        self._block: ImageBlock = proxy(block)
        self._span = span
        self._found: list[_Group] = []
        self._coming = _split(self._block, span, size_for)

    def __getitem__(self, number: int) -> _Group:
        """Return a group; waits until its images are decoded."""
        while len(self._found) <= number:
            self._found.append(next(self._coming))
        return self._found[number]

    def ready(self, number: int) -> bool:
        """Return whether a group has probably been decoded."""
        if number < len(self._found) or not self._found or self._found[-1].last:
            return True
        rows = self._found[-1].rows
        return self._block.decoded_to(min(rows[-1] + len(rows), self._span[1] - 1))


def _split(block: ImageBlock, span: Range, size_for: Callable[[int], int]) -> Iterator[_Group]:
    rows: list[int] = []
    before: Shape = ()
    most = 0
    for place, shape in chain.from_iterable(map(block.shapes, block.tasks(span))):
        if rows and shape != before:
            yield _Group(tuple(rows), before, False)
            rows = []
        if not rows:
            before, most = shape, size_for(math.prod(shape))
        rows.append(place)
        if len(rows) == most and place < span[1] - 1:
            yield _Group(tuple(rows), before, False)
            rows = []
    yield _Group(tuple(rows), before, True)  # without rows if no image after a full group can be read


def are_neighbors(rows: Sequence[int]) -> bool:
    """Return whether increasing indices are consecutive.

    >>> are_neighbors((4, 5, 6)), are_neighbors((4, 6)), are_neighbors(())
    (True, False, False)
    """
    return len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1


def power_of_two(most: int) -> int:
    """Return the largest power of two up to `most`, from 1 to 512.

    >>> power_of_two(100)
    64
    """
    return 1 << max(0, min(9, most.bit_length() - 1))


def divisor_of_block(most: int) -> int:
    """Return the largest divisor of `BLOCK` up to `most`, from 1 to 500.

    >>> divisor_of_block(256)
    250
    """
    return max(n for n in range(1, BLOCK // 2 + 1) if BLOCK % n == 0 and n <= max(1, most))
