"""What a model promises, one function a promise; and whether it is loaded as it was trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.data.labels import LabelSpace
from beaufort.metrics import entropy
from beaufort.models import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    FilteredModel,
    Model,
    ModelSpec,
    Network,
    Preprocessing,
)
from beaufort.models.scoring import are_probabilities
from beaufort.testing._accuracy import MeasuredAccuracy, above_chance, judge_accuracy
from beaufort.testing._contracts import digit, picture

_ENOUGH = 16
"""Images below which nothing is concluded about the preprocessing."""

_CLEAR, _LIKELY = 3.0, 2.0
"""Standard deviations by which another preprocessing must do better to be a problem, or a warning."""

_ROUNDING = 1e-3
"""Of the range of the logits: how much they may differ between batches."""


@dataclass(frozen=True)
class ModelFinding:
    """Something about a model that is not as it should be."""

    check: str
    """Which check found it."""
    level: str
    """`unusable`: it gives no answers; `problem`: numbers from it are wrong; `warning`: have a look."""
    message: str
    advice: str

    def to_dict(self) -> dict[str, str]:
        """The fields as JSON knows them."""
        return asdict(self)


@dataclass(frozen=True)
class _Trial:
    """A model and what it is tried with."""

    model: Model
    images: Bytes
    logits: NDArray[Any]

    @property
    def spec(self) -> ModelSpec:
        return self.model.spec

    @property
    def tolerance(self) -> float:
        return _ROUNDING * float(np.ptp(self.logits)) + 1e-6


def check_model(
    model: Model,
    *,
    images: Bytes | None = None,
    labels: NDArray[Any] | None = None,
    space: LabelSpace | None = None,
    classes: Sequence[str] = (),
) -> list[ModelFinding]:
    """What is wrong with a model; an empty list if nothing was found.

    Args:
        model: the model.
        images: uint8 `(n, h, w, c)`, at best some hundreds of real ones; drawn ones if not given, with
            which range and channel order cannot be judged.
        labels: the class of each; with them range, channel order and the order of the classes are judged by
            accuracy.
        space: which outputs count as each class; labels are numbers of outputs if None.
        classes: what the classes are called, if that is known.
    """
    if labels is not None and (images is None or np.shape(labels) != (len(images),)):
        raise OptionError(f"labels must have one entry per image, got shape {np.shape(labels)}")
    shown = _drawn(model.spec) if images is None else images
    few = shown[:8]
    try:
        free = _free(model)
        logits: Any = free(few.copy())
    except Exception as error:  # the model is anyone's
        return [_silent(model, error)]
    trial = _Trial(free, few, logits)
    findings = list(_answers_with_logits(trial, model.spec))
    if any(finding.level != "warning" for finding in findings):
        return findings
    if infinite := is_finite(trial):
        return findings + infinite  # distances between these say nothing
    for contract in MODEL_CONTRACTS.values():
        findings += contract(trial)
    space = space or LabelSpace(model.spec.classes)
    findings += _about_the_spec(model.spec, labels if space.identity else None)
    if images is not None:
        fits = _preprocessing_fits(free, images, labels, space)
        findings += fits
        if labels is not None and not fits and len(images) >= _ENOUGH:
            findings += _accuracy(measure_accuracy(free, images, labels, space=space, classes=classes))
    return findings


def measure_accuracy(
    model: Model,
    images: Bytes,
    labels: NDArray[Any],
    *,
    space: LabelSpace | None = None,
    classes: Sequence[str] = (),
) -> MeasuredAccuracy:
    """How often a model is right; arguments are those of `check_model`."""
    logits = _batched(model, images)
    return judge_accuracy(logits if space is None else space.apply(logits), labels, classes)


def _accuracy(found: MeasuredAccuracy) -> list[ModelFinding]:
    """A problem if it is at chance: with the order of classes that explains it, or the likely reasons."""
    if not found.at_chance:
        return []
    told = f"{found.value:.1%} of {found.images} images are right, no better than chance ({found.chance:.1%})"
    if found.order:
        told += f"; if the outputs are in {found.order}, {found.ordered:.1%} are"
        advice = "give the names of the outputs in their order, --classes FILE"
        return [ModelFinding("class order", "problem", told, advice)]
    advice = (
        "likely reasons, the first one first: another order of the classes (--classes FILE), another range "
        "(range=0..255), channels as BGR (order=BGR), another mean and std; or too few images to tell"
    )
    return [ModelFinding("accuracy", "problem", told, advice)]


def _free(model: Model) -> Model:
    """The model without its own check of the number of classes, which would end this one."""
    if isinstance(model, FilteredModel):
        return replace(model, model=_free(model.model))
    if isinstance(model, Network):
        return replace(model, spec=replace(model.spec, classes=None, class_names=None))
    return model


def _silent(model: Model, error: Exception) -> ModelFinding:
    told = " ".join(str(error).split()) or "no reason given"
    return ModelFinding(
        "answers",
        "unusable",
        f"{model.spec.name} fails on ordinary images: {type(error).__name__}: {told:.300}",
        "mend this first; nothing else can be checked",
    )


def _drawn(spec: ModelSpec) -> Bytes:
    """Eight pictures of the model's size."""
    height, width = spec.input_size or (64, 64)
    channels = spec.preprocessing.channels
    if (height, width, channels) == (28, 28, 1):
        return np.stack([digit(variant=i) for i in range(8)])
    noise = np.random.default_rng(0).integers(0, 256, (2, height, width, channels), np.uint8)
    return np.concatenate([np.stack([picture(height, width, channels, variant=i) for i in range(6)]), noise])


