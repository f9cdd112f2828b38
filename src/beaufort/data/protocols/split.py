"""Images of a table in two: those to train on, and those of which a model knows only the class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import unknown


class ImageTable(Protocol):
    """Images by number, with what is known about each; a `Dataset` is one."""

    @property
    def name(self) -> str: ...

    @property
    def ids(self) -> Sequence[str]:
        """What each image is called: its path, where it has one."""

    @property
    def labels(self) -> NDArray[np.int64]: ...

    def column(self, name: str) -> list[str]:
        """For each image its value in a column; an `UnknownNameError` if there is no such column."""


@dataclass(frozen=True, eq=False)
class Split:
    """Numbers of the images to train on, and of those that are held out, each in the order of the table."""

    name: str
    """What is held out: `style=microsoft`."""
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    answerable: NDArray[np.bool_]
    """For each image of `test` whether any image of `train` has its class."""

    @cached_property
    def unanswerable(self) -> int:
        """Held-out images whose class is not in training: no model can get them right."""
        return int((~self.answerable).sum())

    @property
    def cap(self) -> float:
        """The highest accuracy on `test` that a model trained on `train` can have."""
        return 1 - self.unanswerable / len(self.test)


def hold_out(table: ImageTable, column: str, values: str | Iterable[str]) -> Split:
    """Hold out the images that have one of some values in a column.

    Args:
        table: a `Dataset`, or anything with the members of a `ImageTable`.
        column: `class`, or any other that the table has.
        values: a value of the column, or several.
    """
    wanted = (values,) if isinstance(values, str) else tuple(values)
    cells = _cells(table, column)
    known = dict.fromkeys(sorted(set(cells)))
    for value in wanted:
        if value not in known:
            raise UnknownNameError(unknown(f"{column} of {table.name}", value, known))
    return split_by(table, f"{column}={','.join(wanted)}", np.isin(np.array(cells), wanted))


def leave_one_out(table: ImageTable, column: str) -> dict[str, Split]:
    """For each value of a column, in sorted order, the split that holds out its images."""
    return {value: hold_out(table, column, value) for value in sorted(set(_cells(table, column)))}


def split_by(table: ImageTable, name: str, held_out: NDArray[np.bool_]) -> Split:
    """The split in which some images, one bool for each of the table's, are held out."""
    for side, count in (("train on", int((~held_out).sum())), ("test on", int(held_out.sum()))):
        if not count:
            raise OptionError(f"{name} must leave images of {table.name} to {side}, got none")
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    answerable = np.isin(table.labels[test], table.labels[train])
    return Split(name, train.astype(np.int64), test.astype(np.int64), answerable)


def _cells(table: ImageTable, column: str) -> list[str]:
    """The values of a column that tells images apart."""
    cells = table.column(column)
    if empty := [place for place, cell in enumerate(cells) if not cell]:
        raise OptionError(
            f"column {column!r} of {table.name} must have a value for each image, got none for {len(empty)} "
            f"(first: {table.ids[empty[0]]}); where it is not known, write a word as unknown"
        )
    if len(set(cells)) < 2:
        got = f"one, {cells[0]!r}, for all {len(cells)} images" if cells else "no images"
        raise OptionError(f"column {column!r} of {table.name} must have two values or more, got {got}")
    return cells
