"""The torch backend: plain tensor code on any device, and Triton kernels where the device is a CUDA GPU.

Its numbers are those of the CPU backend, and so are its pixels, but for the last bit of some sums;
`tests/ops/test_torch.py` says how far each corruption may be off. An image's pixels do not depend on the
batch it is in: no sum whose order could change with it decides a pixel.
"""

from __future__ import annotations

from beaufort.ops.cpu.codec import read_texture, resize
from beaufort.ops.torch._device import upload, use_kernels
from beaufort.ops.torch.blur import defocus, gaussian, motion, smooth, zoom_average
from beaufort.ops.torch.codec import jpeg
from beaufort.ops.torch.digits import outline, strokes
from beaufort.ops.torch.geometry import affine, displace, displace_zero, pixel_cells, soft_cells
from beaufort.ops.torch.philox import (
    content_ids,
    philox_bernoulli,
    philox_impulses,
    philox_integers,
    philox_normal,
    philox_poisson,
    philox_uniform,
    philox_words,
)
from beaufort.ops.torch.pointwise import (
    add_field,
    add_noise,
    blend,
    brighten,
    excess,
    haze,
    look_up,
    lower_contrast,
    mix,
    multiply_noise,
    paint,
    pick,
    replace,
    saturate_colors,
    scale_counts,
    shift,
    to_bytes,
)
from beaufort.ops.torch.sweeps import copy_sweeps, swap_sweeps
from beaufort.ops.torch.weather import flakes, mud_spots, plasma, snowfall, water_drops

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
    "excess",
    "flakes",
    "gaussian",
    "haze",
    "jpeg",
    "look_up",
    "lower_contrast",
    "mix",
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
    "pick",
    "pixel_cells",
    "plasma",
    "read_texture",
    "replace",
    "resize",
    "saturate_colors",
    "scale_counts",
    "shift",
    "smooth",
    "snowfall",
    "soft_cells",
    "strokes",
    "swap_sweeps",
    "to_bytes",
    "upload",
    "use_kernels",
    "water_drops",
    "zoom_average",
]
