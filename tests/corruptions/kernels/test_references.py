"""Each operation against a slow, obvious version or another library."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from skimage import color, feature

from beaufort.corruptions._kernels import cpu_ops
from beaufort.corruptions._kernels.borders import border_index
from beaufort.corruptions._kernels.cpu.defocus_blur import disk
from beaufort.corruptions._kernels.cpu.pixelate import cell_areas
from beaufort.corruptions._kernels.cpu.zoom_blur import zoom_positions
from beaufort.testing._contracts import digit, example_image

OPS: Any = cpu_ops()
PHOTO = example_image(61, 83)[None]
RNG = np.random.default_rng(0)
canny: Any = feature.canny


def off_by(out: np.ndarray, wanted: np.ndarray) -> int:
    return int(np.abs(out.astype(int) - wanted.astype(int)).max())


@pytest.mark.parametrize(
    ("mode", "numpy_mode"), [("nearest", "edge"), ("reflect", "symmetric"), ("mirror", "reflect")]
)
@given(size=st.integers(2, 9), before=st.integers(0, 30), after=st.integers(0, 30))
def test_border_index(mode: str, numpy_mode: str, size: int, before: int, after: int) -> None:
    wanted = np.pad(np.arange(size), (before, after), mode=numpy_mode)  # type: ignore[call-overload]
    assert np.array_equal(border_index(size, before, after, mode), wanted)


@pytest.mark.parametrize("sigma", [0.1, 0.4, 0.7, 1, 3, 6])
@pytest.mark.parametrize("channels", [1, 3])
def test_gaussian(sigma: float, channels: int) -> None:
    images = PHOTO[..., :channels].copy()
    wanted = ndimage.gaussian_filter(images[0] / 255, (sigma, sigma, 0), mode="nearest") * 255
    out = OPS.gaussian(images, sigma)[0]
    assert off_by(out, wanted.astype(np.uint8)) <= 1
    assert (out != wanted.astype(np.uint8)).mean() < 0.01
    down = ndimage.gaussian_filter(images[0] / 255, (sigma, 0, 0), mode="nearest") * 255
    assert off_by(OPS.gaussian(images, sigma, horizontal=False, nearest=True)[0], np.rint(down)) <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("sigma", "border"), [(0.7, "nearest"), (2.44, "reflect"), (19.5, "reflect"), (70.0, "reflect")]
)
def test_smooth(dtype: type[np.floating], sigma: float, border: str) -> None:
    fields = RNG.uniform(-1, 1, (2, 90, 120)).astype(dtype)
    out = OPS.smooth(fields, sigma, truncate=3.0, border=border)
    assert out.dtype == dtype
    for field, smoothed in zip(fields, out, strict=True):
        wanted = ndimage.gaussian_filter(field.astype(np.float64), sigma, truncate=3.0, mode=border)
        scale = np.abs(wanted).max()
        assert np.abs(smoothed - wanted).max() < (4e-3 if sigma > 42 else 1e-5) * max(scale, 1e-3)


@pytest.mark.parametrize(
    ("radius", "softness"),
    [(0.3, 0.4), (1, 0.2), (1.5, 0.1), (3, 0.1), (6, 0.5), (8, 0.5), (10, 0.5), (12, 0.5), (17.8, 2.2)],
)
def test_defocus(radius: float, softness: float) -> None:
    kernel = disk(radius, softness)
    wanted = cv2.filter2D(PHOTO[0].astype(np.float64) / 255, -1, kernel.astype(np.float64))
    out = OPS.defocus(PHOTO, radius, softness)[0]
    assert off_by(out, (np.clip(wanted, 0, 1) * 255).astype(np.uint8)) <= 1


def test_disk_sums() -> None:
    """The masses that the published kernels have, and the taps of the smallest ones."""
    for radius, mass in ((3, 1.0), (6, 1.0), (8, 1.012975), (10, 1.010786)):
        assert disk(radius, 0.5).sum() == pytest.approx(mass, abs=2e-6)
    small = disk(0.3, 0.4)[8, 7:10]
    assert small == pytest.approx([0.040388 * 0.919224, 0.919224**2, 0.040388 * 0.919224], abs=1e-5)


@pytest.mark.parametrize("angle", [-90.0, -45.0, 0.0, 10.0, 33.3, 45.0])
def test_motion(angle: float) -> None:
    radius, sigma = 10, 3.0
    taps = np.exp(-(np.arange(21) ** 2) / (2 * sigma**2))
    taps /= taps.sum()
    total = np.zeros(PHOTO.shape[1:])
    rows, columns = np.arange(61), np.arange(83)
    for i, tap in enumerate(taps):
        right = int(np.ceil(i * np.cos(np.deg2rad(angle)) - 0.5))
        down = int(np.ceil(i * np.sin(np.deg2rad(angle)) - 0.5))
        moved = PHOTO[0][np.clip(rows + down, 0, 60)][:, np.clip(columns + right, 0, 82)]
        total += tap * moved
    wanted = np.floor(np.floor(257 * total + 0.5) / 257)
    out = OPS.motion(PHOTO, radius, sigma, np.array([angle]))[0]
    assert off_by(out, wanted) <= 1
    assert (out != wanted).mean() < 1e-3


@pytest.mark.parametrize("shape", [(32, 32), (61, 83)])
def test_zoom(shape: tuple[int, int]) -> None:
    image = PHOTO[0, : shape[0], : shape[1]].astype(np.float64)
    factors = (1.0, 1.1, 1.25, 1.5)
    total = image.copy()
    for factor in factors:
        rows, columns = (int(np.ceil(side / factor)) for side in shape)
        top, left = (shape[0] - rows) // 2, (shape[1] - columns) // 2
        crop = image[top : top + rows, left : left + columns]
        large = ndimage.zoom(
            crop, (round(rows * factor) / rows, round(columns * factor) / columns, 1), order=1
        )
        trim = (large.shape[0] - shape[0]) // 2, (large.shape[1] - shape[1]) // 2
        total += large[trim[0] : trim[0] + shape[0], trim[1] : trim[1] + shape[1]]
    wanted = (total / 5).astype(np.uint8)
    assert off_by(OPS.zoom_average(image.astype(np.uint8)[None], factors)[0], wanted) <= 1


def through_boxes(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Shrunk across, then down (Pillow takes the cheaper order, if it may), and enlarged again."""
    height, width = image.shape[:2]
    narrow = Image.fromarray(image).resize((columns, height), Image.Resampling.BOX)
    small = narrow.resize((columns, rows), Image.Resampling.BOX)
    return np.asarray(small.resize((width, height), Image.Resampling.BOX))


