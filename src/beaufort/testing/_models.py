"""The contract of models, one function per requirement, and checks of the preprocessing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.data.labels import LabelSpace
from beaufort.evaluation.model_checks import (
    CLEAR,
    LEAST_IMAGES,
    MeasuredAccuracy,
    above_chance,
    accuracy_gain,
    judge_accuracy,
    logit_distance,
    predict_batches,
    preprocessing_variants,
)
from beaufort.metrics import entropy
from beaufort.models import FilteredModel, Model, ModelSpec, Network
from beaufort.models.scoring import are_probabilities
from beaufort.testing._contracts import digit, example_image

_LIKELY = 2.0
"""Standard deviations by which another preprocessing must be better for a warning."""

_ROUNDING = 1e-3
"""Tolerated difference between batches, as a fraction of the range of the logits."""


@dataclass(frozen=True)
class ModelFinding:
    """A problem that was found in a model."""

    check: str
    """Name of the check."""
    level: str
    """`unusable`: it gives no predictions; `problem`: results would be wrong; `warning`: worth a look."""
    message: str
    advice: str

    def to_dict(self) -> dict[str, str]:
        """Return the fields for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Trial:
    """A model with test images and its logits for them."""

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
    """Return the problems of a model; an empty list if none was found.

    Args:
        model: the model.
        images: uint8 `(n, h, w, c)`, ideally some hundreds of real images; synthetic ones by default, which
            do not reveal a wrong range or channel order.
        labels: the class of each image, to judge range, channel order and order of classes by accuracy.
        space: maps outputs to classes; without it, labels are output indices.
        classes: names of the classes, if known.
    """
    if labels is not None and (images is None or np.shape(labels) != (len(images),)):
        raise OptionError(f"labels must have one entry per image, got shape {np.shape(labels)}")
    tested = _synthetic_images(model.spec) if images is None else images
    few = tested[:8]
    try:
        unchecked = _without_class_check(model)
        logits: Any = unchecked(few.copy())
    except Exception as error:  # models may raise any error
        return [_failure(model, error)]
    trial = _Trial(unchecked, few, logits)
    findings = list(_returns_logits(trial, model.spec))
    if any(finding.level != "warning" for finding in findings):
        return findings
    if model.spec.outcomes:
        return findings + _replies(trial)  # the other contracts are about networks, and requests may be paid
    if infinite := is_finite(trial):
        return findings + infinite  # distances would be meaningless
    for contract in MODEL_CONTRACTS.values():
        findings += contract(trial)
    space = space or LabelSpace(model.spec.classes)
    findings += _about_the_spec(model.spec, labels if space.identity else None)
    if images is not None:
        fits = _check_preprocessing(unchecked, images, labels, space)
        findings += fits
        if labels is not None and not fits and len(images) >= LEAST_IMAGES:
            findings += _accuracy(measure_accuracy(unchecked, images, labels, space=space, classes=classes))
    return findings


def _replies(trial: _Trial) -> list[ModelFinding]:
    """Return a problem if most replies of a chat model name no class."""
    classes = trial.logits.shape[1] - trial.spec.outcomes
    names = trial.spec.class_names or ()
    failed = [names[int(place)] for place in trial.logits.argmax(axis=1) if place >= classes]
    if 2 * len(failed) <= len(trial.images):
        return []
    reasons = ", ".join(sorted(set(failed)))
    message = f"{len(failed)} of {len(trial.images)} replies contain no prediction: {reasons}"
    return [
        ModelFinding("replies", "problem", message, "change question, answer or max_tokens, or add synonyms")
    ]


def measure_accuracy(
    model: Model,
    images: Bytes,
    labels: NDArray[Any],
    *,
    space: LabelSpace | None = None,
    classes: Sequence[str] = (),
) -> MeasuredAccuracy:
    """Return the accuracy of a model; the arguments are those of `check_model`."""
    logits = predict_batches(model, images)
    return judge_accuracy(logits if space is None else space.apply(logits), labels, classes)


def _accuracy(found: MeasuredAccuracy) -> list[ModelFinding]:
    """Return a problem if the accuracy is at chance, with the order of classes or likely reasons."""
    if not found.at_chance:
        return []
    message = (
        f"accuracy on {found.images} images: {found.value:.1%}, no better than chance ({found.chance:.1%})"
    )
    if found.order:
        message += f"; it is {found.ordered:.1%} if the outputs are in {found.order}"
        advice = "pass the names of the outputs in their order with --classes FILE"
        return [ModelFinding("class order", "problem", message, advice)]
    advice = (
        "likely reasons, most likely first: another order of classes (--classes FILE), another range "
        "(range=0..255), BGR channels (order=BGR), another mean and std, or too few images"
    )
    return [ModelFinding("accuracy", "problem", message, advice)]


def _without_class_check(model: Model) -> Model:
    """Return the model without its own check of the number of classes, which would raise an error."""
    if isinstance(model, FilteredModel):
        return replace(model, model=_without_class_check(model.model))
    if isinstance(model, Network):
        return replace(model, spec=replace(model.spec, classes=None, class_names=None))
    return model