def _answers_with_logits(trial: _Trial, spec: ModelSpec) -> Iterator[ModelFinding]:
    """The answer is a float array `(n, classes)` with the classes that the spec says."""
    logits, count = trial.logits, len(trial.images)
    if not isinstance(logits, np.ndarray) or logits.ndim != 2 or len(logits) != count:
        told = f"an array {logits.shape}" if isinstance(logits, np.ndarray) else f"a {type(logits).__name__}"
        yield ModelFinding(
            "answers",
            "unusable",
            f"{count} images were answered with {told}; a NumPy array ({count}, classes) is expected",
            "return one row of logits an image",
        )
        return
    if logits.dtype != np.float32:
        level = "warning" if logits.dtype.kind == "f" else "problem"
        yield ModelFinding("answers", level, f"the logits are {logits.dtype}", "return float32")
    if spec.classes is not None and logits.shape[1] != spec.classes:
        yield ModelFinding(
            "class count",
            "problem",
            f"there are {logits.shape[1]} logits an image, and the spec says {spec.classes} classes",
            f"load it with classes={logits.shape[1]}; a class too many is often a background class",
        )


def is_finite(trial: _Trial) -> list[ModelFinding]:
    """No NaN and no infinity; an evaluation takes -inf alone, for a class that cannot be."""
    wrong = int((~np.isfinite(trial.logits)).any(axis=1).sum())
    if not wrong:
        return []
    told = f"the logits of {wrong} of {len(trial.images)} images are NaN or infinite"
    level = "problem" if np.isfinite(trial.logits.max(axis=1)).all() else "unusable"
    return [ModelFinding("finite", level, told, "look for a division by 0, or for float16 that overflows")]


def same_every_time(trial: _Trial) -> list[ModelFinding]:
    """Two calls give the same numbers."""
    again = trial.model(trial.images.copy())
    if np.array_equal(again, trial.logits, equal_nan=True):
        return []
    far = _distance(again, trial.logits)
    small = far <= trial.tolerance
    return [
        ModelFinding(
            "deterministic",
            "warning" if small else "problem",
            f"two calls on the same images differ by up to {far:.3g}",
            "an atomic sum on the device does this; it is within rounding"
            if small
            else "put it into evaluation mode: dropout, augmentation and sampling must be off",
        )
    ]


def same_alone_as_in_a_batch(trial: _Trial) -> list[ModelFinding]:
    """An image's logits do not depend on its company, beyond rounding."""
    alone = np.concatenate([trial.model(image[None].copy()) for image in trial.images])
    far = _distance(alone, trial.logits)
    if far <= trial.tolerance:
        return []
    told = f"an image alone and in a batch gets logits that differ by up to {far:.3g}"
    return [
        ModelFinding(
            "batch", "problem", told, "put it into evaluation mode: batch statistics must not be used"
        )
    ]


def same_in_any_order(trial: _Trial) -> list[ModelFinding]:
    """Rows are in the order of the images."""
    turned = trial.model(np.ascontiguousarray(trial.images[::-1]))[::-1]
    far = _distance(turned, trial.logits)
    if far <= trial.tolerance:
        return []
    told = f"in reversed order the images get logits that differ by up to {far:.3g}"
    return [ModelFinding("order", "problem", told, "return a row for each image, in the order of the images")]


