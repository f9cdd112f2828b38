"""Batch normalization with the statistics of the batch (Schneider et al. 2020, arXiv:2006.16971).

Statistics are those of the batch, mixed with those of training: with a prior of N images and a batch of n,
the weight of training is N / (N + n). N = 0 is prediction-time batch normalization (Nado et al. 2020,
arXiv:2006.10963), the baseline that other papers call "BN" or "norm".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import batch_norm

from beaufort.models.adaptation.learner import Learner, batch_norms
from beaufort.models.spec import ModelError


@dataclass(frozen=True)
class BatchStatistics:
    """Statistics of the batch, mixed with those of training."""

    prior: float = 0.0
    """Weight of the statistics of training, in images."""

    def start(self, learner: Learner, source: Mapping[str, Tensor]) -> None:  # noqa: ARG002
        """Replace the normalization of a fresh copy of the network."""
        layers = batch_norms(learner.module)
        if not layers:
            raise ModelError("the network has no batch normalization to adapt")
        if not self.prior:
            learner.use_batch_statistics()
            return
        for layer in layers:
            layer.forward = partial(_mixed, layer, self.prior)

    def adapt(self, learner: Learner, pixels: Tensor) -> Tensor:
        """Return the logits of a batch."""
        with torch.no_grad():
            return learner.logits(pixels)


def _mixed(layer: Any, prior: float, inputs: Tensor) -> Tensor:
    axes = [0, *range(2, inputs.ndim)]
    weight = prior / (prior + len(inputs))
    mean = weight * layer.running_mean + (1 - weight) * inputs.mean(axes)
    variance = weight * layer.running_var + (1 - weight) * inputs.var(axes, unbiased=False)
    return batch_norm(inputs, mean, variance, layer.weight, layer.bias, False, 0.0, layer.eps)
