"""Quick checks of a model before it is run on many images.

The logits of an image must not depend on the other images of the batch or on earlier calls: stored
predictions could not be reproduced. A model at chance level, a clearly better preprocessing, or probabilities
in place of logits are reported. `beaufort check` has more checks, and needs more time for them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.text import counted
from beaufort.data import Problem
from beaufort.data.labels import LabelSpace
from beaufort.evaluation.sources import ImageSource
from beaufort.metrics.stats import clopper_pearson
from beaufort.models import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    FilteredModel,
    Model,
    ModelError,
    ModelSpec,
    Network,
    Preprocessing,
)
from beaufort.models.scoring import are_probabilities

LEAST_IMAGES = 16
"""Number of images below which nothing is concluded about the preprocessing."""
_LEAST_FOR_CHANCE = 50
"""Number of images below which an accuracy that is not above chance is not reported."""
MOST_IMAGES = 128
_MOST_BYTES = 1 << 26
CLEAR = 3.0
"""Standard deviations by which the accuracy with another preprocessing must be higher to be reported."""
_GOOD = 0.9
"""Accuracy above which no other preprocessing is tried."""
_LEVEL = 0.99
"""Level of the intervals that separate an accuracy from chance."""
_ROUNDING, _HALF_ROUNDING = 1e-3, 2e-2
"""Largest difference of logits by rounding, as a fraction of their range, in float32 and half precision."""
_SECONDS, _FRACTION = 1.0, 0.01
"""Time for the accuracy: a second, or this fraction of the time that the run takes."""


@dataclass(frozen=True)
class MeasuredAccuracy:
    """Number of labeled images that a model classifies correctly, compared with chance."""

    images: int
    right: int
    chance: float
    """Accuracy of predicting the most frequent class, or a random one, whichever is larger."""
    order: str = ""
    """Order of the classes that would explain an accuracy at chance; empty if none was found."""
    ordered: float = 0.0
    """Accuracy with that order."""

    @property
    def value(self) -> float:
        """The accuracy."""
        return self.right / self.images

    @property
    def at_chance(self) -> bool:
        """Whether it is not significantly above chance."""
        return not above_chance(self.right, self.images, self.chance)

    def __str__(self) -> str:
        end = ", no better than chance" if self.at_chance else ""
        return (
            f"accuracy on {counted(self.images, 'image')}: {self.value:.1%}; chance: {self.chance:.1%}{end}"
        )


def above_chance(right: int, images: int, chance: float, tries: int = 1) -> bool:
    """Return whether an accuracy, the best of several tries, is significantly above chance."""
    return clopper_pearson(right, images, 1 - (1 - _LEVEL) / tries).low > chance


def judge_accuracy(
    logits: NDArray[np.float32], labels: NDArray[np.int64], names: Sequence[str] = ()
) -> MeasuredAccuracy:
    """Return the accuracy of logits `(images, classes)`, and the order of classes that may explain it.

    Args:
        logits: one column per class.
        labels: the true classes.
        names: class names, if known: the outputs of a model may be in their alphabetical order.
    """
    predicted, classes = logits.argmax(axis=1), logits.shape[1]
    chance = max(1 / classes, float(np.bincount(labels).max() / len(labels)))
    found = MeasuredAccuracy(len(labels), int((predicted == labels).sum()), chance)
    if not found.at_chance:
        return found
    orders = list(_orders(classes, names))
    rights = [int((order[predicted] == labels).sum()) for _, order in orders]
    best = int(np.argmax(rights))
    if above_chance(rights[best], len(labels), chance, len(orders)):
        return replace(found, order=orders[best][0], ordered=rights[best] / len(labels))
    learned = _learned_order(predicted, labels, classes)
    if learned is not None and above_chance(*learned, chance):
        return replace(
            found, order="an order learned from half of the images", ordered=learned[0] / learned[1]
        )
    return found


def _orders(classes: int, names: Sequence[str]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield common orders of outputs: a description, and the class of each output."""
    numbers = np.arange(classes)
    as_text = np.array(sorted(range(classes), key=str))
    yield "the order of their numbers sorted as text (0, 1, 10, 11, …)", as_text
    yield "the inverse of their numbers sorted as text (0, 1, 10, 11, …)", np.argsort(as_text)
    if len(names) == classes:
        by_name = np.array(sorted(range(classes), key=lambda label: names[label]))
        yield "the alphabetical order of their names", by_name
        yield "the inverse of the alphabetical order of their names", np.argsort(by_name)
    yield "an order shifted by one", (numbers + 1) % classes
    yield "an order shifted by one", (numbers - 1) % classes
    yield "reversed order", numbers[::-1]


