"""Work over many pictures: corrupt a folder, make a published data set, draw the gallery."""

from __future__ import annotations

from beaufort.jobs.corrupt import corrupt_tree
from beaufort.jobs.gallery import make_gallery
from beaufort.jobs.make import DATASETS, make_dataset
from beaufort.jobs.report import Problem, Progress, Report

__all__ = [
    "DATASETS",
    "Problem",
    "Progress",
    "Report",
    "corrupt_tree",
    "make_dataset",
    "make_gallery",
]
