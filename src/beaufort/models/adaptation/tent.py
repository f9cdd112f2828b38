"""TENT: entropy minimization (Wang et al. 2021, arXiv:2006.10726).

Defaults are those of the published configuration for CIFAR-10-C, with batches of 200. For ImageNet-C the
paper uses SGD with a learning rate of 0.00025 and batches of 64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from beaufort.models.adaptation.learner import Learner, entropy


@dataclass(frozen=True)
class Tent:
    """Minimize the entropy of predictions over scale and shift of normalization layers."""

    lr: float = 0.001
    optimizer: str = "adam"
    steps: int = 1
    """Updates per batch."""

    def start(self, learner: Learner, source: Mapping[str, Tensor]) -> None:  # noqa: ARG002
        """Prepare a fresh copy of the network."""
        learner.use_batch_statistics()
        learner.train_normalization()
        learner.optimize(self.optimizer, self.lr)

    def adapt(self, learner: Learner, pixels: Tensor) -> Tensor:
        """Return the logits before the last update, and update the parameters."""
        logits = learner.logits(pixels)
        for step in range(self.steps):
            if step:
                logits = learner.logits(pixels)
            learner.backward(entropy(logits).mean(), len(pixels))
            learner.step()
        return logits
