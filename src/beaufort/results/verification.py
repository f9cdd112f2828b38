"""Verify a bundle: its digests, every number from its predictions, and a random sample of these once more."""

from __future__ import annotations

import csv
import io
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.text import counted
from beaufort._core.validation import validate_count
from beaufort.data import load_dataset
from beaufort.data.labels import LabelSpace
from beaufort.evaluation import LazyModel, Plan, PlannedCell, Progress, RunOptions, plan, predict_gaps
from beaufort.metrics.stats import detection_probability, marked_at_most
from beaufort.results.bundle import SCORES, Bundle, PublishedCell, digest_of
from beaufort.results.open import stored_suites
from beaufort.results.publishing import score_rows
from beaufort.results.run import memory_store
from beaufort.store import Cell, Piece
from beaufort.store.columns import numbers_of
from beaufort.suites import Suite

TOLERANCE = 1e-12
"""Largest relative difference of a number that is recomputed; absolute below 1."""
CLOSE = 0.01
"""Largest difference of a probability that rounding on another device may cause."""
SWAPPED = 0.05
"""Largest relative difference of the probabilities of two classes that may change places."""
_KEYS = ("suite", "model", "condition", "corruption", "severity", "metric", "group", "convention", "dataset")
_NUMBERS = ("value", "low", "high", "n")
_SHOWN = 5


@dataclass(frozen=True)
class Verification:
    """What was verified in a bundle, and what is wrong."""

    digest: str
    """Digest of the bundle; empty if its manifest is damaged."""
    models: int
    predictions: int
    files: int
    """Number of files that match their digests."""
    numbers: int
    """Number of recomputed numbers that agree."""
    problems: tuple[str, ...]


@dataclass(frozen=True)
class UnconfirmedPrediction:
    """A published prediction that a repetition does not confirm."""

    model: str
    condition: str
    image: str
    published: tuple[int, ...]
    """Most probable classes, best first."""
    repeated: tuple[int, ...]


@dataclass(frozen=True)
class Rerun:
    """A random sample of predictions that were repeated."""

    models: tuple[str, ...]
    population: int
    """Number of published predictions of these models that the sample is drawn from."""
    sample: int
    wrong: tuple[UnconfirmedPrediction, ...]
    seed: int
    """Seed of the sample."""
    level: float
    problems: tuple[str, ...] = ()
    """Differences of the model, the data or the conditions from the published ones."""

    @property
    def at_most(self) -> float:
        """Upper bound on the proportion of wrong predictions, exact at `level`."""
        return marked_at_most(len(self.wrong), self.sample, self.population, self.level) / self.population

    @property
    def detects(self) -> float:
        """Probability that such a sample has a wrong prediction if 1 % of all are wrong."""
        return detection_probability(math.ceil(0.01 * self.population), self.sample, self.population)


def verify(location: str | Path) -> Verification:
    """Return what is wrong in a bundle: changed files, inconsistent rows, and numbers that do not follow."""
    try:
        bundle = Bundle(location)
    except BeaufortError as error:
        return Verification("", 0, 0, 0, 0, (str(error),))
    changed = list(_changed_files(bundle))
    listed = bundle.manifest["files"]
    rows = sum(piece.stop - piece.start for piece in bundle.entries)
    models = len({str(entry.cell.model["name"]) for entry in bundle.entries.values()})
    damaged = [name for name, _ in changed if name in listed]
    problems = [message for _, message in changed]
    numbers = 0
    if not any(name == SCORES or name.startswith("predictions/") for name in damaged):
        try:
            problems += _inconsistent_rows(bundle)
            numbers, wrong = _compare_scores(bundle)
            problems += wrong
        except BeaufortError as error:
            problems.append(str(error))
    return Verification(bundle.digest, models, rows, len(listed) - len(damaged), numbers, tuple(problems))


