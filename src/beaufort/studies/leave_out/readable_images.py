"""The images that can be used: each is read once, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, ImageValueError
from beaufort.data import Content, Dataset, Pixels, Problem, resized

_MOST_KEPT = 1 << 30
"""Bytes of images up to which all stay in memory. More are read again for each value."""

_THREADS = 8


def readable(dataset: Dataset, side: int | None) -> tuple[Dataset, tuple[Problem, ...]]:
    """The images of a data set that can be read, all of one size, and what is wrong with the others.

    Args:
        dataset: with any images.
        side: of the squares that they are brought to; an `ImageValueError` if it is None and sizes differ.
    """
    shown = dataset if side is None else resized(dataset, side)
    pictures: dict[int, Bytes] = {}
    places: list[int] = []
    problems = list(dataset.problems)
    shape: tuple[int, ...] = ()
    with ThreadPoolExecutor(_THREADS) as pool:
        for place, found in enumerate(pool.map(lambda place: _read(shown, place), range(len(shown)))):
            if isinstance(found, Problem):
                problems.append(found)
                continue
            shape = shape or found.shape
            if found.shape != shape:
                raise ImageValueError(
                    "images must have one height, width and number of channels, got "
                    f"{found.shape} for {shown.ids[place]} and {shape} for {shown.ids[places[0]]}; side "
                    "(--side 32) brings them to squares in color"
                )
            places.append(place)
            if found.nbytes * len(shown) <= _MOST_KEPT:
                pictures[place] = found
    if pictures:
        shown = replace(shown, pixels=_Kept(shown.pixels, pictures))
    usable = shown.select(np.array(places, np.int64)) if problems else shown
    return replace(usable, problems=()), tuple(problems)


def _read(dataset: Dataset, place: int) -> Bytes | Problem:
    try:
        return dataset[place].image
    except BeaufortError as error:
        return Problem(dataset.ids[place], str(error))


@dataclass(frozen=True, eq=False)
class _Kept:
    """Pictures in memory; what identifies them is that of where they came from."""

    pixels: Pixels
    pictures: dict[int, Bytes]

    def read(self, index: int) -> Bytes:
        return self.pictures[index].copy() if index in self.pictures else self.pixels.read(index)

    def contents(self, count: int) -> Iterator[Content]:
        return self.pixels.contents(count)
