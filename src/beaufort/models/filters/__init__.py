"""Image filters, applied to 8-bit images before a model's own preprocessing to make it robust.

>>> from beaufort.models.filters import load_filter
>>> load_filter("clahe:clip=4").name
'clahe-clip4'
"""

from __future__ import annotations

from beaufort.models.filters.base import BEFORE_SCALING, Filter, Views, filter_kinds, image_filter
from beaufort.models.filters.chain import FilterStep, ImageFilter, load_filter
from beaufort.models.filters.contrast import Clahe, Equalize, Stretch
from beaufort.models.filters.crops import MultiCrop, TenCrop
from beaufort.models.filters.nlm import NonLocalMeans, estimate_noise

__all__ = [
    "BEFORE_SCALING",
    "Clahe",
    "Equalize",
    "Filter",
    "FilterStep",
    "ImageFilter",
    "MultiCrop",
    "NonLocalMeans",
    "Stretch",
    "TenCrop",
    "Views",
    "estimate_noise",
    "filter_kinds",
    "image_filter",
    "load_filter",
]
