"""What one model said to every version of every base image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beaufort.results.rescore import Rescoring
from beaufort.store import Cell, Listing, Store, StoreError, correct, labeled, truth_of
from beaufort.store.columns import column_of, numbers_of
from beaufort.suites.conditions import Condition

_COLUMNS = ("id", "label", "top", "p", "nll", "brier", "entropy")


@dataclass(frozen=True, eq=False)
class Answers:
    """One model's answers: a row for each condition, a column for each base image answered under all."""

    model: str
    conditions: tuple[Condition, ...]
    ids: tuple[str, ...]
    labels: NDArray[np.int32]
    top: NDArray[np.int32]
    """The most probable classes, best first, `(conditions, images, 5 or fewer)`."""
    confidence: NDArray[np.float32]
    """The probability of the most probable class, `(conditions, images)`."""
    nll: NDArray[np.float32]
    brier: NDArray[np.float32]
    entropy: NDArray[np.float32]
    unread: int
    """Images that have no answer under at least one condition, and are left out."""
    truth: NDArray[np.int32] | None = None
    """The classes that are right for each image, `(images, most)`, filled up with -1; None for `labels`."""
    unlabeled: int = 0
    """Images for which no class is right, and which are left out."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        arrays = (self.top, self.confidence, self.nll, self.brier, self.entropy)
        return sum(array.nbytes for array in arrays) + 100 * len(self.ids)

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the most probable class is right, `(conditions, images)`."""
        return correct(self.top, self.labels if self.truth is None else self.truth)

    @cached_property
    def correct5(self) -> NDArray[np.bool_]:
        """Whether a right class is among the five most probable."""
        return correct(self.top, self.labels if self.truth is None else self.truth, among=5)

    @cached_property
    def rows(self) -> dict[str | None, list[int]]:
        """Rows by corruption, from weak to strong; the clean images' under None."""
        found: dict[str | None, list[int]] = {}
        for row, condition in enumerate(self.conditions):
            found.setdefault(condition.corruption, []).append(row)
        return found

    def errors(self, corruption: str | None) -> NDArray[np.float64]:
        """How often each image was answered wrongly under a corruption: the mean over its severities."""
        wrong = ~self.correct[self.rows[corruption]]
        mean: NDArray[np.float64] = wrong.mean(axis=0, dtype=np.float64)
        return mean

    def take(self, places: NDArray[np.intp]) -> Answers:
        """The same for some of the images."""
        return Answers(
            self.model,
            self.conditions,
            tuple(self.ids[place] for place in places),
            self.labels[places],
            self.top[:, places],
            self.confidence[:, places],
            self.nll[:, places],
            self.brier[:, places],
            self.entropy[:, places],
            self.unread,
            None if self.truth is None else self.truth[places],
            self.unlabeled,
        )


def read_answers(
    store: Store,
    listing: Listing,
    cells: Mapping[Condition, Cell],
    limit: int | None = None,
    rescoring: Rescoring | None = None,
) -> Answers:
    """The answers of one model's cells, those to images that all of them have, of the first `limit`."""
    tables = [_read(store, listing, cell, rescoring) for cell in cells.values()]
    places = [numbers_of(table["place"]) for table in tables]
    answered = [
        place[numbers_of(table["top"].is_valid())] for place, table in zip(places, tables, strict=True)
    ]
    common = answered[0] if limit is None else answered[0][answered[0] < limit]
    for other in answered[1:]:
        if not np.array_equal(common, other):
            common = np.intersect1d(common, other, assume_unique=True)
    first = next(iter(cells.values()))
    answered_by_all = len(common)
    labels = tables[0].take(column_of(np.searchsorted(places[0], common)))
    common = common[labeled(labels)]
    if not len(common):
        raise StoreError(f"no image of {first.data['name']} has an answer under all conditions")
    wanted = [
        table.take(column_of(np.searchsorted(place, common))) if len(place) != len(common) else table
        for place, table in zip(places, tables, strict=True)
    ]
    top, p = (np.stack([_lists(table[name]) for table in wanted]) for name in ("top", "p"))
    nll, brier, entropy = (
        np.stack([np.asarray(numbers_of(table[name]), np.float32) for table in wanted])
        for name in ("nll", "brier", "entropy")
    )
    return Answers(
        str(first.model["name"]),
        tuple(cells),
        tuple(map(str, wanted[0]["id"].to_pylist())),
        np.asarray(numbers_of(wanted[0]["label"]), np.int32),
        top,
        np.ascontiguousarray(p[..., 0]),
        nll,
        brier,
        entropy,
        int(np.count_nonzero(np.unique(np.concatenate(places)) < (limit or np.inf))) - answered_by_all,
        truth if (truth := truth_of(wanted[0])).ndim > 1 else None,
        answered_by_all - len(common),
    )


def _read(store: Store, listing: Listing, cell: Cell, rescoring: Rescoring | None) -> pa.Table:
    if rescoring is not None:
        return rescoring.table(store.read(cell, listing), str(cell.model["name"]))
    sets = ("truth",) if "truths" in cell.data.get("labels", ()) else ()
    return store.read(cell, listing, (*_COLUMNS, *sets))


def _lists(column: pa.ChunkedArray[Any]) -> NDArray[Any]:
    whole: Any = column.combine_chunks()
    return numbers_of(whole.flatten()).reshape(len(whole), -1)