def leaves_input_alone(trial: _Trial) -> list[ModelFinding]:
    """The caller's images are not written to."""
    given = trial.images.copy()
    trial.model(given)
    if np.array_equal(given, trial.images):
        return []
    return [ModelFinding("input", "problem", "the images that it is given are changed", "work on a copy")]


def looks_at_the_image(trial: _Trial) -> list[ModelFinding]:
    """Different images get different logits; of one image, or copies of it, there is nothing to say."""
    if (trial.images == trial.images[:1]).all():
        return []
    spread = float(np.ptp(trial.logits, axis=0).max())
    if spread > 1e-6 * (1 + float(np.abs(trial.logits).max())):
        return []
    told = f"{len(trial.images)} different images get the same logits"
    return [
        ModelFinding(
            "constant", "problem", told, "are the weights loaded, and is the range of the input right?"
        )
    ]


def gives_logits(trial: _Trial) -> list[ModelFinding]:
    """The answers are logits, not probabilities; of a model that sees views, its answers to one of them."""
    model, logits = trial.model, trial.logits
    level, harm = "warning", "accuracy is the same, calibration is not"
    if isinstance(model, FilteredModel) and model.filter.views is not None:
        logits = model.model(model.views(trial.images)[0])
        level, harm = "problem", "means over views are of a softmax of probabilities"
    if logits.shape[1] < 2 or not are_probabilities(logits).all():
        return []
    told = "every row is positive and sums to 1: these are probabilities"
    advice = f"leave the softmax out, or return their logarithms; {harm}"
    return [ModelFinding("logits", level, told, advice)]


def takes_grey(trial: _Trial) -> list[ModelFinding]:
    """Grey images `(n, h, w, 1)` are answered as if their channel were stacked."""
    if trial.images.shape[-1] == 1:
        return []
    grey = np.ascontiguousarray(trial.images[:2, ..., :1])
    advice = "stack the channel: images.repeat(3, axis=-1)"
    try:
        answer = trial.model(grey)
        stacked = trial.model(np.repeat(grey, 3, axis=-1))
    except Exception as error:  # the model is anyone's
        return [ModelFinding("grey", "warning", f"grey images are refused: {error!s:.200}", advice)]
    if _distance(answer, stacked) <= trial.tolerance:
        return []
    return [ModelFinding("grey", "problem", "grey images get other logits than stacked ones", advice)]


MODEL_CONTRACTS: dict[str, Callable[[_Trial], list[ModelFinding]]] = {
    contract.__name__: contract
    for contract in (
        is_finite,
        same_every_time,
        same_alone_as_in_a_batch,
        same_in_any_order,
        leaves_input_alone,
        looks_at_the_image,
        gives_logits,
        takes_grey,
    )
}
"""The promises by name."""


def _about_the_spec(spec: ModelSpec, labels: NDArray[Any] | None) -> Iterator[ModelFinding]:
    if not spec.reusable:
        yield ModelFinding(
            "digest",
            "warning",
            "nobody can tell whether this is the same model as last time, so no result is ever reused",
            "load it with version=, a word that you change whenever its answers may",
        )
    if spec.classes is None:
        yield ModelFinding(
            "class count", "warning", "the spec does not say how many classes", "load it with classes="
        )
    elif labels is not None and len(labels) and int(np.max(labels)) >= spec.classes:
        told = f"a label is {int(np.max(labels))}, and {spec.classes} classes are numbered from 0"
        yield ModelFinding("class count", "problem", told, "these labels are not of this model's label space")


def _preprocessing_fits(
    model: Model, images: Bytes, labels: NDArray[Any] | None, space: LabelSpace
) -> list[ModelFinding]:
    """No other range or channel order does clearly better."""
    if len(images) < _ENOUGH:
        return []
    declared = space.apply(_batched(model, images))
    best: tuple[float, str, str, NDArray[Any]] | None = None
    for what, say, variant in _variants(model, images):
        logits = space.apply(_batched(variant, images))
        better = (
            _by_accuracy(declared, logits, labels)
            if labels is not None
            else _by_information(declared, logits)
        )
        if best is None or better > best[0]:
            best = (better, what, say, logits)
    if best is None or best[0] < _LIKELY:
        return []
    better, what, say, logits = best
    if labels is not None:
        judged = judge_accuracy(logits, labels)
        if not above_chance(judged.right, judged.images, judged.chance):
            return []  # better by luck: something else is wrong
        was, now = (float((rows.argmax(axis=1) == labels).mean()) for rows in (declared, logits))
        told = f"accuracy on {len(images)} images is {was:.1%} as it is loaded and {now:.1%} with {say}"
        level = "problem" if better >= _CLEAR else "warning"
    else:
        told = f"on {len(images)} images it is surer and tells more of them apart with {say}"
        level = "warning"
    return [ModelFinding(what, level, told, f"load it with {say}, or check with more labeled images")]