def _changed_files(bundle: Bundle) -> Iterator[tuple[str, str]]:
    """Yield the names of changed, missing and unlisted files, each with a message."""
    listed = bundle.manifest["files"]
    needed = {SCORES, *(entry.file for entry in bundle.entries.values())}
    there = {
        path.relative_to(bundle.folder).as_posix() for path in bundle.folder.rglob("*") if not path.is_dir()
    }
    for name, known in sorted(listed.items()):
        if name not in there:
            yield name, f"{name} is missing"
            continue
        content = (bundle.folder / name).read_bytes()
        if len(content) != known["bytes"] or digest_of(content) != known["sha256"]:
            yield name, f"{name} was changed: its digest does not match"
    for name in sorted(needed - set(listed)):
        yield name, f"{name} has no digest in the manifest"
    for name in sorted(there - set(listed) - {"bundle.json"}):
        yield name, f"{name} is not listed in the manifest"


def _inconsistent_rows(bundle: Bundle) -> list[str]:
    """Return models whose images or labels differ from those of the others on the same data."""
    known: dict[str, tuple[str, dict[int, tuple[str, int]]]] = {}
    found: dict[str, None] = {}
    for piece, entry in bundle.entries.items():
        table = bundle.table(piece, ["id", "label"])
        rows: Any = zip(table["id"].to_pylist(), table["label"].to_pylist(), strict=True)
        data = str(entry.cell.data.get("digest"))
        _, images = known.setdefault(data, (entry.file, {}))
        for place, row in enumerate(rows, piece.start):
            if images.setdefault(place, row) != row:
                found[f"{entry.file}: image {place} under {entry.condition} has another id or label"] = None
                break
    for file, images in known.values():
        if len({image for image, _ in images.values()}) < len(images):
            found[f"{file}: some images have the same id"] = None
    return list(found)


def _compare_scores(bundle: Bundle) -> tuple[int, list[str]]:
    """Return how many published numbers agree with recomputed ones, and which do not."""
    text = bundle.content(SCORES).decode()
    lines = csv.DictReader(io.StringIO(text))
    published = {tuple(str(line.get(key, "")) for key in _KEYS): line for line in lines}
    agree, wrong = 0, []
    for suite, row in score_rows(bundle):
        facts = {"suite": suite, **row._asdict()}
        key = tuple(_text(facts[name]) for name in _KEYS)
        stated = published.pop(key, None)
        if stated is None:
            wrong.append(f"{SCORES} lacks {_named(key)}")
        elif all(_is_close(stated.get(name, ""), facts[name]) for name in _NUMBERS):
            agree += 1
        else:
            shown = [", ".join(_text(one[name]) for name in _NUMBERS) for one in (stated, facts)]
            wrong.append(
                f"{SCORES}: {_named(key)} is {shown[0]}, but {shown[1]} follows from the predictions"
            )
    wrong += [f"{SCORES}: {_named(key)} does not follow from the predictions" for key in published]
    more = [f"and {counted(len(wrong) - _SHOWN, 'more number')}"] if len(wrong) > _SHOWN else []
    return agree, [*wrong[:_SHOWN], *more]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _named(key: Sequence[str]) -> str:
    _, model, condition, corruption, severity, metric, group, *_ = key
    about = " ".join(part for part in (condition or corruption, severity, group) if part)
    return f"{metric} of {model}" + (f" under {about}" if about else "")


def _is_close(text: str, value: float | None) -> bool:
    try:
        stated = float(text) if text else None
    except ValueError:
        return False
    if stated is None or value is None:
        return stated is None and value is None
    return stated == value or abs(stated - value) <= TOLERANCE * max(1.0, abs(value))


# Repeating predictions


