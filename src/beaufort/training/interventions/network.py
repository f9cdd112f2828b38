"""Adversarial training with a network that perturbs images in one pass and is trained along.

Wang & Yu (2019), "A direct approach to robust deep learning using adversarial networks", arXiv:1905.09591.
The classifier minimizes the loss on clean and on perturbed images, the adversary maximizes the latter. A
third term of the classifier's gradient penalizes a steep loss of the adversary (their equation 9, as a finite
difference). Layers, rates and the number of the adversary's steps are those of the authors' program.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from beaufort._core.validation import validate_integer, validate_number, validate_positive
from beaufort.training.interventions.base import Intervention, TrainingContext, plain_loss


class Adversary(nn.Module):
    """Two strided and two transposed convolutions that return a perturbation in -1..1."""

    def __init__(self, width: int = 64, channels: int = 1) -> None:
        super().__init__()
        back: dict[str, Any] = {"stride": 2, "padding": 2, "output_padding": 1, "bias": False}
        self.layers = nn.Sequential(
            *(nn.Conv2d(channels, width, 5, stride=2, padding=2), _batch_norm(width), nn.ReLU()),
            *(nn.Conv2d(width, 2 * width, 5, stride=2, padding=2), _batch_norm(2 * width), nn.ReLU()),
            *(nn.ConvTranspose2d(2 * width, width, 5, **back), _batch_norm(width), nn.ReLU()),
            *(nn.ConvTranspose2d(width, channels, 5, **back), nn.Tanh()),
        )

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.layers(2 * images - 1)
        return found


def _batch_norm(width: int) -> nn.BatchNorm2d:
    """Always uses batch statistics, because the adversary is used only in training."""
    return nn.BatchNorm2d(width, track_running_stats=False)


def make(
    training: TrainingContext,
    *,
    epsilon: float = 0.3,
    steps: int = 5,
    rate: float = 0.01,
    weight_decay: float = 1e-5,
    smoothness: float = 0.01,
    width: int = 64,
    channels: int = 1,
) -> Intervention:
    """Train against a network that perturbs images.

    Args:
        training: context of the training run.
        epsilon: largest change of a value in 0..1.
        steps: steps of the adversary per step of the classifier, on the same batch.
        rate: learning rate of the adversary; its momentum is 0.9.
        weight_decay: weight decay of the adversary.
        smoothness: weight of the third term of the gradient.
        width: channels of the adversary's first layer.
        channels: channels of the images.
    """
    validate_number("epsilon", epsilon, 0, 1)
    validate_number("weight_decay", weight_decay, 0, 1)
    validate_positive("rate", rate, 1)
    validate_number("smoothness", smoothness, 0, 1000)
    for name, count in (("steps", steps), ("width", width), ("channels", channels)):
        validate_integer(name, count, 1, 100_000)
    adversary = Adversary(width, channels).to(training.device)
    optimizer = torch.optim.SGD(adversary.parameters(), lr=rate, momentum=0.9, weight_decay=weight_decay)
    virtual = rate / 10

    def attacked(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        return plain_loss(model, images + epsilon * adversary(images), labels)

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            parameters = list(adversary.parameters())
            slopes = torch.autograd.grad(-attacked(model, images, labels), parameters)
            for one, slope in zip(parameters, slopes, strict=True):
                one.grad = slope
            optimizer.step()
        total = plain_loss(model, images, labels)
        moved = (images + epsilon * adversary(images)).detach()
        if not smoothness:
            return total + plain_loss(model, moved, labels)
        further = _one_step_further(adversary, attacked, model, images, labels, virtual, epsilon)
        here, there = plain_loss(model, moved, labels), plain_loss(model, further, labels)
        return total + here + smoothness / virtual * (here - there)

    def state() -> dict[str, Tensor]:
        momenta = {
            f"momentum.{place}": optimizer.state[one]["momentum_buffer"]
            for place, one in enumerate(adversary.parameters())
            if optimizer.state.get(one, {}).get("momentum_buffer") is not None
        }
        return {**{f"network.{key}": value for key, value in adversary.state_dict().items()}, **momenta}

    def restore(state: dict[str, Tensor]) -> None:
        own = {
            key.removeprefix("network."): value for key, value in state.items() if key.startswith("network.")
        }
        adversary.load_state_dict(own)
        for place, one in enumerate(adversary.parameters()):
            if (momentum := state.get(f"momentum.{place}")) is not None:
                optimizer.state[one]["momentum_buffer"] = momentum.to(one.device)

    return Intervention(loss=loss, state=state, restore=restore, constant=2)


def _one_step_further(
    adversary: Adversary,
    attacked: Any,
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    virtual: float,
    epsilon: float,
) -> Tensor:
    """Return the images that the adversary would make after one more small step."""
    parameters = dict(adversary.named_parameters())
    slopes = torch.autograd.grad(-attacked(model, images, labels), list(parameters.values()))
    moved = {
        name: (one - virtual * slope).detach()
        for (name, one), slope in zip(parameters.items(), slopes, strict=True)
    }
    with torch.no_grad():
        found: Tensor = torch.func.functional_call(adversary, moved, (images,))
        return images + epsilon * found
