"""Train, evaluate and score for each value; training runs and predictions that exist are not made again."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.files import write_bytes
from beaufort._core.text import counted
from beaufort._core.validation import validate_count
from beaufort.data import Dataset, Problem, load_dataset
from beaufort.data.protocols import Split, hold_out, leave_one_out
from beaufort.evaluation import LazyModel
from beaufort.results import evaluate
from beaufort.studies.leave_out.readable_images import readable
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


class LeaveOutProgress(NamedTuple):
    """How far it is."""

    value: str
    seed: int
    step: int
    """Steps of all trainings that are done."""
    steps: int


@dataclass(frozen=True)
class LeaveOut:
    """What came of it."""

    column: str
    values: tuple[ValueScore, ...]
    unread: tuple[Problem, ...]
    """Images that could not be read: nothing was trained or scored on them."""
    folder: Path
    failed: tuple[str, ...] = ()
    """Trainings that show no sign of learning, with their losses; they are part of the scores."""


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
    """Train without each value of a column in turn, and score on what was left out.

    Args:
        data: what `load_dataset` opens, a CSV list say, or an open data set with the column.
        column: any column of the list; of Icons-50, `style`, `version` or `subtype`.
        recipe: how to train: a recipe, the name of one, or a YAML file; `start` of it fine-tunes.
        output: a folder for trained networks, their answers, a table and a page.
        only: a value or some; all of them if none are named.
        side: images are brought to squares of so many pixels; all must have one size if None.
        seen: share of the images of other values that is kept back from training and scored as well.
        seeds: trainings for each value.
        device: `cpu`, `cuda`, `cuda:1`; `auto` takes a GPU if there is one.
        progress: called at least once an epoch.
    """
    if not 0 <= seen < 1:
        raise OptionError(f"seen must be a share from 0 to below 1, got {seen!r}")
    seeds = validate_count("seeds", seeds)
    chosen_recipe = get_recipe(recipe) if isinstance(recipe, str) else recipe
    chosen_recipe.check_start()
    dataset = load_dataset(data) if isinstance(data, str) else data
    wanted = list(_splits(dataset, column, only))
    usable, problems = readable(dataset, side)
    unread = _unread(dataset, usable, column, wanted, problems)
    splits = _splits(usable, column, wanted)
    _check_classes(usable)
    _check_start(chosen_recipe.start, usable, column, splits, seen)
    parts = {value: _kept_back(split, seen, usable.labels) for value, split in splits.items()}
    runs = _Runs(usable, chosen_recipe, Path(output), seeds, device, progress, len(splits) * seeds)
    scores = tuple(runs.score(value, split, *parts[value], unread[value]) for value, split in splits.items())
    found = LeaveOut(column, scores, problems, Path(output), tuple(runs.failed))
    write_bytes(found.folder / TABLE, values_csv(column, scores).encode())
    page = values_page(column, dataset.name, chosen_recipe, scores, problems, found.failed)
    write_bytes(found.folder / PAGE, page.encode())
    return found


def _splits(dataset: Dataset, column: str, only: str | Iterable[str]) -> dict[str, Split]:
    """The splits of some values, of all if none are named."""
    chosen = (only,) if isinstance(only, str) else tuple(only)
    return {one: hold_out(dataset, column, one) for one in chosen} or leave_one_out(dataset, column)


def _unread(
    dataset: Dataset, usable: Dataset, column: str, values: Iterable[str], problems: Sequence[Problem]
) -> Counter[str]:
    """How many images of each value cannot be read; some of each value must be left."""
    cells = dataset.column(column)
    every, left = Counter(cells), Counter(usable.column(column))
    if lost := [value for value in values if not left[value]]:
        of_value = {id for id, cell in zip(dataset.ids, cells, strict=True) if cell == lost[0]}
        first = next(problem for problem in problems if problem.id in of_value)
        raise OptionError(
            f"{column}={lost[0]} must have images that can be read, got none (first: {first.id}: "
            f"{first.message})"
        )
    return every - left


def _check_classes(usable: Dataset) -> None:
    """Refuse images of one class, of which every answer would be right."""
    there = np.unique(usable.labels)
    if len(there) < 2:
        raise OptionError(
            f"{usable.name} must have images of two classes or more, got one, {usable.classes[there[0]]!r}"
        )


def _check_start(start: str, usable: Dataset, column: str, values: Iterable[str], seen: float) -> None:
    """Refuse a network that is known to have seen what is left out.

    A trained network has the number and the digest of the images that it was trained on. So it is found out
    where these are all images, or those of all values but another one, as in an earlier run. Whether it saw
    some of them in another way is not known, and a remark says so.
    """
    for name, data in _trainings(start):
        for words, images, unseen in _recognized(usable, column, seen):
            if data.get("images") != len(images) or data.get("digest") != images.digest():
                continue
            if shown := [value for value in values if value != unseen]:
                before = "" if name == start else f", which began with {name!r}"
                raise OptionError(
                    f"start must be a network that has not seen what is left out, {column}={shown[0]}, got "
                    f"{start!r}{before}, which was trained on {words} of {usable.name}"
                )


def _trainings(start: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A trained network and those that it began with, as far as they are there, with the data of each."""
    told: set[str] = set()
    while start and start not in told:
        told.add(start)
        try:
            facts = read_facts(find_trained(start))
        except UnknownNameError:
            if len(told) == 1:
                raise
            return
        yield start, facts.get("data") or {}
        recipe = facts["recipe"]
        start = recipe.get("start", "") if isinstance(recipe, dict) else ""


