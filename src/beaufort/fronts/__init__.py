"""Front ends: what is done to 8-bit images before a model's own preprocessing, to make it robust.

>>> from beaufort.fronts import open_front
>>> open_front("clahe:clip=4").name
'clahe-clip4'
"""

from __future__ import annotations

from beaufort.fronts._front import Filter, Views, front_kinds
from beaufort.fronts.chain import Front, FrontStep, open_front
from beaufort.fronts.clahe import Clahe
from beaufort.fronts.crops import MultiCrop, TenCrop
from beaufort.fronts.equalize import Equalize
from beaufort.fronts.nlm import NonLocalMeans
from beaufort.fronts.noise import estimate_noise
from beaufort.fronts.stretch import Stretch

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
