"""Sequences of ImageNet-P: short films of one picture under a small, changing perturbation."""

from __future__ import annotations

from beaufort.corruptions.sequences import geometry, pixels
from beaufort.corruptions.sequences._perturbation import FRAMES, SIDES, VERSION, Perturbation, perturbations

__all__ = ["FRAMES", "SIDES", "VERSION", "Perturbation", "geometry", "perturbations", "pixels"]
