"""The operations that corruptions are written in, and the backends that have them.

A backend is a module whose functions are those of `Ops`; mypy sees a missing one. Images are uint8
batches `(n, h, w, c)`, fields are one an image: NumPy arrays in `ops.cpu`, torch tensors in `ops.torch`.
Tables, and what is known of each image by a few numbers (angles, matrices), are NumPy arrays in both.
Results are cut off to 8 bit unless `nearest` asks for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes, Field, Images

if TYPE_CHECKING:
    from beaufort.rng import Key, Undrawn

__all__ = ["Ends", "Ops", "cpu_ops", "ops_of", "torch_ops"]


Ends = tuple[int, int, float]
"""Two sizes, and how far something is on the way from the first to the second."""


class Ops(Protocol):
    """What a backend can do."""

    def lower_contrast(self, images: Images, factor: float, *, nearest: bool = False) -> Images:
        """(x - μ)·c + μ with μ the mean of the channel."""

    def add_field(self, images: Images, field: Field, *, nearest: bool = False) -> Images:
        """x + f, one field value (0…255) a pixel, the same for all channels."""

    def add_noise(self, images: Images, noise: Field, sigma: float, *, nearest: bool = False) -> Images:
        """x + σ·n, σ in units of the whole range."""

    def affine(self, images: Images, matrices: Field, *, border: str) -> Field:
        """Float32 bilinear samples (0…255): pixel (x, y) comes from matrix · (x, y, 1)."""

    def blend(
        self,
        images: Images,
        textures: Sequence[Bytes],
        crops: NDArray[np.int64],
        weight: float,
        texture_weight: float,
        *,
        nearest: bool = False,
    ) -> Images:
        """a·X + b·F; F is cut from a texture `(h, w, c)`: its number, first row and column for each image."""

    def brighten(self, images: Images, amount: float) -> Images:
        """V ← clip(V + c) in HSV, which scales R, G and B by V'/V; black becomes grey."""

    def content_ids(self, images: Images) -> Field:
        """Ids made of the pixels themselves, for images that came without one."""

    def copy_sweeps(self, images: Images, offsets: Field, distance: int) -> Images:
        """Sweep over the pixels from the last to the first, each taking the value of one near it."""

    def defocus(self, images: Images, radius: float, softness: float, *, nearest: bool = False) -> Images:
        """Spread each pixel over a soft disk; outside, the image mirrored."""

    def displace(self, images: Field, right: Field, down: Field, *, nearest: bool = False) -> Images:
        """Bilinear samples of float images at (x + right, y + down); outside, the image mirrored."""

    def displace_zero(self, images: Field, right: Field, down: Field) -> Images:
        """As `displace`, but black wherever the sample lies outside; rounded."""

    def excess(self, counts: Field, rate: float, images: Images) -> Field:
        """By how much counts / rate is more than x / 255, float32."""

    def flakes(
        self,
        normals: Field,
        mean: float,
        spread: float,
        factor: float,
        threshold: float,
        *,
        like: Ends | None = None,
    ) -> Images:
        """A layer of grains `(n, h, w, 1)`: normal noise zoomed into the middle, only the brightest left.

        The middle is a crop of whole pixels. With `like` it is where it would be between two other sizes.
        """

    def gaussian(
        self, images: Images, sigma: float, *, horizontal: bool = True, nearest: bool = False
    ) -> Images:
        """Gaussian blur, cut at 4σ, the edge repeated outside; only down the columns if not `horizontal`."""

    def haze(self, images: Images, fields: Field, amount: float, *, nearest: bool = False) -> Images:
        """(x + a·P)·M / (M + a) with P in [0, 1] and M the largest value of the image."""

    def jpeg(self, images: Images, quality: int) -> Images:
        """Baseline JPEG, 4:2:0, standard tables; one channel stays one channel."""

    def look_up(self, images: Images, table: Bytes) -> Images:
        """A map given by its 256 values."""

    def mix(self, images: Sequence[Images], weights: Sequence[float]) -> Images:
        """The mean of several versions of the same images, rounded; weights are multiples of 1/256."""

    def motion(self, images: Images, radius: float, sigma: float, angles_deg: Field) -> Images:
        """One-sided motion blur: half a Gaussian that starts at the pixel and runs along the angle."""

    def mud_spots(
        self, normals: Field, mean: float, spread: float, sigma: float, threshold: float, rim: float
    ) -> Field:
        """How much mud covers each pixel, 0 or 0.8 to 1, float32: noise above a threshold, rounded off."""

    def multiply_noise(self, images: Images, noise: Field, sigma: float, *, nearest: bool = False) -> Images:
        """x + x·σ·n."""

    def outline(self, images: Images, sigma: float, low: float, high: float) -> Images:
        """Canny's edges in white on black, with scikit-image's smoothing, slopes and ties."""

    def paint(
        self, images: Images, masks: Field, color: tuple[float, ...], *, cover: bool, nearest: bool = False
    ) -> Images:
        """x + m·color, or x·(1 - m) + m·color where the paint is to `cover`; color in 0…255."""

    def philox_bernoulli(
        self, key: Key, ids: Field, field: int, shape: tuple[int, ...], probability: float
    ) -> Field:
        """True with the given probability, to 2⁻³²."""

    def philox_impulses(
        self, key: Key, ids: Field, field: int, shape: tuple[int, ...], share: float
    ) -> Field:
        """With probability `share` a 1 or a 2, by one word; else 0."""

    def philox_integers(
        self,
        key: Key,
        ids: Field,
        field: int,
        shape: tuple[int, ...],
        low: int,
        high: int | Field,
        dtype: type = np.int32,
    ) -> Field:
        """Whole numbers in [low, high), `high` for all images or for each."""

    def philox_normal(
        self, key: Key, ids: Field, field: int, shape: tuple[int, ...], dtype: type = np.float32
    ) -> Field:
        """Standard normal float32 numbers; torch leaves them so where a wider dtype is asked for."""

    def philox_poisson(self, key: Key, ids: Field, field: int, images: Images, rate: float) -> Field:
        """Poisson counts with means rate × value / 255, exact to 2⁻¹⁶ of a column's share."""

    def philox_uniform(
        self,
        key: Key,
        ids: Field,
        field: int,
        shape: tuple[int, ...],
        low: float,
        high: float,
        dtype: type = np.float32,
    ) -> Field:
        """Float32 numbers in [low, high), in steps of 2⁻²⁴ of the range; dtype as for `philox_normal`."""

    def philox_words(self, key: Key, ids: Field, field: int, shape: tuple[int, ...]) -> Field:
        """The raw 32-bit words of a field."""

    def pick(self, fields: Field, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Field:
        """Some rows and columns of every field `(n, h, w, …)`, by their numbers."""

    def pixel_cells(self, images: Images, rows: int, columns: int) -> Images:
        """Average into rows × columns cells and show each cell flat, as PIL's BOX filter does."""

    def plasma(self, noise: Field | Undrawn, side: int, decay: float, height: int, width: int) -> Field:
        """Diamond-square fractals of `side` = 2^k, scaled to [0, 1] and cropped, float32."""

    def read_texture(self, path: Path, *, grey: bool) -> NDArray[np.uint8]:
        """The pixels of a picture file, `(h, w, 3)`, or `(h, w, 1)` as OpenCV's reader makes it grey."""

    def replace(self, images: Images, hits: Field) -> Images:
        """Keep the value where the hit is 0; black where it is 1, white where it is 2."""

    def resize(self, image: NDArray[np.uint8], factor: float) -> NDArray[np.uint8]:
        """Plain bilinear resampling, no smoothing before it shrinks."""

    def saturate_colors(self, images: Images, gain: float, lift: float) -> Images:
        """S ← clip(a·S + b) in HSV: R, G, B ← V - (V - R, G, B)·S'/S; greys have hue 0, red."""

    def scale_counts(self, counts: Field, table: Bytes) -> Images:
        """The 8-bit value of each count, the last one's for all counts beyond the table."""

    def shift(self, images: Images, moves: NDArray[np.int64]) -> Images:
        """Each image moved by whole pixels: sampled at (x + right, y + down), `(n, 2)`; black outside."""

    def smooth(self, fields: Field, sigma: float, *, truncate: float = 4.0, border: str = "nearest") -> Field:
        """Gaussian smoothing of float fields `(n, h, w)`; the dtype is kept."""

    def soft_cells(self, images: Images, rows: float, columns: float, softness: float) -> Images:
        """Average into cells whose edges may cut pixels; a pixel shows the cells by its area in each.

        At softness 1 all cells have one size; at 0 their edges are those of whole pixels.
        """

    def snowfall(self, images: Images, layers: Images, mix: float, *, nearest: bool = False) -> Images:
        """Whiten the image, then add the layer and the layer turned by 180°."""

    def strokes(
        self, images: Images, segments: Field, counts: Field, *, unit: float = 1.0, dash: float = 0.0
    ) -> Images:
        """Draw segments (x0, y0, x1, y1) in white, softly: 1 + ln(1 - d/2.3) at vertical distance d."""

    def swap_sweeps(self, images: Images, gates: Field, offsets: Field, distance: int) -> Images:
        """As `copy_sweeps`, but a true swap, and only where the gate is open."""

    def to_bytes(self, values: Field, *, nearest: bool = False) -> Images:
        """Clip 0…255 values and cut the fraction off, or round."""

    def water_drops(
        self, normals: Field, mean: float, spread: float, sigma: float, threshold: float, strength: float
    ) -> Field:
        """How much light each pixel of water adds, float32: drops with a bright and a dark rim."""

    def zoom_average(
        self, images: Images, factors: tuple[float, ...], *, nearest: bool = False, like: Ends | None = None
    ) -> Images:
        """The mean of the image and its zooms into the middle; `like` as for `flakes`."""


@lru_cache(maxsize=1)
def cpu_ops() -> Ops:
    """The CPU backend, imported when first needed: Numba and OpenCV take a moment."""
    from beaufort.ops import cpu

    return cpu


@lru_cache(maxsize=1)
def torch_ops() -> Ops:
    """The torch backend, for tensors on any device."""
    from beaufort.ops import torch

    return torch


def ops_of(images: Images) -> Ops:
    """The backend for this kind of images."""
    return cpu_ops() if isinstance(images, np.ndarray) else torch_ops()
