"""CoTTA: continual adaptation by an averaged teacher (Wang et al. 2022, arXiv:2203.13591).

Defaults are those of the published configuration for CIFAR-10-C, with batches of 200. All parameters are
trained. Predictions are the teacher's. Random numbers depend on the number of the batch alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from beaufort._core.optional import require
from beaufort.models.adaptation.learner import Learner

_BATCHES = "batches"


@dataclass(frozen=True)
class Cotta:
    """Train on predictions of a teacher, the moving average of the network."""

    lr: float = 0.001
    optimizer: str = "adam"
    momentum: float = 0.999
    """Of the teacher's moving average."""
    restore: float = 0.01
    """Fraction of parameters that are set back to their source values after each batch."""
    threshold: float = 0.92
    """Mean confidence of the source network below which predictions are averaged over augmentations."""
    views: int = 32
    """Number of augmentations."""

    def start(self, learner: Learner, source: Mapping[str, Tensor]) -> None:  # noqa: ARG002
        """Prepare a fresh copy of the network."""
        learner.use_batch_statistics()
        anchor, teacher = copy.deepcopy(learner.module), copy.deepcopy(learner.module)
        learner.train(dict(learner.module.named_parameters()))
        learner.optimize(self.optimizer, self.lr)
        learner.others = {"anchor": anchor, "teacher": teacher}
        learner.extra = {f"teacher.{name}": value.data for name, value in teacher.named_parameters()}
        learner.extra[_BATCHES] = torch.zeros((), dtype=torch.int64)

    def adapt(self, learner: Learner, pixels: Tensor) -> Tensor:
        """Return the logits of the teacher, and update the network and the teacher."""
        number = int(learner.extra[_BATCHES])
        logits = learner.logits(pixels)
        with torch.no_grad():
            confidence = learner.logits(pixels, learner.others["anchor"]).softmax(1).amax(1).mean()
            wanted = learner.logits(pixels, learner.others["teacher"])
            if confidence < self.threshold and self.views:
                rngs = (np.random.default_rng([number, view]) for view in range(self.views))
                views = [learner.logits(_augmented(pixels, rng), learner.others["teacher"]) for rng in rngs]
                wanted = torch.stack(views).mean(0)
        learner.backward(-(wanted.softmax(1) * logits.log_softmax(1)).sum(1).mean(), len(pixels))
        learner.step()
        with torch.no_grad():
            self._average_and_restore(learner, number)
        learner.extra[_BATCHES] += 1
        return wanted

    def _average_and_restore(self, learner: Learner, number: int) -> None:
        source = dict(learner.others["anchor"].named_parameters())
        generator = torch.Generator().manual_seed(number)
        for name, value in learner.parameters.items():
            learner.extra[f"teacher.{name}"].mul_(self.momentum).add_(value, alpha=1 - self.momentum)
            mask = torch.rand(value.shape, generator=generator) < self.restore
            value.copy_(torch.where(mask.to(value.device), source[name], value))


def _augmented(pixels: Tensor, rng: np.random.Generator) -> Tensor:
    """Return one augmentation of a batch: color, small affine change, blur, mirroring and noise."""
    require("torchvision", "torchvision", what="augmentations of cotta")
    change: Any = import_module("torchvision.transforms.v2.functional")
    color = [
        lambda x: change.adjust_brightness(x, rng.uniform(0.6, 1.4)),
        lambda x: change.adjust_contrast(x, rng.uniform(0.7, 1.3)),
        lambda x: change.adjust_saturation(x, rng.uniform(0.5, 1.5)),
        lambda x: change.adjust_hue(x, rng.uniform(-0.06, 0.06)),
        lambda x: change.adjust_gamma(x, rng.uniform(0.7, 1.3)),
    ]
    x = pixels
    for place in rng.permutation(len(color)) if pixels.shape[1] == 3 else ():
        x = color[place](x).clamp(0, 1)
    height, width = pixels.shape[-2:]
    x = change.pad(x, [width // 2, height // 2], padding_mode="edge")
    x = change.affine(
        x,
        angle=rng.uniform(-15, 15),
        translate=[round(2 * width * rng.uniform(-1, 1) / 16), round(2 * height * rng.uniform(-1, 1) / 16)],
        scale=rng.uniform(0.9, 1.1),
        shear=[0.0, 0.0],
        interpolation=change.InterpolationMode.BILINEAR,
    )
    x = change.gaussian_blur(x, [5, 5], [rng.uniform(0.001, 0.5)] * 2)
    x = change.center_crop(x, [height, width])
    if rng.uniform() < 0.5:
        x = change.horizontal_flip(x)
    noise = rng.normal(0, 0.005, x.shape).astype(np.float32)
    found: Tensor = (x + torch.from_numpy(noise).to(x.device)).clamp(0, 1)
    return found
