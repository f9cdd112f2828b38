"""Train, evaluate and score for each value; existing training runs and predictions are reused."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, ImageValueError, OptionError, UnknownNameError
from beaufort._core.files import write_bytes
from beaufort._core.text import counted
from beaufort._core.validation import validate_count
from beaufort.data import Content, Dataset, Pixels, Problem, load_dataset, resized
from beaufort.data.protocols import Split, hold_out, leave_one_out
from beaufort.evaluation import LazyModel
from beaufort.results import evaluate
from beaufort.studies.leave_out.value_report import ValueScore, value_score, values_csv, values_page
from beaufort.suites import Suite
from beaufort.training import (
    Recipe,
    TrainingData,
    TrainingProgress,
    failure,
    get_recipe,
    open_training_data,
    train,
)
from beaufort.training.trained import find_trained, read_facts

TABLE, PAGE = "leave-out.csv", "index.html"
Places = NDArray[np.int64]

_CACHE_BYTES = 1 << 30
"""Size of a dataset up to which all images stay in memory; larger ones are read again for each value."""


class LeaveOutProgress(NamedTuple):
    """The current training run, and finished steps out of those of all runs."""

    value: str
    seed: int
    step: int
    steps: int


@dataclass(frozen=True)
class LeaveOut:
    """The scores of all values."""

    column: str
    values: tuple[ValueScore, ...]
    unread: tuple[Problem, ...]
    """Images that cannot be read, which are neither trained on nor scored."""
    folder: Path
    failed: tuple[str, ...] = ()
    """Training runs without sign of learning, with their losses; they count in the scores."""


def leave_out(
    data: str | Dataset,
    column: str,
    *,
    recipe: Recipe | str,
    output: Path | str,
    only: str | Iterable[str] = (),
    side: int | None = None,
    seen: float = 0.1,
    seeds: int = 1,
    device: str = "auto",
    progress: Callable[[LeaveOutProgress], None] | None = None,
) -> LeaveOut:
    """Train without each value of a column in turn, and score on the images that were left out.

    Args:
        data: a dataset with the column, or what `load_dataset` opens, such as a CSV list.
        column: a column of the dataset; for Icons-50, `style`, `version` or `subtype`.
        recipe: a recipe, its name, or a YAML file; its field `start` fine-tunes a trained network.
        output: output directory for trained networks, predictions, a table and a page.
        only: a value or several; all by default.
        side: side of the squares that images are resized to; by default all must have one size.
        seen: fraction of the other values' images that is kept out of training and scored as well.
        seeds: training runs for each value.
        device: `cpu`, `cuda` or `cuda:1`; `auto` uses a GPU if there is one.
        progress: called at least once an epoch.
    """
    if not 0 <= seen < 1:
        raise OptionError(f"seen must be a fraction from 0 to below 1, got {seen!r}")
    seeds = validate_count("seeds", seeds)
    chosen_recipe = get_recipe(recipe) if isinstance(recipe, str) else recipe
    chosen_recipe.check_start()
    dataset = load_dataset(data) if isinstance(data, str) else data
    wanted = list(_splits(dataset, column, only))
    usable, problems = readable(dataset, side)
    unread = _unread(dataset, usable, column, wanted, problems)
    splits = _splits(usable, column, wanted)
    if len(there := np.unique(usable.labels)) < 2:
        raise OptionError(f"all images of {usable.name} have one class, {usable.classes[there[0]]!r}")
    _check_start(chosen_recipe.start, usable, column, splits, seen)
    parts = {value: _kept_back(split, seen, usable.labels) for value, split in splits.items()}
    runs = _Runs(usable, chosen_recipe, Path(output), seeds, device, progress, len(splits) * seeds)
    scores = tuple(runs.score(value, split, *parts[value], unread[value]) for value, split in splits.items())
    result = LeaveOut(column, scores, problems, Path(output), tuple(runs.failed))
    write_bytes(result.folder / TABLE, values_csv(column, scores).encode())
    page = values_page(column, dataset.name, chosen_recipe, scores, problems, result.failed)
    write_bytes(result.folder / PAGE, page.encode())
    return result


def _splits(dataset: Dataset, column: str, only: str | Iterable[str]) -> dict[str, Split]:
    chosen = (only,) if isinstance(only, str) else tuple(only)
    return {one: hold_out(dataset, column, one) for one in chosen} or leave_one_out(dataset, column)


def readable(dataset: Dataset, side: int | None) -> tuple[Dataset, tuple[Problem, ...]]:
    """Return the images of a dataset that can be read, all of one size, and the problems of the others.

    Raises:
        ImageValueError: if `side` is None and sizes differ.
    """
    images = dataset if side is None else resized(dataset, side)
    cache: dict[int, Bytes] = {}
    places: list[int] = []
    problems = list(dataset.problems)
    shape: tuple[int, ...] = ()

    def read(place: int) -> Bytes | Problem:
        try:
            return images[place].image
        except BeaufortError as error:
            return Problem(images.ids[place], str(error))

    with ThreadPoolExecutor(8) as pool:
        for place, image in enumerate(pool.map(read, range(len(images)))):
            if isinstance(image, Problem):
                problems.append(image)
                continue
            shape = shape or image.shape
            if image.shape != shape:
                raise ImageValueError(
                    f"images have different shapes, {image.shape} for {images.ids[place]} and {shape} for "
                    f"{images.ids[places[0]]}; use side (--side 32) to resize them to color squares"
                )
            places.append(place)
            if image.nbytes * len(images) <= _CACHE_BYTES:
                cache[place] = image
    kept = replace(images, pixels=_CachedPixels(images.pixels, cache)) if cache else images
    usable = kept.select(np.array(places, np.int64)) if problems else kept
    return replace(usable, problems=()), tuple(problems)


@dataclass(frozen=True, eq=False)
class _CachedPixels:
    """Images in memory, with the digest of their source."""

    pixels: Pixels
    cache: dict[int, Bytes]

    def read(self, index: int) -> Bytes:
        return self.cache[index].copy() if index in self.cache else self.pixels.read(index)

    def contents(self, count: int) -> Iterator[Content]:
        return self.pixels.contents(count)


def _unread(
    dataset: Dataset, usable: Dataset, column: str, values: Iterable[str], problems: Sequence[Problem]
) -> Counter[str]:
    """Return how many images of each value cannot be read; each value must have others."""
    cells = dataset.column(column)
    every, left = Counter(cells), Counter(usable.column(column))
    if lost := [value for value in values if not left[value]]:
        of_value = {id for id, cell in zip(dataset.ids, cells, strict=True) if cell == lost[0]}
        first = next(problem for problem in problems if problem.id in of_value)
        raise OptionError(
            f"no image with {column}={lost[0]} can be read (first: {first.id}: {first.message})"
        )
    return every - left


def _check_start(start: str, usable: Dataset, column: str, values: Iterable[str], seen: float) -> None:
    """Reject a start network that is known to have been trained on left-out images.

    A trained network records the number and the digest of its training images. They identify all images, and
    those of all values but another one, as in an earlier run. Other overlaps are unknown, and a remark says
    so.
    """
    for name, data in _ancestors(start):
        for words, images, unseen in _recognizable(usable, column, seen):
            if data.get("images") != len(images) or data.get("digest") != images.digest():
                continue
            if leaked := [value for value in values if value != unseen]:
                before = "" if name == start else f", which started from {name!r}"
                raise OptionError(
                    f"start {start!r}{before} was trained on {words} of {usable.name}, so it has seen the "
                    f"left-out {column}={leaked[0]}"
                )


def _ancestors(start: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a trained network and those that it started from, as far as they exist, with the data of each."""
    known: set[str] = set()
    while start and start not in known:
        known.add(start)
        try:
            facts = read_facts(find_trained(start))
        except UnknownNameError:
            if len(known) == 1:
                raise
            return
        yield start, facts.get("data") or {}
        recipe = facts["recipe"]
        start = recipe.get("start", "") if isinstance(recipe, dict) else ""


