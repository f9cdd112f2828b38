"""SAR: sharpness-aware and reliable entropy minimization (Niu et al. 2023, arXiv:2302.12400).

Defaults are those of the published program for a ResNet-50 on ImageNet-C with batches of 64; below 32 images
it multiplies the learning rate by the batch size divided by 32. It has no settings for CIFAR-10-C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from beaufort.models.adaptation.learner import Learner, entropy

_TOP = ("layer4", "blocks.9", "blocks.10", "blocks.11", "norm.")
"""Parts of names of the top layers of ResNets and ViT-B, which stay as they are."""
_LOSS = "loss"


@dataclass(frozen=True)
class Sar:
    """Minimize the entropy of reliable images at the worst nearby parameters; recover after a collapse."""

    lr: float = 0.00025
    optimizer: str = "sgd"
    e_margin: float = 0.4
    """Largest entropy of a reliable image, as a fraction of that of equal probabilities."""
    rho: float = 0.05
    """Radius within which the worst parameters are sought."""
    recovery: float = 0.2
    """Moving average of the entropy below which the model is reset."""

    def start(self, learner: Learner, source: Mapping[str, Tensor]) -> None:  # noqa: ARG002
        """Prepare a fresh copy of the network."""
        learner.use_batch_statistics()
        learner.train_normalization(lambda name: name == "norm" or any(part in name for part in _TOP))
        learner.optimize(self.optimizer, self.lr)
        learner.constants = {name: value.detach().clone() for name, value in learner.parameters.items()}

    def adapt(self, learner: Learner, pixels: Tensor) -> Tensor:
        """Return the logits before the update, and update the parameters."""
        logits = learner.logits(pixels)
        surprise = entropy(logits)
        margin = self.e_margin * math.log(logits.shape[1])
        reliable = surprise.detach() < margin
        if not reliable.any():
            return logits
        learner.backward(surprise[reliable].mean(), int(reliable.sum()))
        before = self._climb(learner)
        again = entropy(learner.logits(pixels))[reliable]
        still = again.detach() < margin
        if still.any():
            loss = again[still].mean()
            learner.backward(loss, int(still.sum()))
        with torch.no_grad():
            for name, value in learner.parameters.items():
                value.copy_(before[name])
        if still.any():
            learner.step()
            self._remember(learner, loss.detach())
        return logits

    def _climb(self, learner: Learner) -> dict[str, Tensor]:
        """Move to the worst nearby parameters, to first order; return those before."""
        before = {name: value.detach().clone() for name, value in learner.parameters.items()}
        slopes = {name: value.grad for name, value in learner.parameters.items() if value.grad is not None}
        norm = torch.stack([slope.norm() for slope in slopes.values()]).norm()
        with torch.no_grad():
            for name, slope in slopes.items():
                learner.parameters[name].add_(slope * (self.rho / (norm + 1e-12)))
        return before

    def _remember(self, learner: Learner, loss: Tensor) -> None:
        """Update the moving average of the loss; reset parameters and optimizer if it is too small."""
        average = learner.extra.get(_LOSS)
        learner.extra[_LOSS] = loss if average is None else 0.9 * average + 0.1 * loss
        if learner.extra[_LOSS] < self.recovery:
            with torch.no_grad():
                for name, value in learner.constants.items():
                    learner.parameters[name].copy_(value)
            learner.optimize(self.optimizer, self.lr)
            del learner.extra[_LOSS]