def _failure(model: Model, error: Exception) -> ModelFinding:
    reason = " ".join(str(error).split()) or "no error message"
    return ModelFinding(
        "output",
        "unusable",
        f"{model.spec.name} fails on ordinary images: {type(error).__name__}: {reason:.300}",
        "fix this first; nothing else can be checked",
    )


def _synthetic_images(spec: ModelSpec) -> Bytes:
    """Return eight images of the input size of the model."""
    height, width = spec.input_size or (64, 64)
    channels = spec.preprocessing.channels
    if (height, width, channels) == (28, 28, 1):
        return np.stack([digit(variant=i) for i in range(8)])
    noise = np.random.default_rng(0).integers(0, 256, (2, height, width, channels), np.uint8)
    return np.concatenate(
        [np.stack([example_image(height, width, channels, variant=i) for i in range(6)]), noise]
    )


def _returns_logits(trial: _Trial, spec: ModelSpec) -> Iterator[ModelFinding]:
    """The model returns a float array `(n, classes)` with the number of classes of its spec."""
    logits, count = trial.logits, len(trial.images)
    if not isinstance(logits, np.ndarray) or logits.ndim != 2 or len(logits) != count:
        kind = f"an array {logits.shape}" if isinstance(logits, np.ndarray) else f"a {type(logits).__name__}"
        yield ModelFinding(
            "output",
            "unusable",
            f"the output for {count} images must be a NumPy array ({count}, classes), got {kind}",
            "return one row of logits per image",
        )
        return
    if logits.dtype != np.float32:
        level = "warning" if logits.dtype.kind == "f" else "problem"
        yield ModelFinding("output", level, f"the logits have dtype {logits.dtype}", "return float32")
    if spec.classes is not None and logits.shape[1] != spec.classes:
        yield ModelFinding(
            "class count",
            "problem",
            f"the model returns {logits.shape[1]} logits per image, but its spec has {spec.classes} classes",
            f"load it with classes={logits.shape[1]}; an extra class is often a background class",
        )


def is_finite(trial: _Trial) -> list[ModelFinding]:
    """Logits are finite; an evaluation accepts only -inf, for impossible classes."""
    wrong = int((~np.isfinite(trial.logits)).any(axis=1).sum())
    if not wrong:
        return []
    message = f"the logits of {wrong} of {len(trial.images)} images are NaN or infinite"
    level = "problem" if np.isfinite(trial.logits.max(axis=1)).all() else "unusable"
    return [ModelFinding("finite", level, message, "look for a division by 0 or an overflow of float16")]


def same_every_time(trial: _Trial) -> list[ModelFinding]:
    """Two calls give the same logits."""
    again = trial.model(trial.images.copy())
    if np.array_equal(again, trial.logits, equal_nan=True):
        return []
    far = logit_distance(again, trial.logits)
    small = far <= trial.tolerance
    return [
        ModelFinding(
            "deterministic",
            "warning" if small else "problem",
            f"the logits of two calls on the same images differ by up to {far:.3g}",
            "the difference is within rounding, such as from atomic sums on the device"
            if small
            else "switch to evaluation mode: turn off dropout, augmentation and sampling",
        )
    ]


def same_alone_as_in_a_batch(trial: _Trial) -> list[ModelFinding]:
    """The logits of an image do not depend on the rest of the batch, up to rounding."""
    try:
        alone = np.concatenate([trial.model(image[None].copy()) for image in trial.images])
    except Exception as error:  # models may raise any error, such as batch normalization in training mode
        message = f"the model fails on a single image: {type(error).__name__}: {error!s:.200}"
        return [
            ModelFinding("batch", "problem", message, "switch to evaluation mode, without batch statistics")
        ]
    far = logit_distance(alone, trial.logits)
    if far <= trial.tolerance:
        return []
    message = f"the logits of an image alone and in a batch differ by up to {far:.3g}"
    return [ModelFinding("batch", "problem", message, "switch to evaluation mode, without batch statistics")]


def same_in_any_order(trial: _Trial) -> list[ModelFinding]:
    """Rows of logits are in the order of the images."""
    turned = trial.model(np.ascontiguousarray(trial.images[::-1]))[::-1]
    far = logit_distance(turned, trial.logits)
    if far <= trial.tolerance:
        return []
    message = f"the logits differ by up to {far:.3g} if the order of the images is reversed"
    return [ModelFinding("order", "problem", message, "return one row per image, in the order of the images")]


def leaves_input_alone(trial: _Trial) -> list[ModelFinding]:
    """The input is not modified."""
    given = trial.images.copy()
    trial.model(given)
    if np.array_equal(given, trial.images):
        return []
    return [ModelFinding("input", "problem", "the model modifies its input", "work on a copy")]


