"""Training with an image filter, as it will be used in evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from beaufort._core.errors import OptionError
from beaufort.models.filters import load_filter
from beaufort.training.data import TrainingBlock
from beaufort.training.interventions.base import Intervention, TrainingContext


def make(training: TrainingContext, *, image_filter: str | Sequence[str]) -> Intervention:
    """Train on filtered images; load the model with the same filter.

    Args:
        training: context of the training run; filters run on the CPU.
        image_filter: image filter as for `load_model`, such as `clahe:clip=2,tiles=4`, or a list of filters.
    """
    chosen = load_filter(image_filter)
    if chosen.views is not None:
        raise OptionError(f"cannot train with the image filter {chosen.name}: it changes the shape of images")

    def prepare(block: TrainingBlock, epoch: int) -> Tensor:
        images = np.ascontiguousarray(block.images.permute(0, 2, 3, 1).cpu().numpy())
        return torch.from_numpy(chosen(images)).permute(0, 3, 1, 2).contiguous().to(block.images.device)

    return Intervention(prepare=prepare, constant=1)
