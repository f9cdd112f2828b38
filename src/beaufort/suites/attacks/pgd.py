"""Projected gradient descent: steps that raise the loss, each projected back into the ball.

By default it attacks the true label, clips values to 0..1 and keeps the best image of all steps. The ImageNet
testbed (Taori et al., 2020) attacks the model's own prediction, does not clip, and takes the last image.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.validation import validate_choice, validate_integer, validate_number
from beaufort.corruptions import torch_ops
from beaufort.corruptions.rng import Key, Keyed
from beaufort.suites.attacks.attack import Victim
from beaufort.suites.attacks.balls import BALLS

_REFERENCE_SIDE = 224
"""Side in pixels for which an l2 radius is given, where it grows with the image."""


@dataclass(frozen=True, kw_only=True)
class PGD:
    """An attack of many small steps from a random start (Madry et al., 2018).

    >>> PGD(name="mine", norm="linf", steps=20).step
    0.125
    """

    name: str
    norm: str
    """`linf` or `l2`."""
    steps: int = 100
    step: float = 0.0
    """Length of a step as a fraction of the radius; 0 means 2.5 / steps."""
    use_labels: bool = True
    """Whether to attack the true label rather than the prediction for the clean image."""
    clip: bool = True
    """Whether values stay in 0..1."""
    keep_best: bool = True
    """Whether to stop at a misclassified image and otherwise keep the one with the highest loss, rather than
    the last one."""
    grow: bool = False
    """Whether the radius, but not the step, is proportional to the side of the image (epsilon at 224)."""
    version: int = 1
    """Raised when the same settings give other images."""

    def __post_init__(self) -> None:
        validate_choice("norm", self.norm, BALLS)
        validate_integer("steps", self.steps, 1, 100_000)
        validate_number("step", self.step, 0)
        if self.step == 0:
            object.__setattr__(self, "step", 2.5 / self.steps)

    @property
    def passes(self) -> int:
        """A gradient per step, and three predictions."""
        return 3 * self.steps + 3

    def facts(self) -> dict[str, Any]:
        """Return all settings."""
        settings = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}
        settings["truth"] = settings.pop("use_labels")  # the earlier name is part of fingerprints
        return {"attack": self.name, **settings}

    def radius(self, epsilon: float, side: int) -> float:
        """Return epsilon, scaled by the side if `grow` is set."""
        return epsilon * side / _REFERENCE_SIDE if self.grow else epsilon

    def perturb(
        self,
        victim: Victim,
        pixels: Any,
        label_sets: Any,
        *,
        radius: float,
        words: NDArray[np.uint64],
        seed: int,
    ) -> Any:
        """Return the perturbed images."""
        losses, done, predictions = victim.look(pixels, label_sets)
        # The length of a step is relative to epsilon; the radius may have grown with the image.
        length = self.step * radius / self.radius(1.0, min(pixels.shape[2:]))
        images = self._confined(pixels + radius * self._random(pixels, words, seed), pixels, radius)

        def moved(images: Any, centers: Any, gradients: Any) -> Any:
            direction = BALLS[self.norm].direction(gradients)
            return self._confined(images + length * direction, centers, radius)

        if not self.keep_best:
            labels = label_sets if self.use_labels else predictions[:, None]
            for _ in range(self.steps):
                images = moved(images, pixels, victim.gradients(images, labels)[2])
            return images

        best = pixels.clone()

        def keep(images: Any, found: Any, wrong: Any, places: Any) -> None:
            """Keep images that are misclassified or have a higher loss than the kept ones."""
            better = wrong | (found > losses[places])
            best[places[better]] = images[better]
            losses[places[better]] = found[better]

        places = (~done).nonzero()[:, 0]  # of the images that are still classified correctly
        images, centers, labels = images[places], pixels[places], label_sets[places]
        for _ in range(self.steps):
            if not len(places):
                return best
            found, wrong, gradients = victim.gradients(images, labels)
            keep(images, found, wrong, places)
            images = moved(images, centers, gradients)[~wrong]
            centers, labels, places = centers[~wrong], labels[~wrong], places[~wrong]
        if len(places):
            found, wrong, _ = victim.look(images, labels)
            keep(images, found, wrong, places)
        return best

    def _random(self, pixels: Any, words: NDArray[np.uint64], seed: int) -> Any:
        """Return numbers in [-1, 1) that depend on ids and seed; the same for every epsilon."""
        from beaufort._core.device import upload

        key = Key.of(seed, self.name, self.version, 0)
        ids = upload(words.view(np.int64), pixels.device)
        return Keyed(key, ids, torch_ops()).uniform(tuple(pixels.shape[1:]), -1, 1)

    def _confined(self, images: Any, centers: Any, radius: float) -> Any:
        inside = BALLS[self.norm].inside(images, centers, radius)
        return inside.clamp(0, 1) if self.clip else inside