def looks_at_the_image(trial: _Trial) -> list[ModelFinding]:
    """Different images get different logits; not checked for a single image."""
    if (trial.images == trial.images[:1]).all():
        return []
    spread = float(np.ptp(trial.logits, axis=0).max())
    if spread > 1e-6 * (1 + float(np.abs(trial.logits).max())):
        return []
    message = f"{len(trial.images)} different images get the same logits"
    return [
        ModelFinding(
            "constant", "problem", message, "check that weights are loaded, and the range of the input"
        )
    ]


def gives_logits(trial: _Trial) -> list[ModelFinding]:
    """The model returns logits, not probabilities; with views, this is checked for one of them."""
    model, logits = trial.model, trial.logits
    level, harm = "warning", "accuracy stays the same, calibration does not"
    if isinstance(model, FilteredModel) and model.filter.views is not None:
        logits = model.model(model.views(trial.images)[0])
        level, harm = "problem", "means over views apply a softmax to probabilities"
    if logits.shape[1] < 2 or not are_probabilities(logits).all():
        return []
    message = "the output consists of probabilities: every row is positive and sums to 1"
    advice = f"remove the softmax, or return logarithms; {harm}"
    return [ModelFinding("logits", level, message, advice)]


def takes_gray(trial: _Trial) -> list[ModelFinding]:
    """Grayscale images `(n, h, w, 1)` get the logits of images with three equal channels."""
    if trial.images.shape[-1] == 1:
        return []
    gray = np.ascontiguousarray(trial.images[:2, ..., :1])
    advice = "repeat the channel: images.repeat(3, axis=-1)"
    try:
        logits = trial.model(gray)
        stacked = trial.model(np.repeat(gray, 3, axis=-1))
    except Exception as error:  # models may raise any error
        return [
            ModelFinding("gray", "warning", f"the model fails on grayscale images: {error!s:.200}", advice)
        ]
    if logit_distance(logits, stacked) <= trial.tolerance:
        return []
    return [
        ModelFinding(
            "gray",
            "problem",
            "a grayscale image and its copy with three equal channels have different logits",
            advice,
        )
    ]


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
        takes_gray,
    )
}
"""The requirements by name."""


def _about_the_spec(spec: ModelSpec, labels: NDArray[Any] | None) -> Iterator[ModelFinding]:
    if not spec.reusable:
        yield ModelFinding(
            "digest",
            "warning",
            "the model has no digest, so stored results cannot be reused",
            "load it with version=, a string that you change whenever predictions may change",
        )
    if spec.classes is None:
        yield ModelFinding(
            "class count", "warning", "the spec has no number of classes", "load it with classes="
        )
    elif labels is not None and len(labels) and int(np.max(labels)) >= spec.classes:
        message = f"a label is {int(np.max(labels))}, but the {spec.classes} classes are numbered from 0"
        yield ModelFinding("class count", "problem", message, "the labels belong to another label space")


def _check_preprocessing(
    model: Model, images: Bytes, labels: NDArray[Any] | None, space: LabelSpace
) -> list[ModelFinding]:
    """No other range or channel order is clearly better."""
    if len(images) < LEAST_IMAGES:
        return []
    declared = space.apply(predict_batches(model, images))
    best: tuple[float, str, str, NDArray[Any]] | None = None
    for what, option, variant in preprocessing_variants(model, images):
        logits = space.apply(predict_batches(variant, images))
        better = (
            accuracy_gain(declared, logits, labels)
            if labels is not None
            else _by_information(declared, logits)
        )
        if best is None or better > best[0]:
            best = (better, what, option, logits)
    if best is None or best[0] < _LIKELY:
        return []
    better, what, option, logits = best
    if labels is not None:
        judged = judge_accuracy(logits, labels)
        if not above_chance(judged.right, judged.images, judged.chance):
            return []  # better by chance: something else is wrong
        was, now = (float((rows.argmax(axis=1) == labels).mean()) for rows in (declared, logits))
        message = f"the accuracy on {len(images)} images is {was:.1%} as loaded and {now:.1%} with {option}"
        level = "problem" if better >= CLEAR else "warning"
    else:
        message = f"predictions on {len(images)} images are more certain and more diverse with {option}"
        level = "warning"
    fix = f"load it with {option} (--set NAME=VALUE on the command line), or check with more labeled images"
    return [ModelFinding(what, level, message, fix)]


def _by_information(declared: NDArray[Any], other: NDArray[Any]) -> float:
    """Return more than 2 if the predictions of `other` are clearly more certain and more diverse.

    The measure is the mutual information of image and class: the entropy of the mean prediction minus the
    mean entropy, in nats. A wrong range makes predictions similar, uncertain, or both.
    """
    was, now = _information(declared), _information(other)
    return now / max(was, 1e-6) if now > was + 0.5 else 0.0


def _information(logits: NDArray[Any]) -> float:
    from scipy.special import softmax

    p = softmax(logits.astype(np.float64), axis=1)
    return entropy(p.mean(axis=0, keepdims=True)) - entropy(p)
