"""Scores of streams: the error of models that adapt, their gain over the source model, collapse and cost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.pages import render_table
from beaufort._core.text import counted
from beaufort.metrics import collapse_position, stream_mean
from beaufort.metrics.stats import Estimate
from beaufort.models.scoring import correct
from beaufort.results._match import ResultsError
from beaufort.store import Cell, FileStore, Listing, flat_origins, labels_of
from beaufort.store.columns import numbers_of
from beaufort.suites.streams import NAME, Stream, split_id


@dataclass(frozen=True)
class AdaptationScore:
    """Numbers of one model over all seeds of a stream."""

    model: str
    seeds: tuple[int, ...]
    error: Estimate
    """Error over the whole stream."""
    conditions: Mapping[str, float]
    """Error under each condition."""
    gain: Estimate | None
    """Error of the source model minus that of this one; None without a source model on the same streams."""
    collapse: tuple[int | None, ...]
    """For each seed, the position from which it is worse than the source model; None without a collapse."""
    passes: tuple[float, float] | None
    """Forward and backward passes per image; None if the model does not count them."""

    @property
    def collapsed(self) -> str:
        """In how many streams it collapses, and from where in the median, as text."""
        found = sorted(one for one in self.collapse if one is not None)
        if not self.collapse:
            return ""
        place = f", from image {found[len(found) // 2]:,}" if found else ""
        return f"{len(found)} of {len(self.collapse)}{place}"


@dataclass(frozen=True)
class StreamScores:
    """Numbers of all models on one stream."""

    stream: Stream
    """The stream, with seed 0."""
    dataset: str
    images: int
    """Number of images of a stream."""
    models: tuple[AdaptationScore, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The stream and its size."""
        text = str(self.stream).rpartition(",seed=")[0]
        seeds = counted(max(len(one.seeds) for one in self.models), "seed")
        return f"{self.dataset}/{NAME}@{text}: {counted(self.images, 'image')}, {seeds}; 95 % intervals"

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Rows of a table: a header, then a row for each model."""
        rows: list[tuple[str, ...]] = [("model", "error", "gain", "collapsed", "forward", "backward")]
        for one in self.models:
            gain = "" if one.gain is None else f"{one.gain:.1%}"
            passes = ("", "") if one.passes is None else tuple(f"{count:.2f}" for count in one.passes)
            rows.append((one.model, f"{one.error:.1%}", gain, one.collapsed, *passes))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        return {
            "stream": str(self.stream),
            "data": self.dataset,
            "images": self.images,
            "models": [
                {
                    **vars(one),
                    "error": vars(one.error),
                    "gain": None if one.gain is None else vars(one.gain),
                }
                for one in self.models
            ],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        header, *rows = self.rows
        return render_table(self.title, list(header), [list(row) for row in rows], self.notes)


class _Rows(NamedTuple):
    """The predictions of one model on one stream."""

    wrong: NDArray[np.float64]
    images: NDArray[np.int64]
    conditions: NDArray[np.int64]
    names: tuple[str, ...]
    passes: tuple[int, ...] | None


def stream_scores(
    store: str | Path | FileStore, *, cells: Iterable[Cell] | None = None, level: float = 0.95
) -> tuple[StreamScores, ...]:
    """Return the scores of the streams of a store, for each stream the models by their error.

    A model is compared with its source model, whose name comes before a `+` in its own, on the same streams.

    Args:
        store: a store, its folder or URL.
        cells: only these; all streams of the store if None.
        level: of the intervals.
    """
    kept = FileStore(store) if isinstance(store, str | Path) else store
    listing = kept.listing()
    found = list((kept.cells() if cells is None else {one.fingerprint: one for one in cells}).values())
    groups: dict[str, dict[str, dict[int, Cell]]] = {}
    for cell in found:
        if cell.condition.get("corruption") == NAME and cell.fingerprint in listing:
            stream = Stream.parse(str(cell.condition["level"]))
            facts = {key: cell.condition[key] for key in ("images", "prepare", "seed", "version")}
            data = {key: value for key, value in cell.data.items() if key != "labels"}
            key = json.dumps([str(replace(stream, seed=0)), facts, data], sort_keys=True)
            groups.setdefault(key, {}).setdefault(str(cell.model["name"]), {})[stream.seed] = cell
    if not groups:
        raise ResultsError(f"{kept.location} has no predictions on streams; pass a suite of streams to `run`")
    return tuple(_scores(kept, listing, group, level) for group in groups.values())


def _scores(
    store: FileStore, listing: Listing, group: Mapping[str, Mapping[int, Cell]], level: float
) -> StreamScores:
    read = {
        name: {seed: _read(store, listing, cell) for seed, cell in sorted(cells.items())}
        for name, cells in group.items()
    }
    longest = max(len(rows.wrong) for some in read.values() for rows in some.values())
    whole = {
        name: {seed: rows for seed, rows in some.items() if len(rows.wrong) == longest}
        for name, some in read.items()
    }
    one = next(iter(next(iter(group.values())).values()))
    stream = replace(Stream.parse(str(one.condition["level"])), seed=0)
    scores = [_score(name, whole, stream.batch, level) for name in whole if whole[name]]
    notes = [
        f"{name} has {len(whole[name])} of {len(some)} streams complete"
        for name, some in read.items()
        if len(whole[name]) < len(some)
    ]
    ordered = tuple(sorted(scores, key=lambda score: score.error.value))
    return StreamScores(stream, str(one.data["name"]), longest, ordered, tuple(notes))


def _score(name: str, models: Mapping[str, Mapping[int, _Rows]], batch: int, level: float) -> AdaptationScore:
    mine = models[name]
    source = max((other for other in models if name.startswith(f"{other}+")), key=len, default=None)
    shared = [seed for seed in mine if source is not None and seed in models[source]]
    gain, collapse = None, []
    if source is not None and shared:
        theirs = models[source]
        better = {seed: theirs[seed].wrong - mine[seed].wrong for seed in shared}
        gain = _mean([mine[seed] for seed in shared], list(better.values()), batch, level, low=-1)
        collapse = [collapse_position(-better[seed], batch) for seed in shared]
    rows = list(mine.values())
    counted_passes = [one.passes for one in rows if one.passes is not None]
    total = sum(len(one.wrong) for one in rows if one.passes is not None)
    passes = [sum(both) / total for both in zip(*counted_passes, strict=True)]
    return AdaptationScore(
        name,
        tuple(mine),
        _mean(rows, [one.wrong for one in rows], batch, level, low=0),
        _by_condition(rows),
        gain,
        tuple(collapse),
        (passes[0], passes[1]) if len(passes) == 2 else None,
    )


def _mean(
    rows: Sequence[_Rows], values: Sequence[NDArray[np.float64]], batch: int, level: float, *, low: float
) -> Estimate:
    images, conditions = (np.stack([getattr(one, key) for one in rows]) for key in ("images", "conditions"))
    return stream_mean(np.stack(values), images, conditions, batch, level, low=low)


def _by_condition(rows: Sequence[_Rows]) -> dict[str, float]:
    found: dict[str, list[NDArray[np.float64]]] = {}
    for one in rows:
        for number, name in enumerate(one.names):
            found.setdefault(name, []).append(one.wrong[one.conditions == number])
    return {name: float(np.concatenate(some).mean()) for name, some in found.items()}


def _read(store: FileStore, listing: Listing, cell: Cell) -> _Rows:
    table = store.read(cell, listing, ["id", "label", "top"])
    ids = [split_id(str(text)) for text in table["id"].to_pylist()]
    top: Any = table["top"].combine_chunks()
    classes = numbers_of(top.flatten()).reshape(len(ids), -1)
    names, conditions = np.unique([one for _, one, _ in ids], return_inverse=True)
    numbers = {image: number for number, image in enumerate(sorted({image for *_, image in ids}))}
    origins = (
        origin
        for _, _, _, provenance in store.summaries(listing[cell.fingerprint])
        for origin in flat_origins(provenance)
    )
    passes = next((tuple(one["passes"]) for one in origins if "passes" in one), None)
    return _Rows(
        np.asarray(~correct(classes, labels_of(table)), np.float64),
        np.array([numbers[image] for *_, image in ids]),
        conditions.astype(np.int64),
        tuple(names.tolist()),
        passes,
    )
