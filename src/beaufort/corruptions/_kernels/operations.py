"""The operations that corruptions are written in, and where each backend has them.

Images are uint8 batches `(n, h, w, c)`, fields have one entry per image. Tables and small parameters of each
image (angles, matrices) are NumPy arrays on every backend. Results are truncated to 8 bits unless `nearest`
requests rounding.
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
"""Two sizes, and a position between them from 0 to 1."""


class Ops(Protocol):
    """The operations of a backend."""

    # canny_edges: Outlines of digits.

    def outline(self, images: Images, sigma: float, low: float, high: float) -> Images:
        """Canny edges in white on black, with the smoothing, gradients and ties of scikit-image."""

    # color: Brightness, contrast and saturation.

    def brighten(self, images: Images, amount: float) -> Images:
        """V ← clip(V + c) in HSV, which scales R, G and B by V'/V; black becomes gray."""

    def lower_contrast(self, images: Images, factor: float, *, nearest: bool = False) -> Images:
        """(x - μ)·c + μ with μ the mean of the channel."""

    def saturate_colors(self, images: Images, gain: float, lift: float) -> Images:
        """S ← clip(a·S + b) in HSV: R, G, B ← V - (V - R, G, B)·S'/S; grays have hue 0, red."""

    # defocus_blur: The soft disk of a lens that is out of focus.

    def defocus(self, images: Images, radius: float, softness: float, *, nearest: bool = False) -> Images:
        """Spread each pixel over a disk with a soft edge; the image is mirrored at the borders."""

    # fog: Fractals and haze.

    def haze(self, images: Images, fields: Field, amount: float, *, nearest: bool = False) -> Images:
        """(x + a·P)·M / (M + a) with P in [0, 1] and M the largest value of the image."""

    def plasma(self, noise: Field | FieldKey, side: int, decay: float, height: int, width: int) -> Field:
        """Diamond-square fractals of `side` = 2^k, scaled to [0, 1] and cropped, float32.

        `noise` holds side² - 1 numbers of (-1, 1) an image: for each level the squares, the diamonds on the
        rows and those on the columns. The amplitude is 100² at first and falls by decay² per level. Given a
        key, numbers are drawn on the CPU, row by row, and the result is an array.
        """

    # frames: Frames of a sequence: the center of an image that rotates, tilts or grows.

    def affine_frame(self, images: Images, matrix: Array, about: tuple[float, float], side: int) -> Images:
        """Return the center of an image under (x, y) ← matrix · (x, y) about a point, truncated to 8 bits.

        Linear between pixels, in double precision if the matrix is diagonal, else in single. A position
        outside the image is black; its edge is not blended.
        """

    def perspective_frame(self, images: Images, matrix: Array, side: int) -> Images:
        """Return the center of an image under a perspective map from the frame to the image, rounded.

        Positions are multiples of 1/32 pixel. Linear between pixels, and black outside is blended in.
        """

    def add_frame(
        self, total: Field, images: Images, matrix: Array, about: tuple[float, float], count: int
    ) -> Images:
        """Add an `affine_frame` (0 to 1) to a float32 sum; return the mean of `count`, truncated.

        The sum is contiguous and changed in place.
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

    # glass_blur: Sweeps that copy or swap pixels.

    def copy_sweeps(self, images: Images, offsets: Field, distance: int) -> Images:
        """Sweep over the pixels from the last to the first; each copies the value of a nearby pixel.

        `offsets` is `(n, sweeps, h - 2d, w - 2d, 2)`: column and row offset in the order of the visits.
        """

    def swap_sweeps(self, images: Images, gates: Field, offsets: Field, distance: int) -> Images:
        """As `copy_sweeps`, but a true swap, and only where the gate is open."""

    # jpeg_compression: JPEG encoding and decoding.

    def jpeg(self, images: Images, quality: int) -> Images:
        """Baseline JPEG, 4:2:0, standard tables; gray images stay gray."""

    # lines: Strokes across digits and photos.

    def strokes(
        self, images: Images, segments: Array, counts: Array, *, unit: float = 1.0, dash: float = 0.0
    ) -> Images:
        """Draw segments (x0, y0, x1, y1) in soft white: 1 + ln(1 - d/2.3) at vertical distance d.

        `segments` is `(n, most, 4)`, `counts` has the number per image; `unit` is the width of a pixel of the
        stroke; with `dash`, every other run of that many columns stays empty, beginning with the first.
        """

    def gray_lines(self, images: Images, ends: Array) -> Images:
        """Draw antialiased lines between whole (row, column, row, column), `(n, lines, 4)`, in middle gray.

        Values are truncated to 8 bits after each line.
        """

    # maths: Formulas over the pixels of an image, in double precision unless said otherwise.
    # Arrays and tensors both support operators and integer indexing; results have the type of the images.

    def grid(self, images: Images) -> tuple[Any, Any]:
        """Return the row and the column of each pixel, `(1, h, 1)` and `(1, 1, w)`."""

    def lift(self, values: Array, images: Images) -> Any:
        """Return an array on the device of the images."""

    def real(self, images: Any, dtype: type = np.float64) -> Any:
        """Convert numbers to float64 or float32, as a new array."""

    def whole(self, values: Any) -> Any:
        """Truncate to int64."""

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        """Return values from `yes` where the condition holds, else from `no`."""

    def clip(self, values: Any, low: float, high: float) -> Any:
        """Limit values to `low` and `high`."""

    def floor(self, values: Any) -> Any:
        """Round down."""

    def rint(self, values: Any) -> Any:
        """Round to the nearest integer, halves to even."""

    def sqrt(self, values: Any) -> Any:
        """Square root."""

    def power(self, values: Any, exponent: float) -> Any:
        """Raise nonnegative numbers to a power."""

    def sin(self, values: Any) -> Any:
        """Sine."""

    def cos(self, values: Any) -> Any:
        """Cosine."""

    def arcsin(self, values: Any) -> Any:
        """Inverse sine."""

    def arccos(self, values: Any) -> Any:
        """Inverse cosine."""

    def arctan2(self, y: Any, x: Any) -> Any:
        """Return the angle of the point (x, y)."""

    def synthesize(self, amplitude: Any, phase: Any) -> Any:
        """Return the real part of the inverse transform of a centered spectrum, `(n, h, w)`."""

    # motion_blur: Motion along a straight line, and about the center.

    def motion(self, images: Images, radius: float, sigma: float, angles_deg: Array) -> Images:
        """One-sided motion blur: half a Gaussian that starts at the pixel, in the direction of the angle.

        Results are rounded to 16 bits, then truncated to 8, as in ImageMagick: a value within 1/514 below a
        level counts as that level.
        """

    def turned(self, images: Images, angles: Array, weights: Array) -> Images:
        """Return a weighted mean of copies rotated by `angles`, in radians, with black outside.

        Values are interpolated by a cubic spline, mirrored at the borders.
        """

    # philox: Random fields from a counter-based generator: the same numbers on every backend.

    def content_ids(self, images: Images) -> Field:
        """Return ids that are hashes of the pixels."""

    def philox_bernoulli(self, at: FieldKey, shape: tuple[int, ...], probability: float) -> Field:
        """Draw booleans that are true with the given probability, to 2⁻³²."""

    def philox_impulses(self, at: FieldKey, shape: tuple[int, ...], probability: float) -> Field:
        """Draw 1 or 2 with the given probability, from one word; else 0 (uint8)."""

    def philox_integers(
        self, at: FieldKey, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32
    ) -> Field:
        """Draw integers in [low, high), with one `high` for all images or one for each."""

    def philox_levels(self, at: FieldKey, images: Images, rate: float, table: Bytes) -> Images:
        """Look up each count of `philox_poisson` in a table; larger counts get its last entry."""

    def philox_normal(self, at: FieldKey, shape: tuple[int, ...], dtype: type = np.float32) -> Field:
        """Draw standard normal float32 numbers; torch ignores a wider dtype."""

    def philox_poisson(self, at: FieldKey, images: Images, rate: float) -> Field:
        """Draw Poisson counts with means rate × value / 255, exact to 2⁻¹⁶ of a table column."""

    def philox_uniform(
        self, at: FieldKey, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32
    ) -> Field:
        """Draw float32 numbers in [low, high), in steps of 2⁻²⁴ of the range; torch ignores a wider dtype."""

    def philox_words(self, at: FieldKey, shape: tuple[int, ...]) -> Field:
        """Return the raw 32-bit words of a field."""

    # pixelate: Cells with one value each.

    def pick(self, fields: Field, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Field:
        """Select rows and columns of every field `(n, h, w, …)` by index."""

    def pixel_cells(self, images: Images, rows: int, columns: int) -> Images:
        """Average into rows × columns cells, as PIL's BOX filter does, and enlarge to the original size."""

    def soft_cells(self, images: Images, rows: float, columns: float, softness: float) -> Images:
        """Average into cells with fractional edges; pixels mix cells in proportion to their areas.

        At softness 1 all cells have equal sizes; at 0 their edges are between pixels.
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
        """Return flakes `(n, h, w, 1)`: normal noise enlarged about the center and thresholded.

        The center is a crop of whole pixels; with `like`, at the position between two other sizes.
        """

    def snowfall(self, images: Images, layers: Images, mix: float, *, nearest: bool = False) -> Images:
        """Whiten the image, then add the layer and the layer rotated by 180°."""

    # spatter: Drops of water and mud, and paint in their shape.

    def mud_spots(
        self, normals: Field, mean: float, spread: float, sigma: float, threshold: float, rim: float
    ) -> Field:
        """Return the opacity of mud, 0 or 0.8 to 1, float32: thresholded noise, smoothed at the edges."""

    def paint(
        self, images: Images, masks: Field, color: tuple[float, ...], *, cover: bool, nearest: bool = False
    ) -> Images:
        """x + m·color, or x·(1 - m) + m·color if `cover` is set; color in 0…255."""

    def run_down(self, layers: Field, weights: Mapping[int, float]) -> Field:
        """Return float64 layers whose rows are weighted sums of rows above, by distance; zero outside."""

    def water_drops(
        self, normals: Field, mean: float, spread: float, sigma: float, threshold: float, strength: float
    ) -> Field:
        """Return the light that water adds, float32: drops with a bright and a dark edge."""

    # values: Lookups, mixtures, noise, textures and conversion to 8 bits.

    def look_up(self, values: Field, table: Bytes) -> Images:
        """Return the table entry of each integer; larger integers get the last one."""

    def mix(self, images: Sequence[Images], weights: Sequence[float]) -> Images:
        """Return the weighted mean of images, rounded; weights are multiples of 1/256."""

    def to_bytes(self, values: Field, *, nearest: bool = False) -> Images:
        """Clip values to 0…255 and truncate, or round."""

    def add_field(self, images: Images, field: Field, *, nearest: bool = False) -> Images:
        """x + f, with one field value (0…255) per pixel for all channels."""

    def add_noise(self, images: Images, noise: Field, sigma: float, *, nearest: bool = False) -> Images:
        """x + σ·n, σ in units of the whole range."""

    def excess(self, counts: Field, rate: float, images: Images) -> Field:
        """Return counts / rate - x / 255, float32."""

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
        """a·X + b·F; F is a crop of a texture `(h, w, c)`, given by index, first row and column per image.

        In double precision, because many sums with these weights are integers up to rounding.
        """

    # warps: Affine maps, displacements and shifts.

    def affine(self, images: Images, matrices: Array, *, border: str) -> Field:
        """Float32 bilinear samples (0…255): pixel (x, y) comes from matrix · (x, y, 1).

        The image is mirrored at the borders (`mirror`), or black outside (`zero`), which is blended at the
        borders.
        """

    def displace(self, images: Field, right: Field, down: Field, *, nearest: bool = False) -> Images:
        """Bilinear samples of float images at (x + right, y + down), mirrored at the borders."""

    def displace_zero(self, images: Field, right: Field, down: Field) -> Images:
        """As `displace`, but black outside, and rounded."""

    def shift(self, images: Images, moves: Array) -> Images:
        """Move each image by integers: sample at (x + right, y + down), `(n, 2)`, black outside."""

    # zoom_blur: Zooms about the center.

    def zoom_average(
        self, images: Images, factors: tuple[float, ...], *, nearest: bool = False, like: Ends | None = None
    ) -> Images:
        """Return the mean of the image and its zooms about the center; `like` as for `flakes`."""


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
        "pixelate": "pick pixel_cells soft_cells",
        "snow": "flakes snowfall",
        "spatter": "mud_spots paint run_down water_drops",
        "values": "look_up mix to_bytes add_field add_noise excess multiply_noise replace blend",
        "warps": "affine displace displace_zero shift",
        "zoom_blur": "zoom_average",
    }.items()
}
"""The operations of each module, in `cpu`, `torch` and partly in `triton`."""
