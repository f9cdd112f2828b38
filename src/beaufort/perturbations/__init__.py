"""Sequences of ImageNet-P: short films of one picture under a small, changing perturbation."""

from __future__ import annotations

from beaufort.perturbations import geometry, pixels
from beaufort.perturbations._perturbation import FRAMES, SIDES, VERSION, Perturbation, perturbations

__all__ = ["FRAMES", "SIDES", "VERSION", "Perturbation", "geometry", "perturbations", "pixels"]