def _learned_order(
    predicted: NDArray[np.int64], labels: NDArray[np.int64], classes: int
) -> tuple[int, int] | None:
    """Return the number of correct predictions, and of images, in one half of the images.

    Each output stands for the class that it was most often predicted for in the other half.
    """
    half = np.zeros(len(labels), np.bool_)
    for label in np.unique(labels):
        half[np.flatnonzero(labels == label)[::2]] = True
    if half.all():
        return None
    counts = np.zeros((classes, max(classes, int(labels.max()) + 1)), np.int64)
    np.add.at(counts, (predicted[half], labels[half]), 1)
    meant = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
    return int((meant[predicted[~half]] == labels[~half]).sum()), int((~half).sum())


def predict_batches(model: Model, images: Bytes) -> NDArray[Any]:
    """Return the logits of images, predicted in batches of up to 32, of about the same size."""
    return np.concatenate([model(some) for some in np.array_split(images, max(1, -(-len(images) // 32)))])


def preprocessing_variants(model: Model, images: Bytes) -> Iterator[tuple[str, str, Model]]:
    """Yield what may be wrong in a model's preprocessing, the options that fix it, and the fixed model."""
    if isinstance(model, FilteredModel):
        for what, options, inner in preprocessing_variants(model.model, images):
            yield what, options, replace(model, model=inner)
        return
    colored = images.shape[-1] == 3 and bool((images[..., 0] != images[..., 2]).any())
    if not isinstance(model, Network):
        if colored:
            yield "channel order", "reversed channels", _ReversedChannels(model)
        return
    current = model.spec.preprocessing
    ranges = [("", current)] if current.dtype == "uint8" else [("", current), *_ranges(current)]
    for options, changed in ranges:
        if options:
            yield "range", options, model.with_preprocessing(changed)
        if colored and current.channels == 3:
            order = "RGB" if current.order == "BGR" else "BGR"
            what = "range and channel order" if options else "channel order"
            reordered = model.with_preprocessing(replace(changed, order=order))
            yield what, f"{options} order={order}".strip(), reordered


def _ranges(current: Preprocessing) -> Iterator[tuple[str, Preprocessing]]:
    half = (0.5,) * current.channels
    known: dict[str, tuple[str, tuple[float, ...], tuple[float, ...]]] = {
        "range=0..1": ("0..1", (), ()),
        "range=0..255": ("0..255", (), ()),
        "range=-1..1": ("0..1", half, half),
    }
    if current.channels == 3:
        imagenet = f"mean={','.join(map(str, IMAGENET_MEAN))} std={','.join(map(str, IMAGENET_STD))}"
        known[f"range=0..1 {imagenet}"] = ("0..1", IMAGENET_MEAN, IMAGENET_STD)
    for options, (value_range, mean, std) in known.items():
        changed = replace(current, value_range=value_range, mean=mean, std=std)
        if changed != current:
            yield options, changed


@dataclass(frozen=True)
class _ReversedChannels:
    """A model applied to images with reversed channels."""

    model: Model

    @property
    def spec(self) -> ModelSpec:
        return self.model.spec

    def __call__(self, images: Bytes) -> Any:
        return self.model(np.ascontiguousarray(images[..., ::-1]))


def accuracy_gain(declared: NDArray[Any], other: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return how much more accurate `other` is, in standard deviations of the images on which both differ."""
    before, after = declared.argmax(axis=1) == labels, other.argmax(axis=1) == labels
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    if (gained - lost) / len(labels) < 0.02:
        return 0.0
    return float((gained - lost) / np.sqrt(gained + lost))


def logit_distance(a: Any, b: Any) -> float:
    """Return the largest absolute difference; infinite if shapes differ. NaN equals NaN."""
    if np.shape(a) != np.shape(b):
        return float("inf")
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        apart = np.where(equal, 0.0, np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)))
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))


def probabilities_note(model: Model) -> str:
    """Return the note on a model whose outputs look like probabilities."""
    effect = "does not change accuracies"
    if isinstance(model, FilteredModel) and model.filter.views is not None:
        effect = "may change accuracies, because means over views differ"
    return (
        f"the outputs of {model.spec.name} look like probabilities: none is below 0, and each row sums to 1. "
        f"They are used as logits, which makes p, nll, brier and entropy wrong and {effect}; return the "
        "values before the softmax, or their logarithms"
    )


def check_before_run(
    model: Model, source: ImageSource, space: LabelSpace, *, allow_batch_dependence: bool, missing: int = 0
) -> Iterator[str]:
    """Yield notes on a model; reject one whose predictions depend on the batch, unless that is allowed.

    Args:
        model: the model.
        source: clean images.
        space: meaning of the outputs.
        allow_batch_dependence: whether to yield a note instead of raising an error.
        missing: number of predictions of the run, which limits the time of these checks. If 0, only the
            first image is used, and the accuracy is not measured.
    """
    if model.spec.outcomes:
        return  # a chat model: requests may be paid, and each is about a single image
    _, image = source.first_image
    batch = _variations(image[: len(image) // source.frames])
    try:
        logits = np.asarray(model(batch.copy()), np.float32)
        start = time.perf_counter()
        again = np.asarray(model(batch.copy()), np.float32)
        seconds = (time.perf_counter() - start) / len(batch)
    except Exception:  # of any library; raised again when the images are evaluated
        return
    if logits.ndim != 2 or len(logits) != len(batch):
        return
    if problem := _dependence(model, batch, logits, again):
        if not allow_batch_dependence:
            raise ModelError(
                f"predictions of {model.spec.name} {problem}. Put the model into evaluation mode "
                "(model.eval()). A model that adapts to the images is evaluated on streams (--adapt; in "
                "Python, a StatefulModel). Otherwise pass --allow-batch-dependence (in Python, "
                "RunOptions(allow_batch_dependence=True))"
            )
        yield (
            f"predictions of {model.spec.name} {problem}; its results are valid for this batch size and "
            "order of images only, and a resumed run may differ"
        )
    if logits.shape[1] > 1 and _own_logits_are_probabilities(model, batch, logits):
        yield probabilities_note(model)
    if missing and source.label_sets is None and not source.stored:
        limit = max(_SECONDS, _FRACTION * missing * seconds)
        yield from _accuracy_notes(model, source, space, seconds, limit)


def _variations(image: Bytes) -> Bytes:
    """Return an image, two mirrored copies and the negative."""
    return np.stack([image, image[:, ::-1], image[::-1], 255 - image])


def _own_logits_are_probabilities(model: Model, batch: Bytes, logits: NDArray[Any]) -> bool:
    """Return whether the rows look like probabilities, for each view of a filtered model."""
    views = model.view_logits(batch) if isinstance(model, FilteredModel) else [logits]
    return all(bool(are_probabilities(np.asarray(one, np.float32)).all()) for one in views)


def _dependence(model: Model, batch: Bytes, logits: NDArray[Any], again: NDArray[Any]) -> str:
    """Return on what the logits depend beside the image; '' if on nothing, apart from rounding."""
    finite = logits[np.isfinite(logits)]
    with np.errstate(over="ignore"):
        is_float16 = np.array_equal(finite, finite.astype(np.float16))
    half = is_float16 or not (finite.view(np.uint32) & 0xFFFF).any()  # or bfloat16
    limit = (_HALF_ROUNDING if half else _ROUNDING) * float(np.ptp(finite)) + 1e-6 if finite.size else 1e-6
    if (distance := logit_distance(again, logits)) > limit:
        return (
            f"depend on earlier calls or on random numbers: logits of the same batch differ by {distance:.3g}"
        )
    try:
        alone = np.concatenate([np.asarray(model(image[None].copy()), np.float32) for image in batch])
    except Exception as error:  # of any library
        reason = " ".join(str(error).split()) or "no message"
        return f"depend on the batch: it fails on a single image ({type(error).__name__}: {reason:.200})"
    if (distance := logit_distance(alone, logits)) > limit:
        return f"depend on the batch: logits of an image alone and in a batch differ by {distance:.3g}"
    return ""


def _accuracy_notes(
    model: Model, source: ImageSource, space: LabelSpace, seconds: float, limit: float
) -> Iterator[str]:
    """Yield notes on an accuracy at chance level, or a preprocessing that is clearly better."""
    affordable = int(limit / max(seconds, 1e-6))
    images, labels = _labeled_images(model.spec, source, min(MOST_IMAGES, affordable), limit)
    if len(images) < LEAST_IMAGES:
        return
    declared = space.apply(predict_batches(model, images))
    if declared.shape[1] < 2 or labels.max() >= declared.shape[1]:
        return
    found = judge_accuracy(declared, labels, source.dataset.classes)
    if found.value > _GOOD:
        return
    name, images = model.spec.name, images[: max(LEAST_IMAGES, affordable // 8)]
    declared, labels = declared[: len(images)], labels[: len(images)]
    best: tuple[float, str, float] = (0.0, "", 0.0)
    for _, options, variant in preprocessing_variants(model, images):
        logits = space.apply(predict_batches(variant, images))
        after = judge_accuracy(logits, labels)
        if not after.at_chance:
            best = max(best, (accuracy_gain(declared, logits, labels), options, after.value))
    if best[0] >= CLEAR:
        before = float((declared.argmax(axis=1) == labels).mean())
        yield (
            f"the accuracy of {name} on {len(images)} clean images is {before:.1%} as loaded and "
            f"{best[2]:.1%} with {best[1]}; `beaufort check` tests this with more images"
        )
    elif found.at_chance and found.images >= _LEAST_FOR_CHANCE:
        order = f"; with the outputs in {found.order} it is {found.ordered:.1%}" if found.order else ""
        yield (
            f"the accuracy of {name} on {found.images} clean images is {found.value:.1%}, no better than "
            f"chance ({found.chance:.1%}){order}; `beaufort check` looks for the cause"
        )


def _labeled_images(
    spec: ModelSpec, source: ImageSource, count: int, seconds: float
) -> tuple[Bytes, NDArray[np.int64]]:
    """Return images of one size, spread over the dataset, and their labels, read within a time limit."""
    until = time.perf_counter() + seconds
    places = np.unique(np.linspace(0, source.count - 1, min(count, source.count)).astype(np.int64))
    images: list[Bytes] = []
    labels: list[int] = []
    for place in np.random.default_rng(0).permutation(places):
        label = int(source.dataset.labels[place])
        image = source.images(int(place)) if label >= 0 else Problem("", "")
        if not isinstance(image, Problem):
            fitted = spec.preprocessing.fit(image[None])[0]
            if not images or fitted.shape == images[0].shape:
                images.append(fitted)
                labels.append(label)
        if time.perf_counter() > until or sum(one.nbytes for one in images) > _MOST_BYTES:
            break
    stacked = np.stack(images) if images else np.empty((0, 1, 1, 3), np.uint8)
    return stacked, np.array(labels, np.int64)