def _recognizable(usable: Dataset, column: str, seen: float) -> Iterator[tuple[str, Dataset, str | None]]:
    """Yield possible training sets: a description, the images, and the value that is not among them."""
    yield "all images", usable, None
    for value, split in leave_one_out(usable, column).items():
        words = f"images of all values but {value}"
        yield words, usable.select(split.train), value
        with suppress(OptionError):  # too few images to keep some back
            yield words, usable.select(_kept_back(split, seen, usable.labels)[0]), value


@dataclass
class _Runs:
    dataset: Dataset
    recipe: Recipe
    folder: Path
    seeds: int
    device: str
    progress: Callable[[LeaveOutProgress], None] | None
    total: int
    begun: int = 0
    failed: list[str] = field(default_factory=list)

    @property
    def store(self) -> Path:
        """Store of the predictions; `answers` is its earlier name."""
        earlier = self.folder / "answers"
        return earlier if earlier.exists() else self.folder / "predictions"

    def score(self, value: str, split: Split, train_on: Places, kept_back: Places, unread: int) -> ValueScore:
        """Train without a value, once for each seed, and score."""
        training = replace(self.dataset.select(train_on), name=f"{self.dataset.name}-without-{_slug(value)}")
        test = self.dataset.select(np.concatenate([split.test, kept_back]))
        test = replace(test, name=f"left-out-{_slug(value)}")
        source = open_training_data(training)
        each = [self._correct(value, seed, source, test) for seed in range(self.seeds)]
        correct = np.array([[one[id] for id in test.ids] for one in each], np.bool_)
        held_out, rest = correct[:, : len(split.test)], correct[:, len(split.test) :]
        return value_score(
            value, len(train_on), held_out, rest if len(kept_back) else None, cap=split.cap, unread=unread
        )

    def _correct(self, value: str, seed: int, source: TrainingData, test: Dataset) -> dict[str, bool]:
        """Train a network and return whether each image is classified correctly, by its id."""
        name = f"{_slug(value)}-seed{seed}"
        folder = self.folder / "trained" / name
        begun, self.begun = self.begun, self.begun + 1

        def report(at: TrainingProgress) -> None:
            if self.progress:
                done = begun * at.steps + at.step
                self.progress(LeaveOutProgress(value, seed, done, self.total * at.steps))

        made = train(self.recipe, source, output=folder, seed=seed, device=self.device, progress=report)
        if made.facts["losses"][-1] is None:
            raise OptionError(
                f"the training run without {value}, seed {seed}, ended after "
                f"{counted(made.facts['steps'], 'step')} with a loss that is not a number; choose a lower "
                f"rate than {self.recipe.rate:g}, and another output"
            )
        if why := failure(made.facts):
            self.failed.append(f"{value}, seed {seed}: {why}")
        options = {"device": self.device, "name": name}
        if self.recipe.architecture.startswith("python:"):
            options["arch"] = self.recipe.architecture
        suite = Suite(name="leave-out", version=1, dataset=test.name)
        model = LazyModel(f"trained:{folder}", options)
        done = evaluate([model], suite, test, self.store, labels="identity")
        predictions = done.scores(calibration=False).results.predictions(name)
        return dict(zip(predictions.ids, predictions.correct[0].tolist(), strict=True))