def rerun(
    location: str | Path | Bundle,
    sample: int,
    models: Sequence[Any],
    data: Any,
    *,
    seed: int | None = None,
    level: float = 0.95,
    progress: Callable[[Progress], None] | None = None,
) -> Rerun:
    """Repeat a random sample of the predictions of a bundle, and compare them.

    A prediction is confirmed if the most probable classes are the same. Classes whose probabilities differ
    by less than 5 % may change places, and published probabilities may differ by 0.01, because devices
    round differently. A forger must not know the sample: without `seed`, it is drawn anew each time.

    Args:
        location: the bundle.
        sample: number of predictions, over all models and conditions.
        models: models of the bundle, as for `evaluate`.
        data: the data, as for `evaluate`.
        seed: seed of the sample.
        level: confidence level of the bound.
        progress: called after every batch.
    """
    bundle = location if isinstance(location, Bundle) else Bundle(location)
    sample = validate_count("rerun", sample)
    seed = secrets.randbits(32) if seed is None else seed
    suite = stored_suites(bundle)[0]
    matched = [_match(bundle, suite, LazyModel.of(model), data) for model in models]
    names = tuple(model.spec.name for model in (one.model for one in matched))
    problems = tuple(problem for one in matched for problem in one.problems)
    population = sum(piece.stop - piece.start for one in matched for piece, _ in one.pieces)
    if problems or not population:
        return Rerun(names, population, 0, (), seed, level, problems or ("no prediction can be repeated",))
    drawn = np.random.default_rng(seed).choice(population, min(sample, population), replace=False)
    wrong: list[UnconfirmedPrediction] = []
    start = 0
    for one in matched:
        size = sum(piece.stop - piece.start for piece, _ in one.pieces)
        mine = np.sort(drawn[(drawn >= start) & (drawn < start + size)]) - start
        wrong += _repeat(bundle, one, mine, progress)
        start += size
    return Rerun(names, population, len(drawn), tuple(wrong), seed, level)


@dataclass(frozen=True)
class _Matched:
    """A model, its planned cells, and the published pieces that they repeat."""

    model: LazyModel
    plan: Plan
    pieces: tuple[tuple[Piece, PlannedCell], ...]
    problems: tuple[str, ...] = ()


def _match(bundle: Bundle, suite: Suite, model: LazyModel, data: Any) -> _Matched:
    """Plan the predictions of a model, and match them with the published ones."""
    name = model.spec.name
    published = {piece: entry for piece, entry in bundle.entries.items() if entry.cell.model["name"] == name}
    if not published:
        known = sorted({str(entry.cell.model["name"]) for entry in bundle.entries.values()})
        raise OptionError(
            f"{bundle.location} has no model {name!r}; available: {', '.join(known)} (--set name=… renames a "
            "model)"
        )
    facts = next(iter(published.values())).cell
    if "batch_size" in facts.model:
        raise OptionError(f"predictions of {name} depend on the batch, so they cannot be repeated one by one")
    planned = _plan(bundle, suite, model, data, published)
    cells = {(cell.cell.data["name"], cell.cell.condition_name): cell for cell in planned.cells}
    pieces: list[tuple[Piece, PlannedCell]] = []
    problems: dict[str, None] = {}
    for piece, entry in published.items():
        cell = cells.get((entry.cell.data["name"], entry.cell.condition_name))
        if cell is None:
            problems[f"{entry.condition} cannot be repeated with these data"] = None
            continue
        for problem in _differences(entry.cell, cell.cell):
            problems[problem] = None
        if piece.stop > cell.source.count:
            problems[f"the data have {cell.source.count} images, fewer than published"] = None
        elif not problems:
            for problem in _other_images(bundle, piece, entry, cell):
                problems[problem] = None
        pieces.append((piece, cell))
    return _Matched(model, planned, tuple(pieces), tuple(f"{name}: {problem}" for problem in problems))


def _plan(
    bundle: Bundle, suite: Suite, model: LazyModel, data: Any, published: Mapping[Piece, PublishedCell]
) -> Plan:
    """Return the plan of the published cells, with the images in the published order."""
    cell = next(iter(published.values())).cell
    count = max(piece.stop for piece in published)
    seed = bundle.manifest["run"]["seed"]
    options, limit = RunOptions(), None
    if "spread" in cell.data:
        limit, seed = count, int(cell.data["spread"])
    else:
        options = RunOptions(first=count)
    if "order" in cell.data:
        texts = list(data.values()) if isinstance(data, Mapping) else [data]
        if len(texts) > 1 or not isinstance(texts[0], str):
            raise OptionError("predictions of shuffled images can be repeated with one dataset only")
        data = load_dataset(texts[0]).shuffled(int(cell.data["order"]))
    space = None
    if not suite.parts:
        labels = {name: value for name, value in cell.data.get("labels", {}).items() if name != "truths"}
        space = LabelSpace.from_facts(labels)
    return plan(
        [model],
        suite,
        data,
        memory_store(),
        limit=limit,
        labels=space,
        seed=seed or 0,
        options=options,
        keep_models=True,
    )


