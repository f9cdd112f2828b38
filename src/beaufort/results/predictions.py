"""The predictions of one model for every image and condition, and the common images of models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beaufort.models.scoring import correct
from beaufort.results._match import ResultsError
from beaufort.results.rescore import Rescoring
from beaufort.store import Cell, Listing, Store, StoreError, labeled, labels_of
from beaufort.store.columns import column_of, numbers_of
from beaufort.suites.conditions import Condition

if TYPE_CHECKING:
    from beaufort.results.results import Results

_COLUMNS = ("id", "label", "top", "p", "nll", "brier", "entropy")
_ARRAYS = ("top", "confidence", "nll", "brier", "entropy")


@dataclass(frozen=True, eq=False)
class Predictions:
    """One model's predictions: a row for each condition, a column for each image predicted under all."""

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
    """Number of images without a prediction under at least one condition, which are omitted."""
    label_sets: NDArray[np.int32] | None = None
    """Valid classes of each image, `(images, most)`, padded with -1; None for `labels`."""
    unlabeled: int = 0
    """Number of images without a valid class, which are omitted."""

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Predictions of {self.model}: {len(self.conditions)} conditions, {len(self):,} images>"

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return sum(int(getattr(self, name).nbytes) for name in _ARRAYS) + 100 * len(self.ids)

    @property
    def has_probabilities(self) -> bool:
        """Whether probabilities and losses are known; a bundle may leave them out."""
        return not np.isnan(self.confidence).all()

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the most probable class is right, `(conditions, images)`."""
        return correct(self.top, self.labels if self.label_sets is None else self.label_sets)

    @cached_property
    def correct5(self) -> NDArray[np.bool_]:
        """Whether a right class is among the five most probable."""
        return correct(self.top, self.labels if self.label_sets is None else self.label_sets, among=5)

    @cached_property
    def rows(self) -> dict[str | None, list[int]]:
        """Rows by corruption, from weak to strong; those of clean images under None."""
        found: dict[str | None, list[int]] = {}
        for row, condition in enumerate(self.conditions):
            found.setdefault(condition.corruption, []).append(row)
        return found

    def errors(self, corruption: str | None) -> NDArray[np.float64]:
        """Return the error of each image under a corruption: the mean over its severities."""
        wrong = ~self.correct[self.rows[corruption]]
        mean: NDArray[np.float64] = wrong.mean(axis=0, dtype=np.float64)
        return mean

    def take(self, places: NDArray[np.intp]) -> Predictions:
        """Return the predictions for some of the images."""
        return replace(
            self,
            ids=tuple(self.ids[place] for place in places),
            labels=self.labels[places],
            **{name: getattr(self, name)[:, places] for name in _ARRAYS},
            label_sets=None if self.label_sets is None else self.label_sets[places],
        )


def read_predictions(
    store: Store,
    listing: Listing,
    cells: Mapping[Condition, Cell],
    limit: int | None = None,
    rescoring: Rescoring | None = None,
) -> Predictions:
    """Read the predictions of one model for the images that all cells have, of the first `limit`."""
    tables = [_read(store, listing, cell, rescoring) for cell in cells.values()]
    places = [numbers_of(table["place"]) for table in tables]
    present = [
        place[numbers_of(table["top"].is_valid())] for place, table in zip(places, tables, strict=True)
    ]
    common = present[0] if limit is None else present[0][present[0] < limit]
    for other in present[1:]:
        if not np.array_equal(common, other):
            common = np.intersect1d(common, other, assume_unique=True)
    first = next(iter(cells.values()))
    count = len(common)
    labels = tables[0].take(column_of(np.searchsorted(places[0], common)))
    common = common[labeled(labels)]
    if not len(common):
        raise StoreError(f"no image of {first.data['name']} has a prediction under all conditions")
    wanted = [
        table.take(column_of(np.searchsorted(place, common))) if len(place) != len(common) else table
        for place, table in zip(places, tables, strict=True)
    ]
    top, p = (np.stack([_lists(table[name]) for table in wanted]) for name in ("top", "p"))
    nll, brier, entropy = (
        np.stack([np.asarray(numbers_of(table[name]), np.float32) for table in wanted])
        for name in ("nll", "brier", "entropy")
    )
    return Predictions(
        str(first.model["name"]),
        tuple(cells),
        tuple(map(str, wanted[0]["id"].to_pylist())),
        np.asarray(numbers_of(wanted[0]["label"]), np.int32),
        top,
        np.ascontiguousarray(p[..., 0]),
        nll,
        brier,
        entropy,
        int(np.count_nonzero(np.unique(np.concatenate(places)) < (limit or np.inf))) - count,
        label_sets if (label_sets := labels_of(wanted[0])).ndim > 1 else None,
        count - len(common),
    )


def _read(store: Store, listing: Listing, cell: Cell, rescoring: Rescoring | None) -> pa.Table:
    if rescoring is not None:
        return rescoring.table(store.read(cell, listing), str(cell.model["name"]))
    sets = ("label_set",) if "truths" in cell.data.get("labels", ()) else ()
    return store.read(cell, listing, (*_COLUMNS, *sets))


def _lists(column: pa.ChunkedArray[Any]) -> NDArray[Any]:
    whole: Any = column.combine_chunks()
    return numbers_of(whole.flatten()).reshape(len(whole), -1)


class SharedPredictions(Mapping[str, Predictions]):
    """Predictions of several models for their common images, read when needed."""

    def __init__(self, results: Results, models: Sequence[str], also: Sequence[str] = ()) -> None:
        """Restrict images to those that the models in `also` have as well."""
        self._results = results
        self._models = tuple(dict.fromkeys(models))
        first = results.predictions(self._models[0]).ids
        shared = set(first)
        self._counts: dict[str, int] = {}
        self._order: list[str] | None = None
        for name in (*self._models, *also):
            predictions = results.predictions(name)
            self._counts[name] = len(predictions) + predictions.unread + predictions.unlabeled
            if (ids := predictions.ids) != first:
                shared.intersection_update(ids)
                self._order = [image for image in first if image in shared]
        if not shared:
            raise ResultsError(
                f"{', '.join(self._models)} have no common images; evaluate all of them on the same images"
            )

    @property
    def models(self) -> tuple[str, ...]:
        return self._models

    def notes(self) -> tuple[str, ...]:
        """Return a note if some models have more images than others."""
        fewest, most = (choose(self._counts, key=self._counts.__getitem__) for choose in (min, max))
        if self._counts[fewest] == self._counts[most]:
            return ()
        return (
            f"Only images that all of these models have predictions for are used: {fewest} has "
            f"{self._counts[fewest]:,}, {most} {self._counts[most]:,}.",
        )

    def __getitem__(self, model: str) -> Predictions:
        if model not in self._models:
            raise KeyError(model)
        predictions = self._results.predictions(model)
        if self._order is None:
            return predictions
        places = {image: place for place, image in enumerate(predictions.ids)}
        return predictions.take(np.array([places[image] for image in self._order]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)
