"""What a network answers on the test digits under every corruption."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from beaufort._core.errors import AssetError
from beaufort.corruptions import corruptions
from beaufort.studies.answers import StudyAnswers
from beaufort.studies.asking import logits, read_test_images
from beaufort.studies.mnist_c.settings import CLEAN, Settings


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
    clean, labels, ids = read_test_images(settings.test, device=settings.device, limit=settings.test_limit)
    images, absent = {CLEAN: clean}, []
    for name in settings.all_corruptions:
        try:
            images[name] = corruptions[name](clean, ids=ids, seed=0, scale="mnist")
        except AssetError:
            absent.append(name)
    return Digits(images, labels, tuple(absent))


def ask(
    model: torch.nn.Module, settings: Settings, conditions: tuple[str, ...], facts: dict[str, Any]
) -> StudyAnswers:
    """A network's answers under conditions, in float32."""
    digits = test_digits(settings)
    there = tuple(name for name in conditions if name in digits.images)
    model = model.to(digits.labels.device).eval()
    rows = [logits(model, digits.images[name]).argmax(1) for name in there]
    predicted = torch.stack(rows).to(torch.uint8).cpu().numpy()
    return StudyAnswers(there, predicted, digits.labels.to(torch.uint8).cpu().numpy(), facts)