def _differences(published: Cell, planned: Cell) -> Iterator[str]:
    """Yield what differs between the facts of a published cell and of its repetition."""
    for part, one, other in (
        ("the model", published.model, planned.model),
        ("the data", published.data, planned.data),
        (published.condition_name, published.condition, planned.condition),
    ):
        for key in sorted({*one, *other} - {"name", "run"}):
            a, b = (_comparable(facts.get(key)) for facts in (one, other))
            if a != b:
                yield f"{part} differs in {key}: {a!s:.80} was published, this is {b!s:.80}"


def _comparable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: one for key, one in value.items() if key != "truths"} or None
    return value


def _other_images(bundle: Bundle, piece: Piece, entry: PublishedCell, cell: PlannedCell) -> Iterator[str]:
    """Yield a message if images or labels are not those of the data."""
    table = bundle.table(piece, ["id", "label"])
    dataset = cell.source.dataset
    ids = list(map(str, dataset.ids[piece.start : piece.stop]))
    labels = np.asarray(dataset.labels[piece.start : piece.stop])
    if table["id"].to_pylist() != ids:
        yield f"the images of {entry.condition} are not those of the data"
    elif not np.array_equal(numbers_of(table["label"]), labels):
        yield f"the labels of {entry.condition} are not those of the data"


def _repeat(
    bundle: Bundle, one: _Matched, drawn: Any, progress: Callable[[Progress], None] | None
) -> list[UnconfirmedPrediction]:
    """Repeat the drawn rows of a model, and return those that differ."""
    places: dict[int, list[int]] = {}
    chosen: list[tuple[Piece, PlannedCell, int]] = []
    start, at = 0, 0
    for piece, cell in one.pieces:
        stop = start + piece.stop - piece.start
        while at < len(drawn) and drawn[at] < stop:
            place = piece.start + int(drawn[at]) - start
            places.setdefault(id(cell), []).append(place)
            chosen.append((piece, cell, place))
            at += 1
        start = stop
    wanted = [
        replace(cell, gaps=_as_ranges(places[id(cell)])) for cell in one.plan.cells if id(cell) in places
    ]
    part = replace(one.plan, cells=tuple(wanted))
    repeated = {
        (cell.cell.fingerprint, place): row
        for cell, first, table in predict_gaps(part, progress=progress)
        for place, row in enumerate(table.to_pylist(), first)
    }
    wrong = []
    for piece, cell, place in chosen:
        before = bundle.table(piece).slice(place - piece.start, 1).to_pylist()[0]
        after = repeated[cell.cell.fingerprint, place]
        if not _agree(before, after):
            tops = (tuple(row["top"] or ()) for row in (before, after))
            name = str(cell.cell.model["name"])
            wrong.append(UnconfirmedPrediction(name, str(cell.condition), before["id"], *tops))
    return wrong


def _as_ranges(places: Sequence[int]) -> tuple[tuple[int, int], ...]:
    ordered = sorted(set(places))
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    return tuple((int(some[0]), int(some[-1]) + 1) for some in np.split(np.array(ordered), breaks))


def _agree(published: Mapping[str, Any], repeated: Mapping[str, Any]) -> bool:
    """Return whether two rows are the same prediction, up to the rounding of another device."""
    first, second = published["top"], repeated["top"]
    if first is None or second is None:
        return first is None and second is None
    if len(first) > len(second) or len(set(first)) < len(first):
        return False
    p = {repeated["label"]: repeated["p_label"], **dict(zip(second, repeated["p"], strict=True))}
    for known, now in zip(first, second, strict=False):
        ends = sorted((p.get(known, repeated["p"][-1]), p[now]))
        if ends[1] - ends[0] > SWAPPED * ends[1]:
            return False
    numbers = {
        "confidence": (published["p"][0], repeated["p"][0]),
        "nll": (math.exp(-published["nll"]), math.exp(-repeated["nll"])),
        "brier": (published["brier"], repeated["brier"]),
        "entropy": (published["entropy"], repeated["entropy"]),
    }
    widths = {"entropy": 10 * CLOSE, "brier": 2 * CLOSE}
    return all(math.isnan(a) or abs(a - b) <= widths.get(name, CLOSE) for name, (a, b) in numbers.items())