def _variants(model: Model, images: Bytes) -> Iterator[tuple[str, str, Model]]:
    """What is wrong, how to say it right, and the model that is right then."""
    if isinstance(model, FilteredModel):
        for what, say, inside in _variants(model.model, images):
            yield what, say, replace(model, model=inside)
        return
    colored = images.shape[-1] == 3 and bool((images[..., 0] != images[..., 2]).any())
    if not isinstance(model, Network):
        if colored:
            yield "channel order", "the channels in the opposite order", _Swapped(model)
        return
    here = model.spec.preprocessing
    ranges = [("", here)] if here.dtype == "uint8" else [("", here), *_ranges(here)]
    for said, range_ in ranges:
        if said:
            yield "range", said, model.with_preprocessing(range_)
        if colored and here.channels == 3:
            order = "RGB" if here.order == "BGR" else "BGR"
            both = f"{said} order={order}".strip()
            what = "range and channel order" if said else "channel order"
            yield what, both, model.with_preprocessing(replace(range_, order=order))


def _ranges(here: Preprocessing) -> Iterator[tuple[str, Preprocessing]]:
    channels = here.channels
    half = (0.5,) * channels
    known: dict[str, tuple[str, tuple[float, ...], tuple[float, ...]]] = {
        "range=0..1": ("0..1", (), ()),
        "range=0..255": ("0..255", (), ()),
        "range=-1..1": ("0..1", half, half),
    }
    if channels == 3:
        told = f"mean={','.join(map(str, IMAGENET_MEAN))} std={','.join(map(str, IMAGENET_STD))}"
        known[f"range=0..1 {told}"] = ("0..1", IMAGENET_MEAN, IMAGENET_STD)
    for said, (top, mean, std) in known.items():
        other = replace(here, value_range=top, mean=mean, std=std)
        if other != here:
            yield said, other


@dataclass(frozen=True)
class _Swapped:
    """A model that is shown the channels in the opposite order."""

    model: Model

    @property
    def spec(self) -> ModelSpec:
        return self.model.spec

    def __call__(self, images: Bytes) -> Any:
        return self.model(np.ascontiguousarray(images[..., ::-1]))


def _batched(model: Model, images: Bytes) -> NDArray[Any]:
    return np.concatenate([model(images[start : start + 32]) for start in range(0, len(images), 32)])


def _by_accuracy(declared: NDArray[Any], other: NDArray[Any], labels: NDArray[Any]) -> float:
    """How much more often `other` is right, in standard deviations of the images on which they differ."""
    was, now = declared.argmax(axis=1) == labels, other.argmax(axis=1) == labels
    gained, lost = int((now & ~was).sum()), int((was & ~now).sum())
    if (gained - lost) / len(labels) < 0.02:
        return 0.0
    return float((gained - lost) / np.sqrt(gained + lost))


def _by_information(declared: NDArray[Any], other: NDArray[Any]) -> float:
    """Above 2 if `other` is surer about single images and tells more of them apart.

    The measure is the information that a prediction carries: the entropy of the mean prediction less the
    mean entropy, in nats. A wrong range makes predictions alike, or unsure, or both.
    """
    was, now = _information(declared), _information(other)
    return now / max(was, 1e-6) if now > was + 0.5 else 0.0


def _information(logits: NDArray[Any]) -> float:
    from scipy.special import softmax

    p = softmax(logits.astype(np.float64), axis=1)
    return entropy(p.mean(axis=0, keepdims=True)) - entropy(p)


def _distance(a: Any, b: Any) -> float:
    """The largest difference; infinite where shapes differ, and NaN counts as equal to NaN."""
    if np.shape(a) != np.shape(b):
        return float("inf")
    both = np.isnan(a) & np.isnan(b)
    apart = np.where(both, 0.0, np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)))
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))
