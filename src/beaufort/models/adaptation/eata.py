"""EATA: entropy minimization on reliable and diverse images (Niu et al. 2022, arXiv:2204.02610).

Defaults are those of the published program for ImageNet-C with batches of 64. For CIFAR-10-C the paper uses
`lr=0.005,d_margin=0.4,fisher_alpha=1`. With `fisher_size=0` it is ETA, without the regularizer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from beaufort.models.adaptation.learner import Learner, entropy

_AVERAGE = "probabilities"
_STEP = 64
"""Images per batch of the Fisher information."""


@dataclass(frozen=True)
class Eata:
    """Minimize a weighted entropy over images below two margins, close to the source parameters."""

    lr: float = 0.00025
    optimizer: str = "sgd"
    e_margin: float = 0.4
    """Largest entropy of a reliable image, as a fraction of that of equal probabilities."""
    d_margin: float = 0.05
    """Largest similarity of an image's probabilities with their moving average."""
    fisher_alpha: float = 2000.0
    """Weight of the regularizer."""
    fisher_size: int = 2000
    """Number of clean images from which the regularizer is computed."""

    def start(self, learner: Learner, source: Mapping[str, Tensor]) -> None:
        """Prepare a fresh copy of the network."""
        learner.use_batch_statistics()
        learner.train_normalization()
        learner.optimize(self.optimizer, self.lr)
        learner.constants = source

    def prepare(self, learner: Learner, pixels: Tensor) -> dict[str, Tensor]:
        """Return the Fisher information of each parameter, from clean images and their predicted classes."""
        parts = torch.split(pixels, _STEP)
        total = {name: torch.zeros_like(value) for name, value in learner.parameters.items()}
        for part in parts:
            logits = learner.logits(part)
            learner.backward(cross_entropy(logits, logits.argmax(1)), len(part))
            for name, value in learner.parameters.items():
                if value.grad is not None:
                    total[name] += value.grad**2 / len(parts)
        return {f"fisher.{name}": value for name, value in total.items()} | {
            f"source.{name}": value.detach().clone() for name, value in learner.parameters.items()
        }

    def adapt(self, learner: Learner, pixels: Tensor) -> Tensor:
        """Return the logits before the update, and update the parameters."""
        logits = learner.logits(pixels)
        surprise, probabilities = entropy(logits), logits.detach().softmax(1)
        margin = self.e_margin * math.log(logits.shape[1])
        chosen = surprise.detach() < margin
        average = learner.extra.get(_AVERAGE)
        if average is not None:
            chosen &= cosine_similarity(average[None], probabilities).abs() < self.d_margin
        count = int(chosen.sum())
        if count:
            new = probabilities[chosen].mean(0)
            learner.extra[_AVERAGE] = new if average is None else 0.9 * average + 0.1 * new
            weights = torch.exp(margin - surprise.detach()[chosen])
            loss = (surprise[chosen] * weights).mean() + self._penalty(learner)
            learner.backward(loss, count)
            learner.step()
        return logits

    def _penalty(self, learner: Learner) -> Tensor:
        known = learner.constants
        terms = [
            (known[f"fisher.{name}"] * (value - known[f"source.{name}"]) ** 2).sum()
            for name, value in learner.parameters.items()
            if f"fisher.{name}" in known
        ]
        return self.fisher_alpha * torch.stack(terms).sum() if terms else torch.tensor(0.0)
