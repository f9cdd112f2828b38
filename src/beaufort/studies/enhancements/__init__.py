"""The interventions of the ImageNet-C paper (arXiv:1807.01697), each beside its control."""

from __future__ import annotations

from beaufort.studies.enhancements.enhancement_tasks import STUDY

__all__ = ["STUDY"]
