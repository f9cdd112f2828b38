"""A capsule network with dynamic routing: Sabour, Frosst & Hinton (2017), arXiv:1710.09829.

The paper of MNIST-C uses the network of Frosst, Sabour & Hinton (2018), arXiv:1811.06969, which is this one.
Figure 1 and section 4: 256 filters of 9×9; 32 channels of primary capsules of 8 numbers, 9×9 with stride 2;
ten capsules of 16 numbers; three rounds of routing. The length of a capsule is the score of its class. Margin
loss with m⁺ = 0.9, m⁻ = 0.1, λ = 0.5, and 0.0005 × the squared error of a reconstruction from the capsule of
the right class by layers of 512 and 1024.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort.training.architectures._layers import ten_classes

_UPPER, _LOWER, _MISSING = 0.9, 0.1, 0.5
_RECONSTRUCTION = 0.0005
_ROUNDS = 3


class Capsule(nn.Module):
    """Primary capsules, routed to one capsule per class."""

    def __init__(self, filters: int = 256, channels: int = 32, hidden: int = 512) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, filters, 9)
        self.primary = nn.Conv2d(filters, channels * 8, 9, stride=2)
        self.votes = nn.Parameter(0.1 * torch.randn(10, channels * 36, 8, 16))
        self.decoder = nn.Sequential(
            *(nn.Linear(160, hidden), nn.ReLU(), nn.Linear(hidden, 2 * hidden), nn.ReLU()),
            *(nn.Linear(2 * hidden, 784), nn.Sigmoid()),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return the lengths of the class capsules, `(n, 10)`."""
        return self.capsules(images).norm(dim=-1)

    def capsules(self, images: Tensor) -> Tensor:
        """Return the class capsules, `(n, 10, 16)`."""
        found = self.primary(functional.relu(self.first(images)))
        count, _, height, width = found.shape
        lower = _squashed(
            found.view(count, -1, 8, height, width).permute(0, 1, 3, 4, 2).reshape(count, -1, 8)
        )
        votes = torch.einsum("nid,cide->ncie", lower, self.votes)
        return _routed(votes)

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return margin loss plus reconstruction error."""
        upper = self.capsules(images).float()
        one_hot = functional.one_hot(labels, 10).to(upper.dtype)
        lengths = upper.norm(dim=-1)
        present = one_hot * (_UPPER - lengths).clamp(min=0) ** 2
        missing = _MISSING * (1 - one_hot) * (lengths - _LOWER).clamp(min=0) ** 2
        images_made = self.decoder((upper * one_hot[:, :, None]).flatten(1)).float()
        error = ((images_made - images.flatten(1)) ** 2).sum(1)
        return ((present + missing).sum(1) + _RECONSTRUCTION * error).mean()

    def constant_loss(self, counts: Sequence[int]) -> float:
        """Return the least margin loss of equal lengths for all images; reconstruction only adds to it."""
        total = 0.0
        for frequency in (count / sum(counts) for count in counts):
            missing = _MISSING * (1 - frequency)
            length = (frequency * _UPPER + missing * _LOWER) / (frequency + missing)
            total += frequency * (_UPPER - length) ** 2 + missing * (length - _LOWER) ** 2
        return total


def _squashed(capsules: Tensor) -> Tensor:
    """Return capsules of the same direction with lengths below 1."""
    square = (capsules**2).sum(-1, keepdim=True)
    return square / (1 + square) * capsules / torch.sqrt(square + 1e-8)


def _routed(votes: Tensor) -> Tensor:
    """Combine votes `(n, c, i, 16)` for each class, weighted by their agreement.

    As usual, only the last round is differentiated.
    """
    logits = votes.new_zeros(votes.shape[:3])
    fixed = votes.detach()
    for _ in range(_ROUNDS - 1):
        upper = _squashed(torch.einsum("nci,ncie->nce", logits.softmax(1), fixed))
        logits = logits + torch.einsum("ncie,nce->nci", fixed, upper)
    return _squashed(torch.einsum("nci,ncie->nce", logits.softmax(1), votes))


def make(filters: int = 256, channels: int = 32, hidden: int = 512, classes: int = 10) -> Capsule:
    """The network of the paper; smaller ones for tests."""
    ten_classes("capsule", classes)
    return Capsule(filters, channels, hidden)
