"""`check_model` finds each fault that is planted, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.models import IMAGENET_MEAN, IMAGENET_STD, ModelSpec, Preprocessing, as_model
from beaufort.testing import ModelFinding, check_model

CLASSES = 4
PROTOTYPES = np.random.default_rng(3).uniform(30, 225, (CLASSES, 3))


def samples(count: int = 200) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Patches in the colors of four classes, with noise."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, CLASSES, count)
    images = PROTOTYPES[labels][:, None, None] + rng.normal(0, 25, (count, 16, 16, 3))
    return np.clip(images, 0, 255).astype(np.uint8), labels


def nearest(colors: NDArray[Any]) -> NDArray[np.float32]:
    """Logits by the distance of a color to those of the classes, all in 0..255."""
    return np.asarray(-((colors[:, None] - PROTOTYPES) ** 2).sum(axis=-1) / 500, np.float32)


def trained(prepared: NDArray[np.float32]) -> NDArray[np.float32]:
    """A network for RGB in 0..1, normalized by ImageNet's mean and deviation."""
    values = prepared.mean(axis=(2, 3)) * np.array(IMAGENET_STD) + np.array(IMAGENET_MEAN)
    return nearest(values * 255)


def network(**changes: Any) -> Any:
    usual: dict[str, Any] = {"mean": IMAGENET_MEAN, "std": IMAGENET_STD, "input_size": 16, "range": "0..1"}
    return as_model(trained, name="net", classes=CLASSES, version="1", **{**usual, **changes})


@dataclass
class Plain:
    """A custom model."""

    respond: Callable[[NDArray[np.uint8]], Any]
    classes: int | None = CLASSES
    spec: ModelSpec = field(init=False)

    def __post_init__(self) -> None:
        self.spec = ModelSpec(
            name="own",
            source="python:own",
            preprocessing=Preprocessing(size=(16, 16)),
            classes=self.classes,
            weights="declared:1",
        )

    def __call__(self, images: NDArray[np.uint8]) -> Any:
        return self.respond(images if images.shape[-1] == 3 else images.repeat(3, axis=-1))


def right(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return nearest(images.mean(axis=(1, 2)))


def levels(findings: list[ModelFinding]) -> dict[str, str]:
    return {finding.check: finding.level for finding in findings}


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    images, labels = samples()
    for model in (network(), Plain(right)):
        assert check_model(model) == []
        assert check_model(model, images=images) == []
        assert check_model(model, images=images, labels=labels) == []


noise = np.random.default_rng(0)


def jittered(images: NDArray[np.uint8], size: float) -> NDArray[np.float32]:
    return right(images) + noise.normal(0, size, (len(images), CLASSES)).astype(np.float32)


def changing(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    output = right(images)
    images[:] = 0
    return output


def softmax(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    fractions = np.exp(right(images) - right(images).max(axis=1, keepdims=True))
    return np.asarray(fractions / fractions.sum(axis=1, keepdims=True), np.float32)


def failing(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    raise RuntimeError("out of\nmemory")


def by_place(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    first = (np.arange(len(images)) == 0)[:, None]
    return np.asarray(right(images) + first * np.array([900, 0, 0, 0]), np.float32)


@pytest.mark.parametrize(
    ("output", "check", "level"),
    [
        (failing, "output", "unusable"),
        (lambda x: right(x).tolist(), "output", "unusable"),
        (lambda x: right(x)[0], "output", "unusable"),
        (lambda x: right(x)[:-1], "output", "unusable"),
        (lambda x: right(x).astype(np.float64), "output", "warning"),
        (lambda x: right(x).astype(np.int64), "output", "problem"),
        (lambda x: right(x)[:, :3], "class count", "problem"),
        (lambda x: jittered(x, 10), "deterministic", "problem"),
        (lambda x: jittered(x, 1e-5), "deterministic", "warning"),
        (lambda x: right(x) - right(x).mean(axis=0), "batch", "problem"),
        (by_place, "order", "problem"),
        (changing, "input", "problem"),
        (lambda x: np.ones((len(x), CLASSES), np.float32), "constant", "problem"),
        (softmax, "logits", "warning"),
    ],
)
def test_planted_faults(output: Callable[[Any], Any], check: str, level: str) -> None:
    findings = check_model(Plain(output))
    assert levels(findings).get(check) == level, findings
    assert all(finding.message and finding.advice for finding in findings)


@pytest.mark.parametrize(
    ("value", "level"), [(np.nan, "unusable"), (np.inf, "unusable"), (-np.inf, "problem")]
)
def test_non_finite_logits_have_one_finding(value: float, level: str) -> None:
    findings = check_model(Plain(lambda x: np.where(np.arange(CLASSES) == 1, np.float32(value), right(x))))
    assert levels(findings) == {"finite": level}


@pytest.mark.parametrize("count", [1, 3])
def test_copies_of_one_image_may_have_the_same_logits(count: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (1, 64, 64, 3), np.uint8)
    assert "constant" not in levels(check_model(Plain(right), images=np.repeat(image, count, axis=0)))


def test_gray() -> None:
    def color_only(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        if images.shape[-1] != 3:
            raise ValueError("three channels, please")
        return right(images)

    model = Plain(right)
    model.__class__ = type("Raw", (Plain,), {"__call__": lambda self, images: color_only(images)})
    assert levels(check_model(model)) == {"gray": "warning"}


@pytest.mark.parametrize(
    ("changes", "check", "message"),
    [
        ({"range": "0..255", "mean": (), "std": ()}, "range", "range=0..1 mean=0.485"),
        ({"mean": (), "std": ()}, "range", "range=0..1 mean=0.485"),
        ({"order": "BGR"}, "channel order", "order=RGB"),
        ({"range": "0..255", "mean": (), "std": (), "order": "BGR"}, "range and channel order", "order=RGB"),
    ],
)
def test_wrong_preprocessing_with_labels(changes: dict[str, Any], check: str, message: str) -> None:
    images, labels = samples()
    (finding,) = check_model(network(**changes), images=images, labels=labels)
    assert (finding.check, finding.level) == (check, "problem")
    assert message in finding.advice
    assert "accuracy on 200 images" in finding.message


def test_wrong_range_without_labels_is_a_warning() -> None:
    images, _ = samples()
    (finding,) = check_model(network(range="0..255", mean=(), std=()), images=images)
    assert (finding.check, finding.level) == ("range", "warning")


def test_channel_order_of_a_foreign_model() -> None:
    images, labels = samples()
    swapped = Plain(lambda x: right(x[..., ::-1]))
    (finding,) = check_model(swapped, images=images, labels=labels)
    assert (finding.check, finding.level) == ("channel order", "problem")


def test_a_few_images_judge_nothing() -> None:
    images, labels = samples(10)
    assert check_model(network(order="BGR"), images=images, labels=labels) == []


def test_the_spec() -> None:
    images, labels = samples(10)
    found = levels(check_model(as_model(right, classes=CLASSES)))
    assert found == {"digest": "warning"}
    assert levels(check_model(as_model(right, version="1"))) == {"class count": "warning"}
    findings = check_model(network(), images=images, labels=labels + 5)
    assert levels(findings) == {"class count": "problem"}
    assert levels(check_model(as_model(right, classes=9, version="1"))) == {"class count": "problem"}
    with pytest.raises(OptionError, match="one entry per image"):
        check_model(network(), images=images, labels=labels[:3])
