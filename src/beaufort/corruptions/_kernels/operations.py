"""The operations that corruptions are written in, and where each backend has them.

Images are uint8 batches `(n, h, w, c)`, fields are one an image. Tables, and what is known of each image by
a few numbers (angles, matrices), are NumPy arrays on every backend. Results are cut off to 8 bit unless
`nearest` asks for rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes, Field, Images

if TYPE_CHECKING:
    from beaufort.corruptions.rng import FieldKey

Ends = tuple[int, int, float]
"""Two sizes, and how far something is on the way from the first to the second."""


class Ops(Protocol):
    """What a backend can do."""

    # canny_edges: Outlines of digits.

    def outline(self, images: Images, sigma: float, low: float, high: float) -> Images:
        """Canny's edges in white on black, with scikit-image's smoothing, slopes and ties."""

    # color: Brightness, contrast and saturation.

    def brighten(self, images: Images, amount: float) -> Images:
        """V ← clip(V + c) in HSV, which scales R, G and B by V'/V; black becomes grey."""

    def lower_contrast(self, images: Images, factor: float, *, nearest: bool = False) -> Images:
        """(x - μ)·c + μ with μ the mean of the channel."""

    def saturate_colors(self, images: Images, gain: float, lift: float) -> Images:
        """S ← clip(a·S + b) in HSV: R, G, B ← V - (V - R, G, B)·S'/S; greys have hue 0, red."""

    # defocus_blur: The soft disk of a lens that is out of focus.

    def defocus(self, images: Images, radius: float, softness: float, *, nearest: bool = False) -> Images:
        """Spread each pixel over a soft disk; outside, the image mirrored."""

    # fog: Fractals, and the haze that is made of them.

    def haze(self, images: Images, fields: Field, amount: float, *, nearest: bool = False) -> Images:
        """(x + a·P)·M / (M + a) with P in [0, 1] and M the largest value of the image."""

    def plasma(self, noise: Field | FieldKey, side: int, decay: float, height: int, width: int) -> Field:
        """Diamond-square fractals of `side` = 2^k, scaled to [0, 1] and cropped, float32.

        `noise` holds side² - 1 numbers of (-1, 1) an image: for each level the squares, the diamonds on the
        rows and those on the columns. The amplitude is 100² at first and falls by decay² a level. Numbers
        that are not drawn yet are drawn on the CPU, row by row, and an array comes back.
        """

    # frames: Frames of a sequence: the middle of an image that is turned, tilted or grows.

    def affine_frame(self, images: Images, matrix: Array, about: tuple[float, float], side: int) -> Images:
        """The middle of an image under (x, y) ← matrix · (x, y) about a point, cut off to 8 bit.

        Linear between pixels, in double precision if the matrix is diagonal, else in single. A position
        outside the image is black; its edge is not blended.
        """

    def perspective_frame(self, images: Images, matrix: Array, side: int) -> Images:
        """The middle of an image under a perspective map from the frame to the image, rounded.

        Positions are multiples of 1/32 pixel. Linear between pixels, and black outside is blended in.
        """

    def add_frame(
        self, total: Field, images: Images, matrix: Array, about: tuple[float, float], count: int
    ) -> Images:
        """Add an `affine_frame`, as values from 0 to 1, to a float32 sum: the mean of `count`, cut off.

        The sum is changed in place, and contiguous.
        """

    # gaussian_blur: Gaussian filters: of images, and of fields.

    def gaussian(
        self, images: Images, sigma: float, *, horizontal: bool = True, nearest: bool = False
    ) -> Images:
        """Gaussian blur, cut at 4σ, the edge repeated outside; only down the columns if not `horizontal`."""

    def smooth(
        self,
        fields: Field,
        sigma: float,
        *,
        truncate: float = 4.0,
        border: str = "nearest",
        gain: float = 1.0,
    ) -> Field:
        """Gaussian smoothing of float fields `(n, h, w)`, then times a gain; the dtype is kept."""

    # glass_blur: Sweeps in which pixels take the place of others.

    def copy_sweeps(self, images: Images, offsets: Field, distance: int) -> Images:
        """Sweep over the pixels from the last to the first, each taking the value of one near it.

        `offsets` is `(n, sweeps, h - 2d, w - 2d, 2)`: column and row offset in the order of the visits.
        """

    def swap_sweeps(self, images: Images, gates: Field, offsets: Field, distance: int) -> Images:
        """As `copy_sweeps`, but a true swap, and only where the gate is open."""

    # jpeg_compression: JPEG there and back.

    def jpeg(self, images: Images, quality: int) -> Images:
        """Baseline JPEG, 4:2:0, standard tables; one channel stays one channel."""

    # lines: Strokes across digits and photos.

    def strokes(
        self, images: Images, segments: Array, counts: Array, *, unit: float = 1.0, dash: float = 0.0
    ) -> Images:
        """Draw segments (x0, y0, x1, y1) in white, softly: 1 + ln(1 - d/2.3) at vertical distance d.

        `segments` is `(n, most, 4)`, `counts` says how many each image has; `unit` is the width of a pixel of
        the stroke; with `dash`, every other run of that many columns stays empty, the first one too.
        """

    def gray_lines(self, images: Images, ends: Array) -> Images:
        """Draw antialiased lines between whole (row, column, row, column), `(n, lines, 4)`, in middle grey.

        One after the other: values are cut off to 8 bit after each.
        """

    # maths: Formulas over the pixels of an image, in double precision unless said otherwise.
    # Arrays and tensors both have Python's operators and can be indexed by integers; what comes back here is
    # either, as the images are.

    def grid(self, images: Images) -> tuple[Any, Any]:
        """The row and the column of each pixel, `(1, h, 1)` and `(1, 1, w)`."""

    def lift(self, values: Array, images: Images) -> Any:
        """Numbers of the host beside the images."""

    def real(self, images: Any, dtype: type = np.float64) -> Any:
        """Images or other numbers as real numbers, float64 or float32; a new array."""

    def whole(self, values: Any) -> Any:
        """The whole part of each number, towards zero, as int64."""

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        """One or the other for each place."""

    def clip(self, values: Any, low: float, high: float) -> Any:
        """No less than `low`, no more than `high`."""

    def floor(self, values: Any) -> Any:
        """The next integer below."""

    def rint(self, values: Any) -> Any:
        """The nearest integer, halves to the even one."""

    def sqrt(self, values: Any) -> Any:
        """Square root."""

    def power(self, values: Any, exponent: float) -> Any:
        """A power of numbers that are not negative."""

    def sin(self, values: Any) -> Any:
        """Sine."""

    def cos(self, values: Any) -> Any:
        """Cosine."""

    def arcsin(self, values: Any) -> Any:
        """Inverse sine."""

    def arccos(self, values: Any) -> Any:
        """Inverse cosine."""

    def arctan2(self, y: Any, x: Any) -> Any:
        """The angle of the point (x, y)."""

    def synthesize(self, amplitude: Any, phase: Any) -> Any:
        """The real part of the waves of a spectrum whose zero frequency is in the middle, `(n, h, w)`."""

    # motion_blur: Motion along a straight line, and about the middle.

    def motion(self, images: Images, radius: float, sigma: float, angles_deg: Array) -> Images:
        """One-sided motion blur: half a Gaussian that starts at the pixel and runs along the angle.

        The 8-bit result is cut off after a Q16 rounding, as in ImageMagick: a value within 1/514 below a
        whole level counts as that level.
        """

    def turned(self, images: Images, angles: Array, weights: Array) -> Images:
        """A weighted mean of copies that are turned by `angles`, in radians, with black outside.

        Between pixels a cubic spline runs through the values, mirrored at the borders.
        """

    # philox: Random fields from a counter-based generator: the same numbers on every backend.

    def content_ids(self, images: Images) -> Field:
        """Ids made of the pixels themselves, for images without one."""

    def philox_bernoulli(self, at: FieldKey, shape: tuple[int, ...], probability: float) -> Field:
        """Draw booleans that are true with the given probability, to 2⁻³²."""

    def philox_impulses(self, at: FieldKey, shape: tuple[int, ...], share: float) -> Field:
        """Draw 1 or 2 with probability `share`, by one word; else 0 (uint8)."""

    def philox_integers(
        self, at: FieldKey, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32
    ) -> Field:
        """Draw integers in [low, high), `high` for all images or for each."""

    def philox_levels(self, at: FieldKey, images: Images, rate: float, table: Bytes) -> Images:
        """Look up each count of `philox_poisson` in a table; larger counts get its last entry."""

    def philox_normal(self, at: FieldKey, shape: tuple[int, ...], dtype: type = np.float32) -> Field:
        """Draw standard normal float32 numbers; torch ignores a wider dtype."""

    def philox_poisson(self, at: FieldKey, images: Images, rate: float) -> Field:
        """Draw Poisson counts with means rate × value / 255, exact to 2⁻¹⁶ of a column's share."""

    def philox_uniform(
        self, at: FieldKey, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32
    ) -> Field:
        """Draw float32 numbers in [low, high), in steps of 2⁻²⁴ of the range; torch ignores a wider dtype."""

    def philox_words(self, at: FieldKey, shape: tuple[int, ...]) -> Field:
        """Return the raw 32-bit words of a field."""

    # pixelate: Cells that show one value each.

    def pixel_cells(self, images: Images, rows: int, columns: int) -> Images:
        """Average into rows × columns cells and show each cell flat, as PIL's BOX filter does."""

    def soft_cells(self, images: Images, rows: float, columns: float, softness: float) -> Images:
        """Average into cells whose edges may cut pixels; a pixel shows the cells by its area in each.

        At softness 1 all cells have one size; at 0 their edges are those of whole pixels.
        """

    # snow: Flakes, and the snowfall that is made of them.

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

    def snowfall(self, images: Images, layers: Images, mix: float, *, nearest: bool = False) -> Images:
        """Whiten the image, then add the layer and the layer turned by 180°."""

    # spatter: Drops of water and mud, and paint in their shape.

    def mud_spots(
        self, normals: Field, mean: float, spread: float, sigma: float, threshold: float, rim: float
    ) -> Field:
        """How much mud covers each pixel, 0 or 0.8 to 1, float32: noise above a threshold, rounded off."""

    def paint(
        self, images: Images, masks: Field, color: tuple[float, ...], *, cover: bool, nearest: bool = False
    ) -> Images:
        """x + m·color, or x·(1 - m) + m·color where the paint is to `cover`; color in 0…255."""

    def run_down(self, layers: Field, shares: Mapping[int, float]) -> Field:
        """Float64 layers in which each row is made of shares of those so many rows above; nothing outside."""

    def water_drops(
        self, normals: Field, mean: float, spread: float, sigma: float, threshold: float, strength: float
    ) -> Field:
        """How much light each pixel of water adds, float32: drops with a bright and a dark rim."""

    # values: What many corruptions need: look-ups, mixtures, noise, textures, the way back to 8 bit.

    def look_up(self, values: Field, table: Bytes) -> Images:
        """The table's entry for each integer, and its last entry for all beyond."""

    def mix(self, images: Sequence[Images], weights: Sequence[float]) -> Images:
        """The mean of several versions of the same images, rounded; weights are multiples of 1/256."""

    def pick(self, fields: Field, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Field:
        """Some rows and columns of every field `(n, h, w, …)`, by their numbers."""

    def to_bytes(self, values: Field, *, nearest: bool = False) -> Images:
        """Clip 0…255 values and cut the fraction off, or round."""

    def add_field(self, images: Images, field: Field, *, nearest: bool = False) -> Images:
        """x + f, one field value (0…255) a pixel, the same for all channels."""

    def add_noise(self, images: Images, noise: Field, sigma: float, *, nearest: bool = False) -> Images:
        """x + σ·n, σ in units of the whole range."""

    def excess(self, counts: Field, rate: float, images: Images) -> Field:
        """By how much counts / rate is more than x / 255, float32."""

    def multiply_noise(self, images: Images, noise: Field, sigma: float, *, nearest: bool = False) -> Images:
        """x + x·σ·n."""

    def replace(self, images: Images, hits: Field) -> Images:
        """Keep the value where the hit is 0; black where it is 1, white where it is 2."""

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
        """a·X + b·F; F is cut from a texture `(h, w, c)`: its number, first row and column for each image.

        In double precision, because the weights are tenths: many sums are integers but for rounding.
        """

    # warps: Pixels taken from elsewhere: affine maps, displacements, shifts.

    def affine(self, images: Images, matrices: Array, *, border: str) -> Field:
        """Float32 bilinear samples (0…255): pixel (x, y) comes from matrix · (x, y, 1).

        Outside stands the image mirrored (`mirror`), or black (`zero`), which samples across the edge blend
        in.
        """

    def displace(self, images: Field, right: Field, down: Field, *, nearest: bool = False) -> Images:
        """Bilinear samples of float images at (x + right, y + down); outside, the image mirrored."""

    def displace_zero(self, images: Field, right: Field, down: Field) -> Images:
        """As `displace`, but black wherever the sample lies outside; rounded."""

    def shift(self, images: Images, moves: Array) -> Images:
        """Each image moved by whole pixels: sampled at (x + right, y + down), `(n, 2)`; black outside."""

    # zoom_blur: Zooms into the middle.

    def zoom_average(
        self, images: Images, factors: tuple[float, ...], *, nearest: bool = False, like: Ends | None = None
    ) -> Images:
        """The mean of the image and its zooms into the middle; `like` as for `flakes`."""


FAMILIES = {
    family: tuple(names.split())
    for family, names in {
        "canny_edges": "outline",
        "color": "brighten lower_contrast saturate_colors",
        "defocus_blur": "defocus",
        "fog": "haze plasma",
        "frames": "affine_frame perspective_frame add_frame",
        "gaussian_blur": "gaussian smooth",
        "glass_blur": "copy_sweeps swap_sweeps",
        "jpeg_compression": "jpeg",
        "lines": "strokes gray_lines",
        "maths": "grid lift real whole where clip floor rint sqrt power sin cos arcsin arccos arctan2 "
        "synthesize",
        "motion_blur": "motion turned",
        "philox": "content_ids philox_bernoulli philox_impulses philox_integers philox_levels "
        "philox_normal philox_poisson philox_uniform philox_words",
        "pixelate": "pixel_cells soft_cells",
        "snow": "flakes snowfall",
        "spatter": "mud_spots paint run_down water_drops",
        "values": "look_up mix pick to_bytes add_field add_noise excess multiply_noise replace blend",
        "warps": "affine displace displace_zero shift",
        "zoom_blur": "zoom_average",
    }.items()
}
"""The operations that each module has, in `cpu`, in `torch` and, where a GPU needs it, in `triton`."""
