"""Every corruption of ImageNet-C and MNIST-C, one file each."""

from __future__ import annotations

from beaufort.corruptions import (
    brightness,
    canny_edges,
    contrast,
    defocus_blur,
    dotted_line,
    elastic_transform,
    fog,
    frost,
    gaussian_blur,
    gaussian_noise,
    glass_blur,
    impulse_noise,
    inverse,
    jpeg_compression,
    line,
    motion_blur,
    pessimal_noise,
    pixelate,
    quantize,
    rotate,
    saturate,
    scale,
    shear,
    shot_noise,
    snow,
    spatter,
    speckle_noise,
    stripe,
    translate,
    zigzag,
    zoom_blur,
)
from beaufort.corruptions._corruption import (
    SCALE_NAMES,
    SCALES,
    SEVERITIES,
    Area,
    Corruption,
    PerPixel,
    Pixels,
    WholePixels,
    corruption,
    corruptions,
)
from beaufort.corruptions._names import SUBSETS, expand_names, get_corruption_names, members_of
from beaufort.corruptions._one import corrupt

__all__ = [
    "SCALES",
    "SCALE_NAMES",
    "SEVERITIES",
    "SUBSETS",
    "Area",
    "Corruption",
    "PerPixel",
    "Pixels",
    "WholePixels",
    "corrupt",
    "corruption",
    "corruptions",
    "expand_names",
    "get_corruption_names",
    "members_of",
]
