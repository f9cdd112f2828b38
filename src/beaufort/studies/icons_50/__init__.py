"""Icons-50 (Hendrycks & Dietterich 2018, arXiv:1807.01697v1): surface variation, its tables made again."""

from __future__ import annotations

from beaufort.studies.icons_50.icon_runs import STUDY

__all__ = ["STUDY"]
