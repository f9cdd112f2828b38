"""Training behind an image filter: images are filtered as they will be when the network is tested."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from beaufort._core.errors import OptionError
from beaufort.models.filters import load_filter
from beaufort.training.data import TrainingBlock
from beaufort.training.interventions.base import Intervention, TrainingContext


def make(
    training: TrainingContext,
    *,
    front: str | Sequence[str],
) -> Intervention:
    """Train on images behind an image filter; load the model with the same one.

    Args:
        training: what it is part of; an image filter works on the processor, block by block.
        front: as for `load_model`: `clahe:clip=2,tiles=4`, or several in their order.
    """
    chosen = load_filter(front)
    if chosen.views is not None:
        raise OptionError(f"an image filter of a training must keep the shape of images, got {chosen.name}")

    def prepare(block: TrainingBlock, epoch: int) -> Tensor:
        images = np.ascontiguousarray(block.images.permute(0, 2, 3, 1).cpu().numpy())
        return torch.from_numpy(chosen(images)).permute(0, 3, 1, 2).contiguous().to(block.images.device)

    return Intervention(prepare=prepare, constant=1)
