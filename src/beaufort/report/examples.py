"""Example images under every condition with predictions, and random misclassified images."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.corruptions import Severity
from beaufort.data import Dataset, PreparedImages, load_dataset
from beaufort.data.selections import selections
from beaufort.report.thumbnails import Album
from beaufort.results import Predictions, Scores
from beaufort.suites.conditions import Condition

STRIPS = 3
"""Number of images that are shown under every condition."""
STRIP_SIDE, MISTAKE_SIDE = 128, 96
"""Sides of thumbnails, in pixels."""
STRIP_BYTES, ALL_BYTES = 2_400_000, 6_000_000
"""Largest sizes of the strips, and of all images of a page, in base64."""
MISTAKES = 6
"""Largest number of misclassified images of a model under a corruption."""

Progress = Callable[[int, int], None]
"""Called with the number of steps done, and their total."""


@dataclass(frozen=True)
class Prediction:
    """The class that a model predicts for an image."""

    label: int
    confidence: float


@dataclass(frozen=True)
class Strip:
    """One image under every condition of a suite, in its order."""

    name: str
    label: int | None
    """Its label; None if unknown."""
    images: tuple[int, ...]
    """Indices into `Examples.images`."""
    predictions: Mapping[str, tuple[Prediction, ...]]
    """By model."""


@dataclass(frozen=True)
class WrongPrediction:
    """A wrong prediction under corruption."""

    corruption: str
    severity: Severity | None
    image: int
    clean: int | None
    """The predicted class of the clean image; None if the suite has no clean images."""
    prediction: Prediction
    label: int


@dataclass(frozen=True)
class Examples:
    """All images of a page."""

    images: tuple[str, ...]
    """Data URIs."""
    strips: tuple[Strip, ...]
    mistakes: Mapping[str, tuple[WrongPrediction, ...]] | None
    """By model; None if test images are not shown."""
    classes: tuple[str, ...]
    note: str
    """Description of the images."""
    seed: int = 0
    """Seed of the selection."""


def examples_of_data(
    scores: Scores, data: str | Dataset, *, seed: int = 0, progress: Progress | None = None
) -> Examples:
    """Return examples from the test images, corrupted as in the run, with the stored predictions.

    Args:
        scores: the scores, whose models are shown.
        data: the dataset of the run, or a text for `load_dataset`.
        seed: seed of the selection of images.
        progress: called after each step.
    """
    results, suite = scores.results, scores.suite
    dataset = dataset_of_run(scores, data)
    source, album = RunImages(scores, dataset), Album()
    every = scores.predictions()
    first = every[scores.models[0].model]
    steps = len(scores.models) * len(suite.corruptions)
    done = itertools.count(1)
    clean = first.rows.get(None)
    right = np.flatnonzero(first.correct[clean[0]]) if clean else np.arange(0)
    pool = right if len(right) else np.arange(len(first))
    strips = []
    for place in map(int, np.random.default_rng([seed % 2**64, 1]).permutation(pool)[:STRIPS]):
        if album.size < STRIP_BYTES:
            image = first.ids[place]
            places, _ = show_strip(album, scores, source.clean(image), image, first.conditions)
            strips.append((place, places))
    predicted: list[dict[str, tuple[Prediction, ...]]] = [{} for _ in strips]
    mistakes: dict[str, tuple[WrongPrediction, ...]] = {}
    for name, predictions in every.items():
        for by_model, (place, _) in zip(predicted, strips, strict=True):
            rows = range(len(predictions.conditions))
            by_model[name] = tuple(_prediction(predictions, row, place) for row in rows)
        found: list[WrongPrediction] = []
        for corruption in suite.corruptions:
            if album.size < ALL_BYTES:
                found += _mistakes(source, album, predictions, corruption, seed)
            if progress:
                progress(next(done), steps)
        if album.size < ALL_BYTES or not mistakes:
            mistakes[name] = tuple(found)
    among = f" among those that {scores.models[0].model} classifies correctly without corruption"
    note = (
        f"Test images of {dataset.name}, corrupted as in the run, drawn at random with the seed {seed}"
        f"{among if len(right) else ''}."
    )
    shown = tuple(
        Strip(first.ids[place], int(first.labels[place]), images, by_model)
        for by_model, (place, images) in zip(predicted, strips, strict=True)
    )
    return Examples(tuple(album.images), shown, mistakes, results.classes or dataset.classes, note, seed)


def dataset_of_run(scores: Scores, data: str | Dataset) -> Dataset:
    """Open the dataset of a run; another dataset is an error."""
    results, selection = scores.results, scores.suite.images
    if results.stored:
        raise OptionError("--data cannot show images of a published set that was corrupted before the run")
    dataset = data if isinstance(data, Dataset) else load_dataset(data)
    dataset = dataset if selection is None else selections[selection].select(dataset)
    if (digest := dataset.digest()) != results.setting.data:
        raise OptionError(
            f"--data must be the dataset of the run, {results.dataset} ({results.setting.data[:12]}), got "
            f"{dataset.name} ({digest[:12]}); pass --examples to show other images"
        )
    return dataset


class RunImages:
    """The test images, clean and corrupted as in the run."""

    def __init__(self, scores: Scores, dataset: Dataset) -> None:
        self.scores = scores
        images = PreparedImages(dataset, scores.suite.prepare, gray=scores.suite.scale == "mnist")
        places = {image: place for place, image in enumerate(dataset.ids)}
        self.clean: Callable[[str], Bytes] = lru_cache(256)(
            lambda image: images.prepare(dataset[places[image]].image)
        )

    def corrupted(self, image: str, condition: Condition) -> Bytes:
        """Return an image under a condition, as the models of the run saw it before their preprocessing."""
        return _corrupted(self.scores, self.clean(image), image, condition)


def _corrupted(scores: Scores, clean: Bytes, image: str, condition: Condition) -> Bytes:
    seed = scores.results.setting.seed or 0
    pixels: Bytes = condition.apply(clean[None], ids=[image], seed=seed, scale=scores.suite.scale)[0]
    return pixels


def show_strip(
    album: Album, scores: Scores, clean: Bytes, image: str, conditions: Sequence[Condition]
) -> tuple[tuple[int, ...], list[Bytes]]:
    """Add an image under every condition to an album, and return the indices and the pixels."""
    shown = [_corrupted(scores, clean, image, condition) for condition in conditions]
    keys = ((image, condition, STRIP_SIDE) for condition in conditions)
    return tuple(album.add(key, pixels, STRIP_SIDE) for key, pixels in zip(keys, shown, strict=True)), shown


def _prediction(predictions: Predictions, row: int, place: int) -> Prediction:
    return Prediction(int(predictions.top[row, place, 0]), float(predictions.confidence[row, place]))


def _mistakes(
    source: RunImages, album: Album, predictions: Predictions, corruption: str, seed: int
) -> Iterator[WrongPrediction]:
    """Yield random wrong predictions under a corruption, of all severities, each image once.

    With clean images, only images whose clean version is classified correctly are shown: the others say
    nothing about the corruption.
    """
    rows = np.array(predictions.rows[corruption])
    rng = np.random.default_rng([seed % 2**64, 2, *corruption.encode()])
    clean = predictions.rows.get(None)
    lost = ~predictions.correct[rows]
    if clean is not None:
        lost &= predictions.correct[clean[0]]
    wrong: NDArray[np.intp] = np.argwhere(lost)
    seen: set[int] = set()
    for at in rng.permutation(len(wrong)):
        row, place = int(rows[wrong[at, 0]]), int(wrong[at, 1])
        if place in seen:
            continue
        seen.add(place)
        condition, image = predictions.conditions[row], predictions.ids[place]
        key = image, condition.corruption, condition.severity, MISTAKE_SIDE
        shown = album.place(key)
        if shown is None:
            shown = album.add(key, source.corrupted(image, condition), MISTAKE_SIDE)
        yield WrongPrediction(
            corruption,
            condition.severity,
            shown,
            None if clean is None else int(predictions.top[clean[0], place, 0]),
            _prediction(predictions, row, place),
            int(predictions.labels[place]),
        )
        if len(seen) == MISTAKES:
            return
