"""The type of interventions, and random shifts and flips that can be combined with each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort._core.validation import validate_flag, validate_integer
from beaufort.training.data import TrainingBlock
from beaufort.training.ending import label_entropy

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""Maps the network, images in 0..1 and labels to a loss."""


def plain_loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Return the network's own loss if it has one (`loss(images, labels)`), else cross entropy."""
    own = getattr(model, "loss", None)
    if own is not None:
        loss: Tensor = own(images, labels)
        return loss
    return functional.cross_entropy(model(images).float(), labels)


def needs_logits(model: nn.Module, intervention: str) -> None:
    """Reject a network with its own loss, to which terms on logits cannot be added."""
    if hasattr(model, "loss"):
        raise OptionError(
            f"the intervention {intervention!r} requires a network of logits, but {type(model).__name__} has "
            "its own loss"
        )


@dataclass(frozen=True)
class Intervention:
    """How images are prepared and the loss is computed; defaults are those of plain training."""

    prepare: Callable[[TrainingBlock, int], Tensor] = lambda block, _: block.images
    """Returns the uint8 images of a block in an epoch."""
    loss: Loss = plain_loss
    """The loss of a batch."""
    state: Callable[[], dict[str, Tensor]] = dict
    """Returns its own tensors, for a checkpoint."""
    restore: Callable[[dict[str, Tensor]], None] = lambda _: None
    constant: float | Callable[[Sequence[int]], float] | None = None
    """The least loss of a constant prediction, as a multiple of its plain loss or as a function of the number
    of images of each class. None if unknown."""


def least_constant_loss(intervention: Intervention, model: nn.Module, counts: Sequence[int]) -> float | None:
    """Return the lowest loss of a constant prediction; None if unknown.

    Args:
        intervention: the intervention that computes the loss.
        model: a network; one with its own loss may have a method `constant_loss(counts)`.
        counts: number of images of each class.
    """
    own = getattr(model, "constant_loss", None)
    if intervention.constant is None or (own is None and hasattr(model, "loss")) or not sum(counts):
        return None
    if callable(intervention.constant):
        return round(intervention.constant(counts), 6) or None
    plain = label_entropy(counts) if own is None else float(own(counts))
    return round(intervention.constant * plain, 6) or None  # 0 with a single class


def augmented(intervention: Intervention, *, shift: int = 0, flip: bool = False) -> Intervention:
    """Return the intervention with a loss on randomly shifted and flipped images.

    Args:
        intervention: the intervention.
        shift: largest shift in pixels, in each direction.
        flip: whether to flip half of the images left to right.
    """
    validate_integer("shift", shift, 0, 1024)
    validate_flag("flip", flip)
    if shift == 0 and not flip:
        return intervention

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        return intervention.loss(model, augment(images, shift, flip), labels)

    return replace(intervention, loss=loss)


def augment(images: Tensor, shift: int, flip: bool) -> Tensor:
    """Return each image shifted by up to `shift` pixels and perhaps flipped, in one operation.

    This is a random crop of an image padded with `shift` black pixels.
    """
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


@dataclass(frozen=True)
class TrainingContext:
    """What an intervention may need to know about the training run."""

    seed: int
    device: str


interventions: Registry[Callable[..., Intervention]] = Registry("intervention")
"""Functions that return each intervention, called with a `TrainingContext` and options."""
