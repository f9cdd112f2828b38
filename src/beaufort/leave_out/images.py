"""The images that can be used: each is read once before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from beaufort.datasets import Dataset, Problem
from beaufort.errors import BeaufortError, ImageValueError

__all__ = ["readable"]

_THREADS = 8

Shape = tuple[int, ...]


def readable(dataset: Dataset, *, one_size: bool) -> tuple[Dataset, tuple[Problem, ...]]:
    """The images of a data set that can be read, and what is wrong with the others.

    Args:
        dataset: with any images.
        one_size: whether all must have one size; an `ImageValueError` if they do not.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda place: _shape(dataset, place), range(len(dataset))))
    shapes = {place: one for place, one in enumerate(found) if not isinstance(one, Problem)}
    if one_size:
        _check_one_size(dataset.ids, shapes)
    problems = tuple(one for one in found if isinstance(one, Problem))
    return (dataset.at(np.array(list(shapes), np.int64)) if problems else dataset), problems


def _shape(dataset: Dataset, place: int) -> Shape | Problem:
    try:
        return dataset[place].image.shape
    except BeaufortError as error:
        return Problem(dataset.ids[place], str(error))


def _check_one_size(ids: Sequence[str], shapes: dict[int, Shape]) -> None:
    first = next(iter(shapes), 0)
    for place, shape in shapes.items():
        if shape != shapes[first]:
            raise ImageValueError(
                f"images must have one height, width and number of channels without side, got {shape} for "
                f"{ids[place]} and {shapes[first]} for {ids[first]}"
            )
