"""A small network, trained quickly on simple images, for attacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from beaufort.models import Network, as_model

CLASSES = 4
SIDE = 16


def make_images(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a bright quarter, which is the class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % CLASSES
    images = rng.integers(90, 150, (count, SIDE, SIDE, 3))
    half = SIDE // 2
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[row * half : (row + 1) * half, column * half : (column + 1) * half] += 12
    return images.astype(np.uint8), labels.astype(np.int64)


def net(**options: Any) -> Network:
    """A convolutional network with normalization in front, whose mean is far from its input's."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(128, CLASSES),
    )
    options = {"name": "net", "device": "cpu", "mean": (0.4, 0.5, 0.6), "std": (0.2, 0.25, 0.3), **options}
    model = as_model(module, **options)
    assert isinstance(model, Network)
    images, labels = make_images(256, seed=1)
    batch, expected = torch.from_numpy(model.spec.preprocessing.apply(images)), torch.from_numpy(labels)
    optimizer = torch.optim.Adam(module.parameters(), 0.02)
    with torch.enable_grad():
        for _ in range(40):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(batch), expected).backward()
            optimizer.step()
    trained = as_model(module, **options)  # again: the digest is of the trained weights
    assert isinstance(trained, Network)
    return trained
