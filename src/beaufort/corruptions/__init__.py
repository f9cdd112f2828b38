"""Corruptions of ImageNet-C, C-bar and MNIST-C with their kernels, and the sequences of ImageNet-P.

A file of this package is written as a plug-in is: it imports what it needs from here and registers its
corruption.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from beaufort._core.arrays import Array, Bytes, Field, Images
from beaufort.corruptions._chain import Chain, Link, is_chain
from beaufort.corruptions._choices import weigh_names
from beaufort.corruptions._corruption import (
    SCALE_NAMES,
    SEVERITIES,
    Corruption,
    Severity,
    corruption,
    corruptions,
    parse_severity,
    validate_severity,
)
from beaufort.corruptions._kernels import OPERATIONS, Ops, cpu_ops, torch_ops
from beaufort.corruptions._names import SUBSETS, expand_names, get_corruption_names, members_of
from beaufort.corruptions._recipe import Choice
from beaufort.corruptions._sizes import (
    SCALES,
    Area,
    DiskRadius,
    Enlargement,
    FractionKept,
    FractionOfSide,
    PerPixel,
    Pixels,
    Softness,
    WholePixels,
    snapped,
)
from beaufort.corruptions.rng import Id, Random, validate_seed
from beaufort.corruptions.transforms import Corrupt, corrupt

__all__ = [
    "OPERATIONS",
    "SCALES",
    "SCALE_NAMES",
    "SEVERITIES",
    "SUBSETS",
    "Area",
    "Array",
    "Bytes",
    "Chain",
    "Choice",
    "Corrupt",
    "Corruption",
    "DiskRadius",
    "Enlargement",
    "Field",
    "FractionKept",
    "FractionOfSide",
    "Id",
    "Images",
    "Link",
    "Ops",
    "PerPixel",
    "Pixels",
    "Random",
    "Severity",
    "Softness",
    "WholePixels",
    "corrupt",
    "corruption",
    "corruptions",
    "cpu_ops",
    "expand_names",
    "get_corruption_names",
    "is_chain",
    "members_of",
    "parse_severity",
    "snapped",
    "torch_ops",
    "validate_seed",
    "validate_severity",
    "weigh_names",
]

for _module in iter_modules(__path__):  # each file registers its corruption
    if not (_module.ispkg or _module.name.startswith("_")):
        import_module(f"{__name__}.{_module.name}")
