"""Sequences of ImageNet-P: frames of one image under a small, changing perturbation."""

from __future__ import annotations

from beaufort.corruptions.sequences import geometry, pixels
from beaufort.corruptions.sequences._perturbation import FRAMES, SIDES, VERSION, Perturbation, perturbations

__all__ = ["FRAMES", "SIDES", "VERSION", "Perturbation", "geometry", "perturbations", "pixels", "sequences"]

sequences: dict[str, tuple[Perturbation, int]] = {
    name if difficulty == 1 else f"{name}_{difficulty}": (one, difficulty)
    for name, one in perturbations.items()
    for difficulty in range(1, 1 + len(one.levels["imagenet"]))
}
"""The perturbation and the difficulty of each sequence, by the name of its published folder."""
