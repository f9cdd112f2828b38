"""The CPU backend: Numba kernels that release the interpreter's lock, and OpenCV."""

from __future__ import annotations

from beaufort.ops.cpu.blur import defocus, gaussian, motion, smooth, zoom_average
from beaufort.ops.cpu.codec import jpeg, read_texture, resize
from beaufort.ops.cpu.digits import outline, strokes, to_bytes
from beaufort.ops.cpu.geometry import (
    affine,
    copy_sweeps,
    displace,
    displace_zero,
    flakes,
    pixel_cells,
    swap_sweeps,
)
from beaufort.ops.cpu.philox import (
    content_ids,
    philox_bernoulli,
    philox_impulses,
    philox_integers,
    philox_normal,
    philox_poisson,
    philox_uniform,
    philox_words,
)
from beaufort.ops.cpu.pointwise import (
    add_field,
    add_noise,
    blend,
    brighten,
    haze,
    look_up,
    lower_contrast,
    multiply_noise,
    paint,
    replace,
    saturate_colors,
    scale_counts,
    snowfall,
)
from beaufort.ops.cpu.weather import mud_spots, plasma, water_drops

__all__ = [
    "add_field",
    "add_noise",
    "affine",
    "blend",
    "brighten",
    "content_ids",
    "copy_sweeps",
    "defocus",
    "displace",
    "displace_zero",
    "flakes",
    "gaussian",
    "haze",
    "jpeg",
    "look_up",
    "lower_contrast",
    "motion",
    "mud_spots",
    "multiply_noise",
    "outline",
    "paint",
    "philox_bernoulli",
    "philox_impulses",
    "philox_integers",
    "philox_normal",
    "philox_poisson",
    "philox_uniform",
    "philox_words",
    "pixel_cells",
    "plasma",
    "read_texture",
    "replace",
    "resize",
    "saturate_colors",
    "scale_counts",
    "smooth",
    "snowfall",
    "strokes",
    "swap_sweeps",
    "to_bytes",
    "water_drops",
    "zoom_average",
]
