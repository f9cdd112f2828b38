"""Models and data for tests of a cluster, found by workers under the name of this module."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from beaufort.data import Dataset, from_arrays
from beaufort.models import Model, as_model
from beaufort.testing._contracts import example_image

CLASSES = 7
IMAGES = 96
BATCHES = 24
"""Number of batches that the patient model predicts before it waits."""


def make_images() -> np.ndarray:
    return np.stack([example_image(32, 32, variant=i) for i in range(IMAGES)])


def dataset() -> Dataset:
    return from_arrays("toys", make_images(), np.arange(IMAGES) % CLASSES)


def deadly() -> Model:
    """Kill the process when a batch contains one uncorrupted image of the dataset."""
    end = make_images()[20].tobytes()

    def predict(images: np.ndarray) -> np.ndarray:
        if any(image.tobytes() == end for image in images):
            os.kill(os.getpid(), signal.SIGKILL)
        return np.tile(np.arange(float(CLASSES)), (len(images), 1))

    return as_model(predict, name="deadly", classes=CLASSES, version="deadly")


def patient() -> Model:
    """Predict some batches in each process, then wait until the file `hold` beside the weights is deleted."""
    hold = Path(os.environ["TOY_WEIGHTS"]) / "hold"
    batches = 0

    def predict(images: np.ndarray) -> np.ndarray:
        nonlocal batches
        batches += 1
        while batches > BATCHES and hold.exists():
            time.sleep(0.01)
        return images.reshape(len(images), -1)[:, :CLASSES].astype(np.float32)

    return as_model(predict, name="patient", classes=CLASSES, version="patient")


def of_a_file() -> Model:
    """A model with weights in a folder of the machine."""
    weights = np.load(Path(os.environ["TOY_WEIGHTS"]) / "weights.npy")
    return as_model(
        lambda images: images.reshape(len(images), -1)[:, :CLASSES].astype(np.float32) @ weights,
        name="filed",
        classes=CLASSES,
        version=str(weights.sum()),
    )
