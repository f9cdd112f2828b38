"""Which models share a color, and what the colors and settings are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort.testbed.grid import Grid
from beaufort.testbed.kinds import KINDS


class Look(NamedTuple):
    """Models of one color."""

    label: str
    color: str
    dark: str
    """The color on a dark ground."""
    models: NDArray[np.bool_]


_STANDARD = ("#1a5fa8", "#7fb8f5")
_ROBUST = ("#c2622d", "#f0a070")
_LP = ("#8a3fa0", "#cf9be0")
_MORE = ("#23803f", "#74cf8d")
_OTHER = ("#8b9096", "#8f98a3")

_TYPES: Mapping[str, tuple[str, tuple[str, str]]] = {
    "STANDARD": ("standard training", _STANDARD),
    "ROBUST_INTV": ("robustness intervention", _ROBUST),
    "LP_ADV": ("trained against lp attacks", _LP),
    "MORE_DATA": ("trained with more data", _MORE),
}

_KIND_COLORS: Mapping[str, tuple[str, str]] = {
    "imagenet-1k": _STANDARD,
    "imagenet-1k, distilled": ("#3aa0a0", "#7fd6d6"),
    "imagenet-1k, adversarial": _ROBUST,
    "imagenet-21k": ("#7aa51e", "#b7db6a"),
    "web": _MORE,
    "image-text": ("#b02a5b", "#f08cb0"),
}


def looks(grid: Grid) -> list[Look]:
    """The colors of a grid: by training data for timm's entries, else by type of model.

    Models of type STANDARD that the trend is not fitted on are grey, like all types without a color of
    their own.
    """
    if all(kind in grid.groups for kind in KINDS):
        return [
            Look(kind, *color, grid.groups[kind])
            for kind, color in _KIND_COLORS.items()
            if grid.groups[kind].any()
        ]
    types = np.array(grid.types)
    found, taken = [], np.zeros(len(types), bool)
    for name, (label, color) in _TYPES.items():
        mask = types == name
        if name == "STANDARD" and (mask & grid.fitted).any():
            mask &= grid.fitted
        if mask.any():
            found.append(Look(label, *color, mask))
            taken |= mask
    if not taken.all():
        found.append(Look("other", *_OTHER, ~taken))
    return found


_TITLES: Mapping[str, str] = {
    "val": "ImageNet",
    "imagenetv2-matched-frequency-format-val": "ImageNetV2",
    "imagenetv2-matched-frequency": "ImageNetV2 (original files)",
    "objectnet-1.0-beta": "ObjectNet",
    "val-on-objectnet-classes": "ImageNet (classes of ObjectNet)",
    "imagenet-vid-robust_pm0": "Vid-Robust, anchors",
    "imagenet-vid-robust_pm10": "Vid-Robust, ±10 frames",
    "val-on-vid-robust-classes": "ImageNet (classes of Vid-Robust)",
    "ytbb-robust_pm0": "YTBB-Robust, anchors",
    "ytbb-robust_pm10": "YTBB-Robust, ±10 frames",
    "val-on-ytbb-robust-classes": "ImageNet (classes of YTBB-Robust)",
    "imagenet-a": "ImageNet-A",
    "val-on-imagenet-a-classes": "ImageNet (classes of ImageNet-A)",
    "imagenet-r": "ImageNet-R",
    "val-on-imagenet-r-classes": "ImageNet (classes of ImageNet-R)",
    "imagenet-sketch": "ImageNet-Sketch",
    "imagenet-real": "ImageNet, ReaL labels",
    "avg_corruptions": "mean over corruptions",
    "avg_pgd": "mean over PGD attacks",
}


def title(setting: str) -> str:
    """What a setting is called in a figure."""
    return _TITLES.get(setting, setting)
