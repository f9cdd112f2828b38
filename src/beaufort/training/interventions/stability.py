"""Stability training: answers to a clean and a noisy version of an image are to agree.

Zheng, Song, Leung & Goodfellow (2016), "Improving the robustness of deep neural networks via stability
training", arXiv:1604.04326: L = L0(x, y) + weight · Ls(x, x′) with x′ = x + noise. L0 sees the clean image
only. The paper calls Ls = −Σ P(j|x) log P(j|x′) a divergence, though the entropy of P(·|x) is not subtracted;
that decides what the clean branch learns from it, so all readings are here.
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
    """Train on clean images, with a term for the disagreement about noisy ones.

    The noisy images go through the network in a pass of their own, which leaves the running statistics of
    batch normalization alone. With a weight of 0 it is plain training, bit for bit.

    Args:
        training: what it is part of.
        weight: of the term.
        noise: `uniform` or `gaussian`.
        strength: the limit of uniform noise, the standard deviation of Gaussian; values are in 0..1.
        form: `cross-entropy` of the noisy answer against the clean one, which also makes clean answers
            surer; `kl`, the same less the entropy of the clean answer; `detached`, where the clean answer is
            a target that learns nothing from the term.
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
        "kl": 1.0,  # answers that are all alike agree
        "detached": 1.0 + weight,  # nothing draws a constant answer away from the shares of the classes
        "cross-entropy": partial(constant_stability_loss, weight=weight),
    }
    return Intervention(loss=loss, constant=constant[form])


def constant_stability_loss(counts: Sequence[int], weight: float) -> float:
    """The lowest loss, with the form `cross-entropy`, of an answer that is the same for all images.

    The term is then the entropy of that answer, so one that is surer than the shares of the classes has less.

    >>> round(constant_stability_loss([5, 5], 0.1), 4), round(constant_stability_loss([5, 5], 10), 4)
    (0.7625, 2.8659)

    Args:
        counts: how often each class is among the labels.
        weight: of the term.
    """
    from scipy.optimize import minimize

    some = np.array([count for count in counts if count], np.float64)
    shares = some / some.sum()

    def loss(logits: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logs = logits - np.logaddexp.reduce(logits)
        answer = np.exp(logs)
        entropy = -float(answer @ logs)
        return -float(shares @ logs) + weight * entropy, answer - shares - weight * answer * (logs + entropy)

    # in a minimum one class at most, the most frequent, is answered more often than its share over the weight
    surer = np.eye(len(shares))[shares.argmax()]
    starts = [np.log(shares) + more * surer for more in (0, 1, 3, 6)]
    return min(float(minimize(loss, start, jac=True, method="L-BFGS-B").fun) for start in starts)


def disagreement(clean: Tensor, noisy: Tensor, form: str = "cross-entropy") -> Tensor:
    """How far the answers to noisy images are from those to clean ones, from the logits of both."""
    sure, other = clean.log_softmax(1), noisy.log_softmax(1)
    if form == "detached":
        sure = sure.detach()
    total = -(sure.exp() * other).sum(1).mean()
    return total + (sure.exp() * sure).sum(1).mean() if form == "kl" else total


@contextlib.contextmanager
def _untouched_statistics(model: nn.Module) -> Iterator[None]:
    """Batch normalization uses each batch's own statistics, and keeps none of them."""
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
