"""Stability training: predictions for a clean and a noisy version of an image should agree.

Zheng, Song, Leung & Goodfellow (2016), "Improving the robustness of deep neural networks via stability
training", arXiv:1604.04326: L = L0(x, y) + weight · Ls(x, x′) with x′ = x + noise. L0 sees the clean image
only. The paper calls Ls = −Σ P(j|x) log P(j|x′) a divergence, although the entropy of P(·|x) is not
subtracted; this determines what the clean branch learns, so all interpretations are implemented.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.validation import validate_choice, validate_number
from beaufort.training.interventions.base import (
    Intervention,
    TrainingContext,
    needs_logits,
)
from beaufort.training.interventions.noise import check_noise, with_noise

FORMS = ("cross-entropy", "kl", "detached")


def make(
    training: TrainingContext,
    *,
    weight: float = 0.05,
    noise: str = "uniform",
    strength: float = 0.05,
    form: str = "cross-entropy",
) -> Intervention:
    """Train on clean images, with a term for different predictions for noisy images.

    Noisy images have their own forward pass, which does not change the running statistics of batch
    normalization. A weight of 0 is plain training, bit for bit.

    Args:
        training: context of the training run.
        weight: weight of the term.
        noise: `uniform` or `gaussian`.
        strength: limit of uniform noise, standard deviation of Gaussian noise; values are in 0..1.
        form: `cross-entropy` of the noisy prediction relative to the clean one, which also increases the
            confidence of clean predictions; `kl` subtracts the entropy of the clean prediction; `detached`
            uses the clean prediction as a constant target.
    """
    check_noise(noise, strength)
    validate_number("weight", weight, 0, 1e6)
    validate_choice("form", form, FORMS)
    if weight == 0:
        return Intervention(constant=1)

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        needs_logits(model, "stability")
        clean = model(images).float()
        with _untouched_statistics(model):
            noisy = model(with_noise(images, noise, strength)).float()
        return functional.cross_entropy(clean, labels) + weight * disagreement(clean, noisy, form)

    constant: dict[str, float | Callable[[Sequence[int]], float]] = {
        "kl": 1.0,  # constant predictions agree
        "detached": 1.0 + weight,  # the best constant prediction stays the class frequencies
        "cross-entropy": partial(constant_stability_loss, weight=weight),
    }
    return Intervention(loss=loss, constant=constant[form])


def constant_stability_loss(counts: Sequence[int], weight: float) -> float:
    """Return the lowest loss of a constant prediction with the form `cross-entropy`.

    The term is then the entropy of the prediction, so the optimum is more confident than the frequencies.

    >>> round(constant_stability_loss([5, 5], 0.1), 4), round(constant_stability_loss([5, 5], 10), 4)
    (0.7625, 2.8659)
    """
    from scipy.optimize import minimize

    some = np.array([count for count in counts if count], np.float64)
    fractions = some / some.sum()

    def loss(logits: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logs = logits - np.logaddexp.reduce(logits)
        p = np.exp(logs)
        entropy = -float(p @ logs)
        return -float(fractions @ logs) + weight * entropy, p - fractions - weight * p * (logs + entropy)

    # in a minimum, at most the most frequent class has a probability above its frequency over the weight
    peak = np.eye(len(fractions))[fractions.argmax()]
    starts = [np.log(fractions) + more * peak for more in (0, 1, 3, 6)]
    return min(float(minimize(loss, start, jac=True, method="L-BFGS-B").fun) for start in starts)


def disagreement(clean: Tensor, noisy: Tensor, form: str = "cross-entropy") -> Tensor:
    """Return how much predictions for noisy images differ from clean ones, from the logits of both."""
    target, other = clean.log_softmax(1), noisy.log_softmax(1)
    if form == "detached":
        target = target.detach()
    total = -(target.exp() * other).sum(1).mean()
    return total + (target.exp() * target).sum(1).mean() if form == "kl" else total


@contextlib.contextmanager
def _untouched_statistics(model: nn.Module) -> Iterator[None]:
    """Let batch normalization use the statistics of the batch without storing them."""
    layers = [
        one
        for one in model.modules()
        if isinstance(one, nn.modules.batchnorm._BatchNorm) and one.track_running_stats
    ]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True
