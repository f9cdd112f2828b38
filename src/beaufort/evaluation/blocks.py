"""The images of a block, and the batches that they are shown in.

Blocks start at multiples of `BLOCK` images, and batches at the start of a block, whatever was done before: a
model that rounds differently in batches of another size still gives the same answers after a restart.

A block is decoded once for all conditions, as far as `HELD` bytes go. Images beyond that are decoded again
whenever they are needed: large photos take more time, never more memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from beaufort.arrays import Bytes
from beaufort.conditions import Condition
from beaufort.datasets import Problem
from beaufort.errors import BeaufortError
from beaufort.evaluation.plan import Range, Setup

__all__ = ["BLOCK", "HELD", "Batch", "Block", "Part", "divisor_of_block", "power_of_two"]

BLOCK = 1000
"""Images a block: one file of the store for each cell."""

HELD = 1 << 30
"""Bytes of decoded images that a block holds at most."""

_AT_ONCE = 8
"""Images that a thread decodes before it looks for more."""

Shape = tuple[int, ...]
_Decoded = tuple[Shape, Bytes | None] | Problem


class Part(NamedTuple):
    """One condition on images of a block, for the models that have no answers to them."""

    condition: Condition
    span: Range
    works: tuple[tuple[int, int], ...]
    """For each model its number in the plan's list of works, and its number among the job's models."""


@dataclass(frozen=True)
class Batch:
    """Images of a part that are shown together."""

    part: Part
    block: Block
    rows: tuple[int, ...]
    """Places in the data set."""
    shape: Shape
    """Of each image."""
    last: bool
    """Whether it is the last of its part."""

    @property
    def condition(self) -> Condition:
        """What is done to the images."""
        return self.part.condition

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.rows) * math.prod(self.shape)


class Block:
    """Images that are decoded and made ready by the threads of a pool, from the first on."""

    def __init__(self, setup: Setup, span: Range, pool: Executor) -> None:
        self.span = span
        self._setup = setup
        self._room = HELD
        self._lock = Lock()
        self._rows: dict[Range, list[tuple[tuple[int, ...], Shape]]] = {}
        starts = range(span[0], span[1], _AT_ONCE)
        self._coming = [
            pool.submit(self._decode_some, range(start, min(start + _AT_ONCE, span[1]))) for start in starts
        ]

    def shape(self, place: int) -> Shape | None:
        """The shape of an image; None if it cannot be read."""
        found = self._decoded(place)
        return None if isinstance(found, Problem) else found[0]

    def image(self, place: int) -> Bytes:
        """An image that can be read, `(h, w, c)`."""
        found = self._decoded(place)
        assert not isinstance(found, Problem)
        return self._setup.image(self._setup.dataset[place]) if found[1] is None else found[1]

    def holds(self, place: int) -> bool:
        """Whether an image is in memory."""
        found = self._decoded(place)
        return not isinstance(found, Problem) and found[1] is not None

    def problems(self) -> Iterator[Problem]:
        """What cannot be read."""
        for coming in self._coming:
            yield from (found for found in coming.result() if isinstance(found, Problem))

    def batches(self, part: Part, size_for: Callable[[int], int]) -> Iterator[Batch]:
        """The batches of a part: images of one shape that follow each other, at least one batch.

        Args:
            part: which images.
            size_for: images a batch, by the bytes of an image; the same for all parts of a block.
        """
        if part.span in self._rows:  # as under the condition before
            rows = self._rows[part.span]
            for place, (some, shape) in enumerate(rows):
                yield Batch(part, self, some, shape, place == len(rows) - 1)
            return
        rows = []
        for some, shape, last in _split(self, part.span, size_for):
            rows.append((some, shape))
            yield Batch(part, self, some, shape, last)
        self._rows[part.span] = rows

    def _decoded(self, place: int) -> _Decoded:
        number, within = divmod(place - self.span[0], _AT_ONCE)
        return self._coming[number].result()[within]

    def _decode_some(self, places: range) -> list[_Decoded]:
        return [self._decode(place) for place in places]

    def _decode(self, place: int) -> _Decoded:
        try:
            image = self._setup.image(self._setup.dataset[place])
        except BeaufortError as error:
            if self._setup.dataset.strict:
                raise
            return Problem(self._setup.dataset.ids[place], str(error))
        with self._lock:
            held = image.nbytes <= self._room
            self._room -= image.nbytes if held else 0
        return image.shape, image if held else None


def _split(
    block: Block, span: Range, size_for: Callable[[int], int]
) -> Iterator[tuple[tuple[int, ...], Shape, bool]]:
    rows: list[int] = []
    before: Shape = ()
    most = 0
    for place in range(*span):
        shape = block.shape(place)
        if shape is None:
            continue
        if rows and (len(rows) >= most or shape != before):
            yield tuple(rows), before, False
            rows = []
        if not rows:
            before, most = shape, size_for(math.prod(shape))
        rows.append(place)
    yield tuple(rows), before, True


def power_of_two(most: int) -> int:
    """The largest up to some number, from 1 to 512.

    >>> power_of_two(100)
    64
    """
    return 1 << max(0, min(9, most.bit_length() - 1))


def divisor_of_block(most: int) -> int:
    """The largest number that a block is a multiple of, up to some number, from 1 to 500.

    >>> divisor_of_block(256)
    250
    """
    return max(n for n in range(1, BLOCK // 2 + 1) if BLOCK % n == 0 and n <= max(1, most))
