"""The interventions of the ImageNet-C paper (arXiv:1807.01697), each beside its control."""

from __future__ import annotations

__all__: list[str] = []
