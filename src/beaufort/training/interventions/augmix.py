"""AugMix: images mixed with chains of simple operations, and a term for consistent predictions.

Hendrycks, Mu, Cubuk, Zoph, Gilmer & Lakshminarayanan (2020), "AugMix: a simple data processing method to
improve robustness and uncertainty", arXiv:1912.02781. None of the operations is a corruption of ImageNet-C or
CIFAR-10-C; MNIST-C has rotations, shears and translations too. Constants are those of the paper for CIFAR.

Each image draws its own operations, strengths and weights, and an operation is applied once to all images
that drew it, so the cost of a batch depends little on its size. The operations are Pillow's; level 1 is
strongest: 30 degrees, a third of a side, a shear of 0.3, one bit of four. Rotations and shears keep the
center fixed; Pillow shears from a corner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.validation import validate_integer, validate_number
from beaufort.training.interventions.base import (
    Intervention,
    TrainingContext,
    needs_logits,
)

Operation = Callable[[Tensor], Tensor]
"""Changes each of the images `(n, c, h, w)` in 0..1 at random."""


def make(
    training: TrainingContext,
    *,
    severity: float = 3.0,
    width: int = 3,
    depth: int = 3,
    weight: float = 12.0,
) -> Intervention:
    """Train with AugMix.

    Args:
        training: context of the training run.
        severity: largest strength of an operation, from 0.1 to 10.
        width: number of chains.
        depth: maximum number of operations in a chain.
        weight: weight of the Jensen-Shannon divergence of the predictions for the clean image and two mixed
            ones; with 0, one mixed image replaces the clean one.
    """
    validate_number("severity", severity, 0.1, 10)
    validate_integer("width", width, 1, 16)
    validate_integer("depth", depth, 1, 16)
    validate_number("weight", weight, 0, 1e6)

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        needs_logits(model, "augmix")
        mixed = [augmix(images, severity, width, depth) for _ in range(2 if weight else 1)]
        if not weight:
            return functional.cross_entropy(model(mixed[0]).float(), labels)
        logits = model(torch.cat([images, *mixed])).float().chunk(3)
        return functional.cross_entropy(logits[0], labels) + weight * divergence(*logits)

    return Intervention(loss=loss, constant=1)


def augmix(images: Tensor, severity: float = 3.0, width: int = 3, depth: int = 3) -> Tensor:
    """Return mixed versions of images in 0..1."""
    mixed = torch.rand(len(images), 1, 1, 1, device=images.device)  # Beta(1, 1)
    chains = mixed_chains(images, operations(severity), width=width, depth=depth)
    return (1 - mixed) * images + mixed * chains


def operations(severity: float) -> list[Operation]:
    """Return the nine operations, with strengths drawn for each image."""
    return [
        autocontrast,
        equalize,
        *(
            lambda images, change=change: change(images, _level(images, severity))
            for change in (posterize, solarize, rotate, shear_x, shear_y, translate_x, translate_y)
        ),
    ]


def _level(images: Tensor, severity: float) -> Tensor:
    """Return a strength for each image, from 0.01 to a tenth of the severity; 1 is the strongest possible."""
    return (0.1 + (severity - 0.1) * torch.rand(len(images), device=images.device)) / 10


def divergence(*logits: Tensor) -> Tensor:
    """Return the Jensen-Shannon divergence of logits, averaged over images."""
    logs = [one.log_softmax(1) for one in logits]
    mean = torch.stack([one.exp() for one in logs]).mean(0).clamp(1e-7, 1).log()
    total = sum(functional.kl_div(mean, one, reduction="batchmean", log_target=True) for one in logs)
    return torch.as_tensor(total) / len(logs)


def mixed_chains(images: Tensor, operations: Sequence[Operation], *, width: int, depth: int) -> Tensor:
    """Return a weighted mean of `width` chains of 1 to `depth` operations on each image."""
    weights = dirichlet(len(images), width, images.device)
    total = torch.zeros_like(images)
    with torch.autocast(images.device.type, enabled=False):  # full precision for pixels
        for chain in range(width):
            total += weights[:, chain, None, None, None] * _chained(images, operations, depth)
    return total


def dirichlet(count: int, width: int, device: torch.device) -> Tensor:
    """Return `width` weights for each image, uniform among those that sum to 1."""
    gaps = -torch.log(torch.rand(count, width, device=device).clamp_min(1e-12))
    return gaps / gaps.sum(1, keepdim=True)


def _chained(images: Tensor, operations: Sequence[Operation], depth: int) -> Tensor:
    count, device = len(images), images.device
    length = torch.randint(1, depth + 1, (count,), device=device)
    out = images.clone()
    for step in range(depth):
        chosen = torch.randint(0, len(operations), (count,), device=device)
        chosen[length <= step] = -1
        for number, operation in enumerate(operations):
            places = (chosen == number).nonzero()[:, 0]
            if len(places):
                out[places] = operation(out[places]).clamp(0, 1)
    return out


def autocontrast(images: Tensor) -> Tensor:
    """Stretch each channel to 0..1."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    wide = high > low
    return torch.where(wide, (images - low) / torch.where(wide, high - low, 1), images)


