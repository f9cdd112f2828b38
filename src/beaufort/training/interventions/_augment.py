"""What networks for photos are usually trained with: images moved by a few pixels, and mirrored."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_integer
from beaufort.training.interventions._intervention import plain_loss

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]


def augmented_loss(shift: int, flip: bool) -> Loss:
    """The plain loss of images that are moved and mirrored at random."""
    _check(shift, flip)
    if shift == 0 and not flip:
        return plain_loss

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        return plain_loss(model, augment(images, shift, flip), labels)

    return loss


def augment(images: Tensor, shift: int, flip: bool) -> Tensor:
    """Each image moved by up to `shift` pixels and perhaps mirrored, on its own; all in one operation.

    What comes in is black: it is the same as a random crop of an image with so many black pixels around it.
    """
    if shift == 0 and not flip:
        return images
    count, _, height, width = images.shape
    wide = functional.pad(images, (shift,) * 4)
    moves = torch.randint(0, 2 * shift + 1, (2, count, 1), device=images.device)
    rows = moves[0] + torch.arange(height, device=images.device)
    columns = moves[1] + torch.arange(width, device=images.device)
    if flip:
        mirrored = torch.rand(count, 1, device=images.device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    each = torch.arange(count, device=images.device)
    return wide[each[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _check(shift: int, flip: bool) -> None:
    validate_integer("shift", shift, 0, 1024)
    if not isinstance(flip, bool):
        raise OptionError(f"flip must be true or false, got {flip!r:.60}")
