"""Pictures under every condition, with the models' answers: strips, and mistakes drawn at random."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.corruptions import Severity
from beaufort.data import Dataset, load_dataset
from beaufort.evaluation import Setup
from beaufort.report._answers import scored_answers
from beaufort.report._thumbnails import Album
from beaufort.results import Predictions, Scores
from beaufort.suites.conditions import Condition

STRIPS = 3
"""Pictures that are shown under every condition."""
STRIP_SIDE, MISTAKE_SIDE = 128, 96
"""Of a thumbnail, in pixels."""
STRIP_BYTES, ALL_BYTES = 2_400_000, 6_000_000
"""Of base64 that the strips, and all pictures of a page, may take."""
MISTAKES = 6
"""Of each model under each corruption."""

Work = Callable[[int, int], None]
"""Called with how much is done, and of how much."""


@dataclass(frozen=True)
class Answer:
    """What a model said to a picture."""

    label: int
    confidence: float


@dataclass(frozen=True)
class Strip:
    """One picture under every condition of a suite, in its order."""

    name: str
    truth: int | None
    """Its class; None if nobody knows."""
    pictures: tuple[int, ...]
    """Places in `Examples.pictures`."""
    answers: Mapping[str, tuple[Answer, ...]]
    """By model."""


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer under corruption."""

    corruption: str
    severity: Severity | None
    picture: int
    clean: int | None
    """What the model said to the clean picture; None if the suite has no clean ones."""
    answer: Answer
    truth: int


@dataclass(frozen=True)
class Examples:
    """All that a page shows of pictures."""

    pictures: tuple[str, ...]
    """Addresses that hold them."""
    strips: tuple[Strip, ...]
    mistakes: Mapping[str, tuple[WrongAnswer, ...]] | None
    """By model; None where the test images are not shown."""
    classes: tuple[str, ...]
    note: str
    """Which pictures these are."""
    seed: int = 0
    """Of the draws."""


def examples_of_data(
    scores: Scores, data: str | Dataset, *, seed: int = 0, progress: Work | None = None
) -> Examples:
    """Examples from the test images, corrupted as they were in the run; answers are the stored ones.

    Args:
        scores: whose models.
        data: the data set of the run, or a text for `load_dataset`.
        seed: decides which images and mistakes are drawn.
        progress: called after each step.
    """
    if scores.results.stored:
        raise OptionError(
            "pictures that lay corrupted on a disk cannot be shown with --data, which corrupts clean ones; "
            "leave it out"
        )
    dataset = data if isinstance(data, Dataset) else load_dataset(data)
    _check_same(scores, dataset)
    shower, album = _Shower(scores, dataset), Album()
    every = scored_answers(scores)
    first = every[scores.models[0].model]
    steps = len(scores.models) * len(scores.suite.corruptions)
    done = itertools.count(1)
    strips = []
    named = _named_clean(first)
    pool = named if len(named) else np.arange(len(first))
    for place in map(int, np.random.default_rng([seed % 2**64, 1]).permutation(pool)[:STRIPS]):
        if album.size < STRIP_BYTES:
            strips.append((place, shower.strip(album, first, place)))
    said: list[dict[str, tuple[Answer, ...]]] = [{} for _ in strips]
    mistakes: dict[str, tuple[WrongAnswer, ...]] = {}
    for name, answers in every.items():
        for spoken, (place, _) in zip(said, strips, strict=True):
            spoken[name] = tuple(_answer(answers, row, place) for row in range(len(answers.conditions)))
        found: list[WrongAnswer] = []
        for corruption in scores.suite.corruptions:
            if album.size < ALL_BYTES:
                found += _mistakes(shower, album, answers, corruption, seed)
            if progress:
                progress(next(done), steps)
        if album.size < ALL_BYTES or not mistakes:
            mistakes[name] = tuple(found)
    classes = scores.results.classes or dataset.classes
    among = f", among those that {scores.models[0].model} names correctly when they are clean"
    note = (
        f"Test images of {dataset.name}, corrupted exactly as they were for the models. Drawn at random with "
        f"the seed {seed}{among if len(named) else ''}."
    )
    shown = tuple(
        Strip(first.ids[place], int(first.labels[place]), pictures, spoken)
        for spoken, (place, pictures) in zip(said, strips, strict=True)
    )
    return Examples(tuple(album.pictures), shown, mistakes, classes, note, seed)