def _kept_back(split: Split, seen: float, labels: Places) -> tuple[Places, Places]:
    """Return the images to train on, and those of seen values to score on; always the same ones.

    One image of each class stays in training, so that keeping images back makes no class impossible to learn.
    """
    wanted = round(seen * len(split.train))
    if seen > 0:
        wanted = max(1, wanted)
    order = np.random.default_rng([len(labels), len(split.train)]).permutation(len(split.train))
    shuffled = split.train[order]
    classes, from_end = np.unique(labels[shuffled][::-1], return_index=True)
    free = np.delete(shuffled, len(shuffled) - 1 - from_end)
    if wanted > len(free):
        raise OptionError(
            f"without {split.name}, there are only {counted(len(split.train), 'image')} of "
            f"{counted(len(classes), 'class', 'classes')} to train on, too few to keep {wanted} back; choose "
            f"{'a smaller fraction' if len(free) else '0'} for seen"
        )
    kept_back = np.sort(free[:wanted])
    return np.setdiff1d(split.train, kept_back), kept_back


def _slug(value: str) -> str:
    """Return a file name for a value, unique also without regard to case.

    >>> _slug("nikon"), _slug("Canon EOS 5D")
    ('nikon', 'Canon-EOS-5D-5c19eee0')
    """
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", value).strip("-._")[:60]
    if plain == value == value.lower() and not re.search("-[0-9a-f]{8}$", plain):
        return plain
    return f"{plain or 'value'}-{zlib.crc32(value.encode()):08x}"