@pytest.mark.parametrize("cells", [(30, 40), (24, 33), (17, 20), (7, 5)])
@pytest.mark.parametrize("channels", [1, 3])
def test_pixel_cells(cells: tuple[int, int], channels: int) -> None:
    pixels = PHOTO[0, ..., :channels].squeeze()
    wanted = through_boxes(pixels, *cells).reshape(61, 83, channels)
    assert np.array_equal(OPS.pixel_cells(PHOTO[..., :channels].copy(), *cells)[0], wanted)


@given(st.integers(16, 70), st.integers(16, 70), st.data())
@settings(max_examples=40, deadline=None)
def test_pixel_cells_of_any_size(height: int, width: int, data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    image = np.random.default_rng(height * width).integers(0, 256, (height, width, 3)).astype(np.uint8)
    assert np.array_equal(OPS.pixel_cells(image[None], rows, columns)[0], through_boxes(image, rows, columns))


@pytest.mark.parametrize("quality", [7, 25, 80])
def test_jpeg(quality: int) -> None:
    import io

    for pixels in (PHOTO[0], PHOTO[0, ..., 0]):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
        wanted = np.asarray(Image.open(buffer)).reshape(61, 83, -1)
        out = OPS.jpeg(pixels.reshape(1, 61, 83, -1), quality)[0]
        assert np.array_equal(out, wanted)


@pytest.mark.parametrize("amount", [0.1, 0.3, 0.5])
def test_brighten(amount: float) -> None:
    hsv = color.rgb2hsv(PHOTO[0])
    hsv[..., 2] = np.clip(hsv[..., 2] + amount, 0, 1)
    wanted = (np.clip(color.hsv2rgb(hsv), 0, 1) * 255).astype(np.uint8)
    assert off_by(OPS.brighten(PHOTO, amount)[0], wanted) <= 1


@pytest.mark.parametrize(("gain", "lift"), [(0.1, 0), (2, 0), (5, 0.1), (20, 0.2), (-1, 0.5)])
def test_saturate(gain: float, lift: float) -> None:
    image = PHOTO[0].copy()
    image[:10] = image[:10, :, :1]  # grays
    image[10:12] = 0
    hsv = color.rgb2hsv(image)
    hsv[..., 1] = np.clip(hsv[..., 1] * gain + lift, 0, 1)
    wanted = (np.clip(color.hsv2rgb(hsv), 0, 1) * 255).astype(np.uint8)
    assert off_by(OPS.saturate_colors(image[None], gain, lift)[0], wanted) <= 1


@pytest.mark.parametrize("factor", [0.3, 3])
@pytest.mark.parametrize("times", [1, 11], ids=["few rows", "more rows than sums of 16 bits hold"])
def test_lower_contrast(times: int, factor: float) -> None:
    image = np.tile(255 - PHOTO[0] // 4, (times, 1, 1))
    x = image / 255
    mean = x.mean(axis=(0, 1))
    wanted = (np.clip((x - mean) * factor + mean, 0, 1) * 255).astype(np.uint8)
    assert off_by(OPS.lower_contrast(image[None], factor)[0], wanted) <= 1


def slow_plasma(noise: np.ndarray, side: int, decay: float) -> np.ndarray:
    """Diamond-square as it is described, point by point."""
    grid = np.zeros((side, side))
    numbers = iter(noise)
    step, amplitude = side, 100.0**2
    while step >= 2:
        half = step // 2
        for y in range(0, side, step):
            for x in range(0, side, step):
                corners = [grid[(y + a) % side, (x + b) % side] for a in (0, step) for b in (0, step)]
                grid[y + half, x + half] = np.mean(corners) + amplitude * next(numbers)
        for offset_y, offset_x in ((0, half), (half, 0)):
            for y in range(offset_y, side, step):
                for x in range(offset_x, side, step):
                    near = [(y - half, x), (y + half, x), (y, x - half), (y, x + half)]
                    values = [grid[a % side, b % side] for a, b in near]
                    grid[y, x] = np.mean(values) + amplitude * next(numbers)
        step, amplitude = half, amplitude / decay**2
    grid -= grid.min()
    grid /= grid.max()
    return grid


@pytest.mark.parametrize("side", [16, 64])
def test_plasma(side: int) -> None:
    noise = RNG.uniform(-1, 1, (2, side**2 - 1)).astype(np.float32)
    out = OPS.plasma(noise, side, 1.7, side, side - 3)
    for numbers, field in zip(noise, out, strict=True):
        assert np.abs(field - slow_plasma(numbers, side, 1.7)[:, : side - 3]).max() < 1e-5


@pytest.mark.parametrize("distance", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("channels", [1, 3])
def test_copies_of_copies(distance: int, dtype: type, channels: int) -> None:
    """Many pixels that take from their right, after one was moved: they are treated separately."""
    images = np.arange(2 * 23 * 31 * channels).reshape(2, 23, 31, channels).astype(np.uint8)
    rng = np.random.default_rng(distance)
    shape = (2, 2, 23 - 2 * distance, 31 - 2 * distance, 2)
    offsets: np.ndarray = rng.integers(-distance, distance, shape).astype(dtype)
    offsets[..., 1] *= rng.random(offsets.shape[:-1]) < 0.4
    wanted = images.copy()
    for image, moves in zip(wanted, offsets, strict=True):
        for sweep, r, c in np.ndindex(moves.shape[:-1]):
            dx, dy = moves[sweep, r, c]
            y, x = 23 - distance - r, 31 - distance - c
            image[y, x] = image[y + dy, x + dx]
    assert np.array_equal(OPS.copy_sweeps(images, offsets, distance), wanted)


def test_copy_sweeps() -> None:
    offsets = RNG.integers(-2, 2, (1, 3, 57, 79, 2)).astype(np.int8)
    wanted = PHOTO[0].copy()
    for sweep in offsets[0]:
        for r, row in enumerate(sweep):
            for c, (dx, dy) in enumerate(row):
                y, x = 61 - 2 - r, 83 - 2 - c
                wanted[y, x] = wanted[y + dy, x + dx]
    assert np.array_equal(OPS.copy_sweeps(PHOTO, offsets, 2)[0], wanted)


def test_affine_and_displace() -> None:
    matrix = np.array([[1.05, 0.1, -4.3], [-0.07, 0.93, 6.1]])
    y, x = np.mgrid[:61, :83].astype(np.float64)
    from_x = matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]
    from_y = matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]
    floats = PHOTO[0].astype(np.float64)
    for border, mode in (("mirror", "mirror"), ("zero", "grid-constant")):
        wanted = np.stack(
            [ndimage.map_coordinates(floats[..., c], [from_y, from_x], order=1, mode=mode) for c in range(3)],
            -1,
        )
        assert np.abs(OPS.affine(PHOTO, matrix[None], border=border)[0] - wanted).max() < 2e-2
    right, down = (RNG.normal(0, 9, (1, 61, 83)).astype(np.float32) for _ in range(2))
    moved = OPS.displace(floats[None].astype(np.float32), right, down)[0]
    wanted = np.stack(
        [
            ndimage.map_coordinates(floats[..., c], [y + down[0], x + right[0]], order=1, mode="reflect")
            for c in range(3)
        ],
        -1,
    )
    assert off_by(moved, wanted.astype(np.uint8)) <= 1


@pytest.mark.parametrize("variant", range(6))
def test_outline(variant: int) -> None:
    image = digit(variant=variant)
    wanted = canny(image[..., 0] / 255) * 255
    assert np.array_equal(OPS.outline(image[None], 1.0, 0.1, 0.2)[0, ..., 0], wanted)
    photo = PHOTO[..., 1:2].copy()
    assert np.array_equal(OPS.outline(photo, 1.0, 0.1, 0.2)[0, ..., 0], canny(photo[0, ..., 0] / 255) * 255)


def test_soft_cells_of_whole_pixels_are_pixel_cells() -> None:
    """At softness 0, up to the rounding of the two passes."""
    image = np.ascontiguousarray(PHOTO[:, :32, :32])
    for rows, columns in ((24, 20), (30, 27), (28, 13)):
        assert off_by(OPS.soft_cells(image, rows, columns, 0.0), OPS.pixel_cells(image, rows, columns)) <= 1


def test_a_zoom_like_its_own_size_is_the_zoom() -> None:
    for size in (32, 64, 224):
        for factor in (1.0, 1.07, 1.25, 3.0):
            before, fraction = zoom_positions(size, factor)
            like, its_share = zoom_positions(size, factor, (size, size, 0.0))
            assert np.allclose(before + fraction, like + its_share)


@settings(max_examples=40)
@given(
    st.integers(16, 90),
    st.integers(16, 90),
    st.floats(0.25, 1),
    st.sampled_from([0, 0.4, 1]),
    st.sampled_from([1, 3]),
)
def test_soft_cells_are_products_of_areas(
    height: int, width: int, fraction: float, softness: float, channels: int
) -> None:
    """The bands give the bits of dense matrices, also where all values are at an end of the range."""
    rng = np.random.default_rng(height * width)
    images = rng.integers(0, 256, (2, height, width, channels), np.uint8)
    images[1] = rng.choice([0, 255], images[1].shape)
    down, across = (
        cell_areas(height, height * fraction, softness),
        cell_areas(width, width * fraction, softness),
    )

    def means(areas: Any, values: Any) -> Any:
        whole = areas.sum(axis=1)
        return np.floor((areas @ values + whole[:, None] / 2) / whole[:, None])

    wide = means(across.T, means(across, images.astype(float)))
    wide = means(down.T, means(down, wide.reshape(2, height, -1))).reshape(images.shape)
    assert np.array_equal(OPS.soft_cells(images, height * fraction, width * fraction, softness), wide)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("shape", [(2, 7, 9, 3), (2, 7, 9, 1), (2, 7, 9)])
def test_pick(shape: tuple[int, ...], dtype: type) -> None:
    fields: NDArray[Any] = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    rows, columns = np.array([0, 0, 3, 6, 6, 1]), np.array([8, 8, 0, 4])
    assert np.array_equal(OPS.pick(fields, rows, columns), fields[:, rows][:, :, columns])
