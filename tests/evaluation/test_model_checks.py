"""Tests of the checks of models before a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort import evaluate
from beaufort.data import from_arrays
from beaufort.evaluation import RunOptions
from beaufort.models import IMAGENET_MEAN, IMAGENET_STD, ModelError, Preprocessing, as_model
from beaufort.models.network import Network
from beaufort.models.spec import ModelSpec

RANDOM = np.random.default_rng(0)
COLORS = np.array([[200, 40, 40], [40, 200, 40], [40, 40, 200]])
LABELS = np.arange(60) % 3
IMAGES = np.clip(COLORS[LABELS][:, None, None] + RANDOM.integers(-30, 30, (60, 16, 16, 3)), 0, 255).astype(
    np.uint8
)
DATA = from_arrays("colors", IMAGES, LABELS)
ALLOWED = RunOptions(allow_batch_dependence=True)


def by_color(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.asarray(images.mean(axis=(1, 2)), np.float32)


def batch_normalized(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    logits = by_color(images)
    return np.asarray(logits - logits.mean(axis=0), np.float32)


def rejects_single(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    if len(images) == 1:
        raise ValueError("Expected more than 1 value per channel when training")
    return by_color(images)


class Adapting:
    """A model that changes with every image."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        self.seen += len(images)
        return by_color(images) + np.array([self.seen, 0, 0], np.float32)


@pytest.mark.parametrize(
    ("function", "fact"),
    [
        (batch_normalized, "depend on the batch"),
        (rejects_single, "Expected more than 1 value per channel"),
        (Adapting(), "depend on earlier calls"),
    ],
)
def test_batch_dependence_is_rejected_unless_allowed(function: Any, fact: str, tmp_path: Path) -> None:
    model = as_model(function, name="moody", classes=3, version="1")
    with pytest.raises(ModelError, match=fact) as caught:
        evaluate(model, ["fog"], DATA, tmp_path / "a")
    assert "--allow-batch-dependence" in str(caught.value)
    assert not list(tmp_path.rglob("*.parquet"))
    found = evaluate(model, ["fog"], DATA, tmp_path / "a", options=ALLOWED)
    assert any(fact in note for note in found.notes)


def test_the_batch_size_is_part_of_the_fingerprint_if_allowed(tmp_path: Path) -> None:
    model = as_model(by_color, name="net", classes=3, version="1")
    plain, sized, allowed, small = (
        evaluate(model, ["fog"], DATA, tmp_path, options=options).results[0].fingerprint
        for options in (
            None,
            RunOptions(batch_size=8),
            ALLOWED,
            RunOptions(batch_size=8, allow_batch_dependence=True),
        )
    )
    assert plain == sized
    assert len({plain, allowed, small}) == 3


def test_an_ordinary_model_has_no_warning() -> None:
    warnings: set[tuple[str, ...]] = set()
    model = as_model(by_color, name="net", classes=3, version="1")
    run = evaluate(model, ["fog"], DATA, progress=lambda at: warnings.add(at.warnings))
    assert warnings == {()}
    assert not any("net" in note for note in run.notes)


def test_likely_mistakes_are_reported_before_the_first_batch() -> None:
    warnings: list[str] = []

    def probabilities(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        powers = np.exp(by_color(images) / 64)
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)

    def shifted(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        return np.roll(by_color(images), 1, axis=1)

    models = [
        as_model(one, name=one.__name__, classes=3, version=one.__name__) for one in (probabilities, shifted)
    ]
    evaluate(models, ["fog"], DATA, progress=lambda at: warnings.extend(at.warnings))
    assert any("probabilities look like probabilities" in warning for warning in warnings)
    assert any("shifted" in warning and "0.0%, no better than chance" in warning for warning in warnings)


def test_a_missing_normalization_is_reported() -> None:
    """The network separates the colors only if the mean is subtracted."""

    def forward(batch: NDArray[np.float32]) -> NDArray[np.float32]:
        means = batch.mean(axis=(2, 3))
        return np.stack([means[:, 0], means[:, 1], np.where(means.min(axis=1) > 0, -9, means[:, 2])], axis=1)

    def network(**options: Any) -> Network:
        spec = ModelSpec(
            name="net", source="", preprocessing=Preprocessing(**options), classes=3, weights="w"
        )
        return Network(spec, forward)

    right = evaluate(network(mean=IMAGENET_MEAN, std=IMAGENET_STD), ["fog"], DATA)
    wrong = evaluate(network(), ["fog"], DATA)
    assert not any("as loaded" in note for note in right.notes)
    assert any("66.7% as loaded" in note and "mean=0.485" in note for note in wrong.notes)


def test_a_changed_number_of_classes_is_an_error() -> None:
    calls: list[int] = []

    def growing(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        calls.append(len(images))
        return np.zeros((len(images), 3 if len(calls) < 8 else 4), np.float32) + by_color(images)[:, :1]

    model = as_model(growing, name="growing", version="1")
    with pytest.raises(ModelError, match=r"growing.*3.*got 4"):
        evaluate(model, ["fog"], DATA, options=RunOptions(batch_size=4))
