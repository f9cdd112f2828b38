"""What an intervention is, and the random moves and mirroring that most of them start with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort._core.validation import validate_integer
from beaufort.training.data import TrainingBlock
from beaufort.training.ending import label_entropy

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""The network, images in 0..1 and labels to a loss."""


def plain_loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The network's own loss if it has one (`loss(images, labels)`), else cross entropy."""
    own = getattr(model, "loss", None)
    if own is not None:
        loss: Tensor = own(images, labels)
        return loss
    return functional.cross_entropy(model(images).float(), labels)


def needs_logits(model: nn.Module, intervention: str) -> None:
    """Refuse a network with a loss of its own, to which terms on logits cannot be added."""
    if hasattr(model, "loss"):
        raise OptionError(
            f"the intervention {intervention!r} must have a network of logits, got {type(model).__name__}, "
            "which has a loss of its own"
        )


@dataclass(frozen=True)
class Intervention:
    """How images are prepared and a loss is made; what is not given stays plain."""

    prepare: Callable[[TrainingBlock, int], Tensor] = lambda block, _: block.images
    """The uint8 images of a block in an epoch."""
    loss: Loss = plain_loss
    """The loss of a batch."""
    state: Callable[[], dict[str, Tensor]] = dict
    """What it learned so far, for a checkpoint."""
    restore: Callable[[dict[str, Tensor]], None] = lambda _: None
    constant: float | Callable[[Sequence[int]], float] | None = None
    """How many times its plain loss a network has at least that answers all images alike; or what gives that
    loss itself, from how often each class is among the labels. None if unknown."""


def least_constant_loss(intervention: Intervention, model: nn.Module, counts: Sequence[int]) -> float | None:
    """The lowest loss of an answer that is the same for all images; None if it is not known.

    Args:
        intervention: which makes the loss.
        model: a network; one with a loss of its own may say it in a method `constant_loss(counts)`.
        counts: how often each class is among the labels.
    """
    own = getattr(model, "constant_loss", None)
    if intervention.constant is None or (own is None and hasattr(model, "loss")) or not sum(counts):
        return None
    if callable(intervention.constant):
        return round(intervention.constant(counts), 6) or None
    plain = label_entropy(counts) if own is None else float(own(counts))
    return round(intervention.constant * plain, 6) or None  # 0 with one class: there is nothing to learn


def augmented(intervention: Intervention, *, shift: int = 0, flip: bool = False) -> Intervention:
    """Return the intervention with a loss on images that are moved and mirrored first, at random.

    Args:
        intervention: any.
        shift: pixels by which an image is moved at most, in each direction.
        flip: whether every other image, at random, is mirrored left to right.
    """
    validate_integer("shift", shift, 0, 1024)
    if not isinstance(flip, bool):
        raise OptionError(f"flip must be true or false, got {flip!r:.60}")
    if shift == 0 and not flip:
        return intervention

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        return intervention.loss(model, augment(images, shift, flip), labels)

    return replace(intervention, loss=loss)


def augment(images: Tensor, shift: int, flip: bool) -> Tensor:
    """Each image moved by up to `shift` pixels and perhaps mirrored, on its own; all in one operation.

    What comes in is black: it is the same as a random crop of an image with so many black pixels around it.
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
    """What an intervention may need to know of the training that it is part of."""

    seed: int
    device: str


interventions: Registry[Callable[..., Intervention]] = Registry("intervention")
"""What makes each intervention, by its name: called with a `TrainingContext` and its options."""
