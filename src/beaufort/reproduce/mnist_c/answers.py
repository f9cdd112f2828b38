"""What a network answers on the test digits under every corruption."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from beaufort.corruptions import corruptions
from beaufort.datasets import open_dataset
from beaufort.errors import AssetError
from beaufort.models.torch import choose_device
from beaufort.reproduce.answers import StudyAnswers
from beaufort.reproduce.mnist_c.settings import CLEAN, Settings

__all__ = ["Digits", "ask", "test_digits"]

_BATCH, _GPU_BATCH = 250, 2500
"""Digits that are shown at once, on the processor and on a GPU."""


@dataclass(frozen=True, eq=False)
class Digits:
    """The test digits under every condition."""

    images: dict[str, torch.Tensor]
    """uint8 `(n, 1, 28, 28)` by condition, on the device; `none` are the clean ones."""
    labels: torch.Tensor
    absent: tuple[str, ...]
    """Corruptions whose files cannot be had here."""


@lru_cache(maxsize=1)
def test_digits(settings: Settings) -> Digits:
    """The test digits, corrupted as `beaufort run --suite mnist-c` does it, with the seed 0."""
    device = choose_device(settings.device)
    dataset = open_dataset(settings.test, limit=settings.test_limit)
    pixels = np.stack([dataset[place].image for place in range(len(dataset))])
    clean = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).to(device)
    images, absent = {CLEAN: clean}, []
    for name in settings.all_corruptions:
        try:
            images[name] = corruptions[name](clean, ids=list(dataset.ids), seed=0, scale="mnist")
        except AssetError:
            absent.append(name)
    return Digits(images, torch.from_numpy(np.array(dataset.labels)).to(device), tuple(absent))


def ask(
    model: torch.nn.Module, settings: Settings, conditions: tuple[str, ...], facts: dict[str, Any]
) -> StudyAnswers:
    """A network's answers under conditions, in float32."""
    digits = test_digits(settings)
    there = tuple(name for name in conditions if name in digits.images)
    device = digits.labels.device
    model = model.to(device).eval()
    rows = []
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        for name in there:
            pieces = digits.images[name].split(_GPU_BATCH if device.type == "cuda" else _BATCH)
            rows.append(torch.cat([model(piece.float() / 255).argmax(1) for piece in pieces]))
    predicted = torch.stack(rows).to(torch.uint8).cpu().numpy()
    return StudyAnswers(there, predicted, digits.labels.to(torch.uint8).cpu().numpy(), facts)