def equalize(images: Tensor) -> Tensor:
    """Equalize the histogram of each channel."""
    count, channels, height, width = images.shape
    levels = (images * 255).round().long().reshape(count * channels, -1)
    counts = torch.zeros(count * channels, 256, device=images.device)
    counts.scatter_add_(1, levels, torch.ones_like(levels, dtype=torch.float32))
    last = counts.gather(1, levels.amax(1, keepdim=True))
    step = ((height * width - last) / 255).floor()
    before = counts.cumsum(1) - counts
    table = ((before + (step / 2).floor()) / step.clamp_min(1)).floor().clamp(0, 255)
    made = table.gather(1, levels).reshape(images.shape) / 255
    return torch.where((step > 0).view(count, channels, 1, 1), made, images)


def posterize(images: Tensor, level: Tensor) -> Tensor:
    """Reduce to four bits, down to one."""
    bits = 4 - (level * 4).floor().clamp(max=3)
    size = (2 ** (8 - bits)).view(-1, 1, 1, 1)
    return ((images * 255).round() / size).floor() * size / 255


def solarize(images: Tensor, level: Tensor) -> Tensor:
    """Invert values above a threshold."""
    threshold = (256 - (level * 256).floor()).view(-1, 1, 1, 1) / 255
    return torch.where(images < threshold, images, 1 - images)


def rotate(images: Tensor, level: Tensor) -> Tensor:
    """Rotate by up to 30 degrees."""
    angle = _signed(level) * math.radians(30)
    one, zero = torch.cos(angle), torch.zeros_like(angle)
    return _moved(images, one, -torch.sin(angle), zero, torch.sin(angle), one, zero)


def shear_x(images: Tensor, level: Tensor) -> Tensor:
    """Shift rows in proportion to their height."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _moved(images, one, 0.3 * _signed(level), zero, zero, one, zero)


def shear_y(images: Tensor, level: Tensor) -> Tensor:
    """Shift columns in proportion to their position."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _moved(images, one, zero, zero, 0.3 * _signed(level), one, zero)


def translate_x(images: Tensor, level: Tensor) -> Tensor:
    """Translate by up to a third of the width."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _moved(images, one, zero, _signed(level) * 2 / 3, zero, one, zero)


def translate_y(images: Tensor, level: Tensor) -> Tensor:
    """Translate by up to a third of the height."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return _moved(images, one, zero, zero, zero, one, _signed(level) * 2 / 3)


def _signed(level: Tensor) -> Tensor:
    return torch.where(torch.rand_like(level) < 0.5, -level, level)


def _moved(images: Tensor, *entries: Tensor) -> Tensor:
    """Apply an affine map to each image, with shifts in units of half a side and black borders."""
    maps = torch.stack(entries, 1).view(-1, 2, 3)
    height, width = images.shape[2:]
    maps[:, 0, 1] *= height / width  # torch measures each axis in its own half sides
    maps[:, 1, 0] *= width / height
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
