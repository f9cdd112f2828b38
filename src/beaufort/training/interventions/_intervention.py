"""What an intervention is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort.training.data import TrainingBlock
from beaufort.training.ending import label_entropy


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


def _as_they_are(block: TrainingBlock, epoch: int) -> Tensor:
    return block.images


def _nothing() -> dict[str, Tensor]:
    return {}


def _ignore(state: dict[str, Tensor]) -> None:
    pass


@dataclass(frozen=True)
class Intervention:
    """How images are prepared and a loss is made; what is not given stays plain."""

    prepare: Callable[[TrainingBlock, int], Tensor] = _as_they_are
    """The uint8 images of a block in an epoch."""
    loss: Callable[[nn.Module, Tensor, Tensor], Tensor] = plain_loss
    """The loss of a batch: the network, images in 0..1, labels."""
    state: Callable[[], dict[str, Tensor]] = _nothing
    """What it learned so far, for a checkpoint."""
    restore: Callable[[dict[str, Tensor]], None] = _ignore
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


@dataclass(frozen=True)
class TrainingContext:
    """What an intervention may need to know of the training that it is part of."""

    seed: int
    device: str


interventions: Registry[Callable[..., Intervention]] = Registry("intervention")
"""What makes each intervention, by its name: called with a `TrainingContext` and its options."""
