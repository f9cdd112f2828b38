"""Digits that anyone can tell apart, and recipes that learn them in a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from beaufort.training import Recipe, TrainingTensors

torch = pytest.importorskip("torch", reason="torch is not installed; the extra training has it")
pytest.importorskip("safetensors", reason="safetensors is not installed; the extra training has it")


@pytest.fixture(scope="session")
def patches() -> TrainingTensors:
    """320 images of ten classes: a bright patch on one of ten places, noise around it."""
    from beaufort.training import TrainingTensors

    rng = np.random.default_rng(0)
    labels = np.arange(320) % 10
    images = rng.integers(0, 60, (320, 1, 28, 28), np.uint8)
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 5)
        image[0, 4 + 12 * row : 12 + 12 * row, 1 + 5 * column : 6 + 5 * column] = 230
    classes = tuple("0123456789")
    return TrainingTensors(
        "patches", classes, torch.from_numpy(images), torch.from_numpy(labels), "sha256:patches"
    )


@pytest.fixture
def quick() -> Recipe:
    """A small Conv1 that learns the patches in two epochs."""
    from beaufort.training import Recipe

    return Recipe(
        name="quick",
        architecture="conv1",
        architecture_options={"first": 4, "second": 8, "hidden": 16},
        epochs=3,
        batch=32,
        block=96,
        optimizer="adam",
        rate=0.01,
        schedule="one-cycle",
    )
