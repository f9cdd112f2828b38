"""A front end on torch tensors: steps that can are done where they are, the others on the processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from beaufort.models.filters.chain import Front, FrontStep
from beaufort.models.filters.noise import estimate_noise

if TYPE_CHECKING:
    from torch import Tensor


def show_tensors(front: Front, images: Tensor, size: tuple[int, int]) -> list[Tensor]:
    """The views of uint8 images `(n, channels, h, w)`, as `Front.show` has them, on their device."""
    seen = [images]
    for step in front.steps:
        if step.makes_views:
            seen = [_tensor(view, images) for view in step.does(_pixels(seen[0]), size)]
        else:
            seen = [_filtered(step, view) for view in seen]
    return seen


def _filtered(step: FrontStep, images: Tensor) -> Tensor:
    if not (images.is_cuda and hasattr(step.does, "on_tensors")):
        return _tensor(Front((step,))(_pixels(images)), images)
    made: Tensor = step.does.on_tensors(images)
    if step.above is None and step.below is None:
        return made
    import torch

    chosen = torch.from_numpy(step.lets_through(estimate_noise(_pixels(images)))).to(images.device)
    return torch.where(chosen[:, None, None, None], made, images)


def _pixels(images: Tensor) -> Any:
    return np.ascontiguousarray(images.permute(0, 2, 3, 1).cpu().numpy())


def _tensor(pixels: Any, like: Tensor) -> Tensor:
    import torch

    return torch.from_numpy(pixels).to(like.device).permute(0, 3, 1, 2)
