"""Front ends: what is done to 8-bit images before a model's own preprocessing, to make it robust.

>>> from beaufort.models.filters import open_front
>>> open_front("clahe:clip=4").name
'clahe-clip4'
"""

from __future__ import annotations

from beaufort.models.filters._front import Filter, Views, front_kinds
from beaufort.models.filters.chain import Front, FrontStep, open_front
from beaufort.models.filters.clahe import Clahe
from beaufort.models.filters.crops import MultiCrop, TenCrop
from beaufort.models.filters.equalize import Equalize
from beaufort.models.filters.nlm import NonLocalMeans
from beaufort.models.filters.noise import estimate_noise
from beaufort.models.filters.stretch import Stretch

__all__ = [
    "Clahe",
    "Equalize",
    "Filter",
    "Front",
    "FrontStep",
    "MultiCrop",
    "NonLocalMeans",
    "Stretch",
    "TenCrop",
    "Views",
    "estimate_noise",
    "front_kinds",
    "open_front",
]