def _recognized(usable: Dataset, column: str, seen: float) -> Iterator[tuple[str, Dataset, str | None]]:
    """Images that a training may have been on: in words, themselves, and the value that is not among them."""
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
    trainings: int
    begun: int = 0
    failed: list[str] = field(default_factory=list)

    def score(self, value: str, split: Split, train_on: Places, kept_back: Places, unread: int) -> ValueScore:
        """Train without a value, once for each seed, and score."""
        learned = replace(self.dataset.select(train_on), name=f"{self.dataset.name}-without-{_slug(value)}")
        shown = replace(
            self.dataset.select(np.concatenate([split.test, kept_back])), name=f"left-out-{_slug(value)}"
        )
        learned_from = open_training_data(learned)
        each = [self._correct(value, seed, learned_from, shown) for seed in range(self.seeds)]
        right = np.array([[one[id] for id in shown.ids] for one in each], np.bool_)
        held_out, rest = right[:, : len(split.test)], right[:, len(split.test) :]
        return value_score(
            value, len(train_on), held_out, rest if len(kept_back) else None, cap=split.cap, unread=unread
        )

    def _correct(self, value: str, seed: int, learned: TrainingData, shown: Dataset) -> dict[str, bool]:
        """Train a network and return whether each image is classified correctly, by its id."""
        folder = self.folder / "trained" / f"{_slug(value)}-seed{seed}"
        begun, self.begun = self.begun, self.begun + 1

        def tell(at: TrainingProgress) -> None:
            if self.progress:
                done = begun * at.steps + at.step
                self.progress(LeaveOutProgress(value, seed, done, self.trainings * at.steps))

        made = train(self.recipe, learned, output=folder, seed=seed, device=self.device, progress=tell)
        if made.facts["losses"][-1] is None:
            raise OptionError(
                f"the training without {value}, seed {seed}, ended after "
                f"{counted(made.facts['steps'], 'step')} with a loss that is not a number, so there is "
                f"nothing to score; choose a lower rate than {self.recipe.rate:g}, and another output"
            )
        if why := failure(made.facts):
            self.failed.append(f"{value}, seed {seed}: {why}")
        options = {"device": self.device, "name": f"{_slug(value)}-seed{seed}"}
        if self.recipe.architecture.startswith("python:"):
            options["arch"] = self.recipe.architecture
        suite = Suite(name="leave-out", version=1, dataset=shown.name)
        model = LazyModel(f"trained:{folder}", options)
        done = evaluate([model], suite, shown, self.folder / "answers", labels="identity")
        answers = done.scores(calibration=False).results.predictions(options["name"])
        return dict(zip(answers.ids, answers.correct[0].tolist(), strict=True))


def _kept_back(split: Split, share: float, labels: Places) -> tuple[Places, Places]:
    """The images to train on, and those of seen values to score on; which ones depends on nothing else.

    An image of each class stays in training, so that keeping back makes no class impossible to learn.
    """
    wanted = round(share * len(split.train))
    if share > 0:
        wanted = max(1, wanted)
    order = np.random.default_rng([len(labels), len(split.train)]).permutation(len(split.train))
    shuffled = split.train[order]
    classes, from_end = np.unique(labels[shuffled][::-1], return_index=True)
    free = np.delete(shuffled, len(shuffled) - 1 - from_end)
    if wanted > len(free):
        raise OptionError(
            f"{split.name} must leave an image of each class to train on beside {wanted} to keep back, got "
            f"{counted(len(split.train), 'image')} of {counted(len(classes), 'class', 'classes')}; choose "
            f"{'a smaller share' if len(free) else '0'} for seen"
        )
    kept_back = np.sort(free[:wanted])
    return np.setdiff1d(split.train, kept_back), kept_back


def _slug(value: str) -> str:
    """A value as the name of a file, no two the same, also where capitals do not count.

    >>> _slug("nikon"), _slug("Canon EOS 5D")
    ('nikon', 'Canon-EOS-5D-5c19eee0')
    """
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", value).strip("-._")[:60]
    if plain == value == value.lower() and not re.search("-[0-9a-f]{8}$", plain):
        return plain
    return f"{plain or 'value'}-{zlib.crc32(value.encode()):08x}"
