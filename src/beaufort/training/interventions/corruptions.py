"""Corruptions on the fly: every image is corrupted anew in every epoch, where the images are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from beaufort.training.data import TrainingBlock
from beaufort.training.interventions._intervention import Intervention
from beaufort.transforms import Corrupt

__all__ = ["make"]


def make(
    *,
    recipe: Any,
    seed: int,
    device: str,
    names: str | Sequence[str],
    severity: float | Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
    clean: float = 0.0,
    scale: str = "auto",
) -> Intervention:
    """Train on corrupted images.

    Args:
        recipe: of the training.
        seed: of the training; which corruption an image gets in an epoch depends on it.
        device: of the training; on a CUDA device the corruptions are made there.
        names: corruptions, lists of them such as `mnist-c`, or chains such as `fog@2+snow@3`; one of them is
            chosen for each image.
        severity: as for `Corrupt`; None is the published one at the scale of digits.
        weights: how often each name is chosen, as for `Corrupt`.
        clean: the share of images that stay as they are.
        scale: whose constants.
    """
    chosen = names if isinstance(names, str) else tuple(names)
    rough = Corrupt(chosen, severity, seed, p=1 - clean, scale=scale, weights=weights)

    def prepare(block: TrainingBlock, epoch: int) -> Tensor:
        made: Tensor = rough.for_epoch(epoch)(block.images, image_id=block.places)
        return made

    return Intervention(prepare=prepare)
