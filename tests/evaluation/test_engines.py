"""Corrupting on the models' device: the same answers, batches in time, and what a device cannot do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beaufort.corruptions import corruptions
from beaufort.datasets import Dataset, from_arrays
from beaufort.evaluation import evaluate
from beaufort.evaluation import run as running
from beaufort.evaluation.engines import Device, Threads
from beaufort.models import Model, as_model
from beaufort.store import FileStore
from beaufort.suites import Suite
from beaufort.testing._contracts import picture

torch = pytest.importorskip("torch", reason="torch is not installed")

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")]),
]
SUITE = Suite(
    name="small", version=1, dataset="toys", scale="cifar", corruptions=("fog", "contrast"), severities=(1, 4)
)


def dataset(count: int = 30) -> Dataset:
    shapes = [(32, 32)] * (count - 4) + [(40, 32)] * 2 + [(32, 32)] * 2
    images = [picture(*shape, variant=i) for i, shape in enumerate(shapes)]
    whole = from_arrays("toys", np.zeros((count, 32, 32, 3), np.uint8), np.arange(count) % 5)
    object.__setattr__(whole, "reader", images)
    return whole


def network(device: str) -> Model:
    torch.manual_seed(0)
    layers = [torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 5)]
    return as_model(torch.nn.Sequential(*layers), name="toy", device=device, mean=(0.4, 0.5, 0.6), max_batch=7)


def counting(images: np.ndarray) -> np.ndarray:
    assert isinstance(images, np.ndarray)
    return images.reshape(len(images), -1)[:, :5].astype(np.float32)