def _check_same(scores: Scores, dataset: Dataset) -> None:
    wanted = scores.results.setting.data
    if (digest := dataset.digest()) != wanted:
        raise OptionError(
            f"data must be the data set of the run, {scores.results.dataset} ({wanted[:12]}), got "
            f"{dataset.name} ({digest[:12]}); show other pictures with --pictures"
        )


class _Shower:
    """Test images as the models saw them."""

    def __init__(self, scores: Scores, dataset: Dataset) -> None:
        suite, setting = scores.suite, scores.results.setting
        self.setup = Setup(dataset, len(dataset), suite.prepare, suite.scale, setting.seed or 0, suite)
        self.places = {image: place for place, image in enumerate(dataset.ids)}
        self._clean: dict[str, Bytes] = {}

    def clean(self, image: str) -> Bytes:
        if image not in self._clean:
            if len(self._clean) > 256:
                self._clean.clear()
            self._clean[image] = self.setup.image(self.setup.dataset[self.places[image]])
        return self._clean[image]

    def shown(self, image: str, condition: Condition) -> Bytes:
        batch = self.clean(image)[None]
        seed, scale = self.setup.seed, self.setup.scale
        corrupted: Bytes = condition.apply(batch, ids=[image], seed=seed, scale=scale)
        shown: Bytes = corrupted[0]
        return shown

    def strip(self, album: Album, answers: Predictions, place: int) -> tuple[int, ...]:
        """An image under every condition, in an album."""
        image, setup = answers.ids[place], self.setup
        clean, conditions = self.clean(image), answers.conditions
        return show_strip(album, clean, image, conditions, seed=setup.seed, scale=setup.scale)[0]


def show_strip(
    album: Album, clean: Bytes, image: str, conditions: Sequence[Condition], *, seed: int, scale: str
) -> tuple[tuple[int, ...], list[Bytes]]:
    """A picture under every condition: places in the album, and the pixels."""
    places, shown = [], []
    for condition in conditions:
        pixels = condition.apply(clean[None], ids=[image], seed=seed, scale=scale)[0]
        places.append(album.add((image, condition, STRIP_SIDE), pixels, STRIP_SIDE))
        shown.append(pixels)
    return tuple(places), shown


def _answer(answers: Predictions, row: int, place: int) -> Answer:
    return Answer(int(answers.top[row, place, 0]), float(answers.confidence[row, place]))


def _named_clean(answers: Predictions) -> NDArray[np.intp]:
    """Places of the images that the model names correctly when they are clean; none if it saw none so."""
    clean = [row for row, condition in enumerate(answers.conditions) if condition.clean]
    return np.flatnonzero(answers.correct[clean[0]]) if clean else np.arange(0)


def _mistakes(
    shower: _Shower, album: Album, answers: Predictions, corruption: str, seed: int
) -> Iterator[WrongAnswer]:
    """Some wrong answers under a corruption, all severities alike, each image once."""
    rows = np.array(answers.rows[corruption])
    wrong = np.argwhere(~answers.correct[rows])
    rng = np.random.default_rng([seed % 2**64, 2, *corruption.encode()])
    clean = next((row for row, condition in enumerate(answers.conditions) if condition.clean), None)
    seen: set[int] = set()
    for at in rng.permutation(len(wrong)):
        row, place = int(rows[wrong[at, 0]]), int(wrong[at, 1])
        if place in seen:
            continue
        seen.add(place)
        condition, image = answers.conditions[row], answers.ids[place]
        key = image, condition.corruption, condition.severity, MISTAKE_SIDE
        picture = album.place(key)
        if picture is None:
            picture = album.add(key, shower.shown(image, condition), MISTAKE_SIDE)
        yield WrongAnswer(
            corruption,
            condition.severity,
            picture,
            None if clean is None else int(answers.top[clean, place, 0]),
            _answer(answers, row, place),
            int(answers.labels[place]),
        )
        if len(seen) == MISTAKES:
            return
