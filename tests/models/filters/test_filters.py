"""Image filters give the pixels of OpenCV and scikit-image, and reject unsupported inputs."""

from __future__ import annotations

import json
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort import corrupt
from beaufort._core.errors import ImageTypeError, ImageValueError, OptionError, UnknownNameError
from beaufort.models.filters import (
    Clahe,
    Equalize,
    FilterStep,
    ImageFilter,
    MultiCrop,
    NonLocalMeans,
    Stretch,
    TenCrop,
    estimate_noise,
    filter_kinds,
    load_filter,
)
from beaufort.testing._contracts import example_image

FILTERS = sorted(name for name, kind in filter_kinds.items() if not hasattr(kind, "source_size"))


def photos(count: int = 2, side: int = 64, channels: int = 3) -> NDArray[np.uint8]:
    return np.stack([example_image(side, side + 8, channels, variant=i) for i in range(count)])


def noisy(images: NDArray[np.uint8], severity: int = 3) -> NDArray[np.uint8]:
    made: NDArray[np.uint8] = corrupt(images, "gaussian_noise", severity=severity)
    return made


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("channels", [1, 3])
def test_filters_keep_the_contract(name: str, channels: int) -> None:
    images = noisy(photos(3, channels=channels)) // 2 + 20
    before = images.copy()
    image_filter = load_filter(name)
    made = image_filter(images)
    assert made.shape == images.shape
    assert made.dtype == np.uint8
    assert (made != images).any()
    np.testing.assert_array_equal(images, before)
    np.testing.assert_array_equal(made, image_filter(images, threads=1))
    np.testing.assert_array_equal(made[1:2], image_filter(images[1:2]))
    assert image_filter(images[:0]).shape == (0, *images.shape[1:])


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("level", [0, 77, 255])
def test_a_uniform_image_stays_uniform(name: str, level: int) -> None:
    even = np.full((1, 40, 40, 3), level, np.uint8)
    assert np.ptp(load_filter(name)(even)) == 0
    if name in ("nlm", "stretch"):
        np.testing.assert_array_equal(load_filter(name)(even), even)


@pytest.mark.parametrize(("clip", "tiles"), [(2.0, 8), (4.0, 3), (40.0, 8)])
def test_clahe_is_that_of_opencv(clip: float, tiles: int) -> None:
    images = photos()
    made = Clahe(clip=clip, tiles=tiles)(images)
    for image, own in zip(images, made, strict=True):
        lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
        lab[..., 0] = cv2.createCLAHE(clip, (tiles, tiles)).apply(lab[..., 0])
        np.testing.assert_array_equal(own, cv2.cvtColor(lab, cv2.COLOR_LAB2RGB))
    gray = photos(1, channels=1)
    np.testing.assert_array_equal(
        Clahe(clip=clip, tiles=tiles)(gray)[0, ..., 0],
        cv2.createCLAHE(clip, (tiles, tiles)).apply(gray[0, ..., 0]),
    )


def clahe_by_hand(plane: NDArray[np.uint8], clip: float, tiles: int) -> NDArray[np.float64]:
    """CLAHE as it is described: clipped histograms of tiles, and a mix of the four nearest tables."""
    height, width = plane.shape[0] // tiles, plane.shape[1] // tiles
    most = max(1, int(clip * height * width / 256))
    tables = np.empty((tiles, tiles, 256))
    for row in range(tiles):
        for column in range(tiles):
            tile = plane[row * height : (row + 1) * height, column * width : (column + 1) * width]
            counts = np.bincount(tile.ravel(), minlength=256)
            excess = int(np.maximum(counts - most, 0).sum())
            counts = np.minimum(counts, most) + excess // 256
            if rest := excess % 256:
                step = max(256 // rest, 1)
                counts[: step * rest : step] += 1
            tables[row, column] = np.rint(np.minimum(255, np.cumsum(counts) * 255 / (height * width)))
    out = np.empty(plane.shape)
    for y in range(plane.shape[0]):
        for x in range(plane.shape[1]):
            at_y, at_x = (y + 0.0) / height - 0.5, (x + 0.0) / width - 0.5
            top, left = int(np.floor(at_y)), int(np.floor(at_x))
            down, right = at_y - top, at_x - left
            rows, columns = np.clip([top, top + 1], 0, tiles - 1), np.clip([left, left + 1], 0, tiles - 1)
            four = tables[rows][:, columns, plane[y, x]]
            out[y, x] = np.array([1 - down, down]) @ four @ np.array([1 - right, right])
    return out


def test_clahe_matches_its_definition() -> None:
    plane = example_image(64, 64, 1, variant=1)
    made = Clahe(clip=2, tiles=4)(plane[None])[0, ..., 0].astype(float)
    assert np.abs(made - clahe_by_hand(plane[..., 0], 2, 4)).max() <= 1


def test_equalize() -> None:
    exposure = pytest.importorskip("skimage.exposure", reason="scikit-image is not installed")
    gray = (photos(1, channels=1) // 3) + 40
    made = Equalize()(gray)[0, ..., 0].astype(float)
    theirs = exposure.equalize_hist(gray[0, ..., 0], nbins=256) * 255
    counts = np.bincount(gray.ravel())
    assert np.abs(made - theirs).max() <= 1 + 255 * counts[counts > 0][0] / gray.size  # theirs begins above 0
    assert (made.min(), made.max()) == (0, 255)
    color = photos(1)
    lab = cv2.cvtColor(color[0], cv2.COLOR_RGB2LAB)
    lab[..., 0] = cv2.equalizeHist(np.ascontiguousarray(lab[..., 0]))
    np.testing.assert_array_equal(Equalize()(color)[0], cv2.cvtColor(lab, cv2.COLOR_LAB2RGB))


def test_stretch() -> None:
    exposure = pytest.importorskip("skimage.exposure", reason="scikit-image is not installed")
    dull = photos(2) // 4 + 90
    made = Stretch()(dull)
    for image, own in zip(dull, made, strict=True):
        theirs = exposure.rescale_intensity(image.astype(float), out_range=(0, 255))
        assert np.abs(own - theirs).max() <= 0.5 + 1e-9
    cut = Stretch(cut=2)(dull)
    assert min((cut == 0).mean(), (cut == 255).mean()) > 0.005


def test_stretch_undoes_lost_contrast() -> None:
    clean = photos(1, side=96)
    dull = corrupt(clean, "contrast", severity=3)
    before, after = (
        np.abs(one.astype(float) - Stretch(each=True)(clean)).mean()
        for one in (dull, Stretch(each=True)(dull))
    )
    assert after < before / 3


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("severity", [1, 3])
@pytest.mark.parametrize(("patch", "distance", "h", "subtract"), [(5, 6, 0.8, True), (7, 4, 1.15, False)])
def test_non_local_means_are_those_of_scikit_image(
    channels: int, severity: int, patch: int, distance: int, h: float, subtract: bool
) -> None:
    restoration = pytest.importorskip("skimage.restoration", reason="scikit-image is not installed")
    images = noisy(photos(1, channels=channels), severity)
    sigma = float(estimate_noise(images)[0])
    theirs = restoration.denoise_nl_means(
        images[0] / 255,
        patch_size=patch,
        patch_distance=distance,
        h=h * sigma,
        sigma=sigma if subtract else 0,
        fast_mode=True,
        channel_axis=-1,
    )
    made = NonLocalMeans(h=h, patch=patch, distance=distance, subtract=subtract)(images)[0]
    apart = np.abs(made.astype(float) - 255 * theirs.reshape(made.shape))
    assert apart.max() < 1.5  # rounding, and their exponential function, which is approximate
    assert (apart > 0.6).mean() < 0.03
    assert np.abs(made.astype(float) - images[0]).mean() > 1


@pytest.mark.parametrize("channels", [1, 3])
def test_non_local_means_are_those_of_a_plain_loop(channels: int) -> None:
    image = noisy(photos(1, side=24, channels=channels))[0]
    patch, reach, strength = 5, 4, 0.8
    sigma, radius, border = float(estimate_noise(image[None])[0]), patch // 2, patch // 2 + reach + 1
    wide = np.pad(image / 255, ((border, border), (border, border), (0, 0)), mode="reflect")
    total, weights = image / 255, np.ones(image.shape[:2])
    for shift in np.ndindex(2 * reach + 1, 2 * reach + 1):
        down, right = shift[0] - reach, shift[1] - reach
        if down == right == 0:
            continue
        moved = np.roll(wide, (-down, -right), (0, 1))
        apart = ((wide - moved) ** 2).sum(-1) - 2 * sigma**2 * channels
        box = range(1 - radius, radius + 1)
        sums = sum(np.roll(apart, (-row, -column), (0, 1)) for row in box for column in box)
        distance = np.maximum(sums, 0) / (channels * (strength * sigma * patch) ** 2)
        weight = np.where(distance <= 5, np.exp(-distance), 0)[border:-border, border:-border]
        total, weights = (
            total + weight[..., None] * moved[border:-border, border:-border],
            weights + weight,
        )
    made = NonLocalMeans(h=strength, patch=patch, distance=reach)(image[None])[0]
    apart_by = np.abs(made - np.rint(255 * total / weights[..., None]))
    assert apart_by.max() <= 1
    assert (apart_by > 0).mean() < 2e-3  # rounding of single precision


def test_noise_is_estimated_as_scikit_image_does() -> None:
    pytest.importorskip("pywt", reason="PyWavelets is not installed")
    restoration = pytest.importorskip("skimage.restoration", reason="scikit-image is not installed")
    # even areas are left out: rounding makes numbers of their zeros, which scikit-image counts
    for images in (noisy(photos(2), 1), noisy(photos(2)), noisy(photos(2, side=33, channels=1))):
        theirs = [
            restoration.estimate_sigma(image / 255, channel_axis=-1, average_sigmas=True) for image in images
        ]
        np.testing.assert_allclose(estimate_noise(images), theirs, rtol=1e-3, atol=1e-6)


def test_noise_that_was_added_is_found() -> None:
    rng = np.random.default_rng(0)
    even = np.full((1, 200, 200, 3), 128)
    for sigma in (0.02, 0.1):
        images = np.clip(np.rint(even + rng.normal(0, 255 * sigma, even.shape)), 0, 255).astype(np.uint8)
        assert estimate_noise(images)[0] == pytest.approx(sigma, rel=0.05)
    assert estimate_noise(even.astype(np.uint8))[0] == 0


def test_gates_select_noisy_or_clean_images() -> None:
    images = np.concatenate([photos(1), noisy(photos(1))])
    gate = float(estimate_noise(images).mean())
    for text, changed in ((f"nlm:above={gate}", 1), (f"clahe:below={gate}", 0)):
        made, free = load_filter(text)(images), load_filter(text.partition(":")[0])(images)
        np.testing.assert_array_equal(made[changed], free[changed])
        np.testing.assert_array_equal(made[1 - changed], images[1 - changed])


def test_noise_at_a_gate_is_neither_above_nor_below_it() -> None:
    images = noisy(photos(2))
    levels = estimate_noise(images).tolist()
    low, high = sorted(levels)
    for gates, through in (
        (f"above={low!r}", [high]),
        (f"below={high!r}", [low]),
        (f"above={low!r},below={high!r}", []),
        (f"above={low / 2!r},below={high!r}", [low]),
        (f"above={low / 2!r},below={high * 2!r}", [low, high]),
        ("above=0", [low, high]),
    ):
        changed = (load_filter(f"clahe:{gates}")(images) != images).any(axis=(1, 2, 3))
        assert changed.tolist() == [level in through for level in levels], gates


@pytest.mark.parametrize("threads", [0, -1, 2.5, True, "two"])
def test_invalid_threads_are_rejected(threads: Any) -> None:
    with pytest.raises(OptionError, match=r"threads.* positive integer"):
        load_filter("stretch")(photos(), threads=threads)


def test_names_and_facts_follow_the_options() -> None:
    assert load_filter("clahe:clip=2.0, tiles=8").name == "clahe"
    assert load_filter(["nlm:h=.4,above=0.03", "stretch"]).name == "nlm-h0.4-above0.03+stretch"
    assert load_filter("ten-crop:mirror=no,pad=4").name == "ten-crop-pad4-mirror-no"
    assert load_filter("clahe:clip=4").facts == [{"kind": "clahe", "version": 1, "clip": 4.0, "tiles": 8}]
    near = [load_filter(f"nlm:above={gate}") for gate in ("0.03", "0.0300000001")]
    assert [one.name for one in near] == ["nlm-above0.03", "nlm-above0.0300000001"]
    whole = ImageFilter((FilterStep("clahe", Clahe(clip=4), above=0),))
    assert json.dumps(whole.facts) == json.dumps(load_filter("clahe:clip=4,above=0").facts)
    for minus, zero in (("stretch:cut=-0", "stretch"), ("nlm:above=-0.0", "nlm:above=0")):
        assert load_filter(minus).name == load_filter(zero).name
        assert json.dumps(load_filter(minus).facts) == json.dumps(load_filter(zero).facts)
    image_filter = load_filter("clahe")
    assert isinstance(image_filter, ImageFilter)
    assert load_filter(image_filter) is image_filter


WRONG: tuple[tuple[Any, type[Exception], str], ...] = (
    ("clae", UnknownNameError, "did you mean 'clahe'"),
    ("clahe:clips=2", OptionError, "did you mean 'clip'"),
    ("clahe:clip", OptionError, "options of clahe .*name=value.* got 'clip'"),
    ("clahe:clip=2,clip=3", OptionError, "each once, got 'clip=3'"),
    ("clahe:clip=much", OptionError, "clip of clahe must be a number, got 'much'"),
    ("clahe:tiles=2.5", OptionError, "tiles of clahe must be an integer, got '2.5'"),
    ("clahe:clip=0", OptionError, "clip must be a number from 0.01 to 256, got 0.0"),
    ("clahe:clip=nan", OptionError, "clip must be a number from 0.01 to 256, got nan"),
    ("clahe:tiles=0", OptionError, "tiles must be an integer from 1 to 64, got 0"),
    ("nlm:patch=4", OptionError, "patch must be odd, got 4"),
    ("nlm:subtract=maybe", OptionError, "subtract of nlm must be yes or no, got 'maybe'"),
    ("nlm:above=2", OptionError, "above must be a number from 0 to 1, got 2.0"),
    (
        "nlm:above=0.5,below=0.1",
        OptionError,
        "above must be less than below, got 0.5 and 0.1",
    ),
    ("nlm:below=0", OptionError, "above must be less than below, got 0 and 0"),
    ({"clahe"}, OptionError, "got {'clahe'}"),
    ({"clahe": {"clip": 2}}, OptionError, "got {'clahe'"),
    ("nlm:above=0.0300000001,below=0.03", OptionError, "got 0.0300000001 and 0.03"),
    (
        "clahe+nlm",
        OptionError,
        r"\'clahe\+nlm\' is not one image filter",
    ),
    (b"clahe", OptionError, "must be a string"),
    ("stretch:cut=50", OptionError, "cut must be a number from 0 to 49, got 50.0"),
    ("ten-crop:above=0.1", OptionError, "above cannot be used with ten-crop"),
    ("ten-crop:side=256,pad=4", OptionError, "side and pad .* got 256 and 4"),
    (["ten-crop", "multi-crop"], OptionError, "at most one step can make views"),
    ([], OptionError, "at least one step"),
    ("", UnknownNameError, "unknown image filter ''"),
    ([3], OptionError, "must be a string"),
)


@pytest.mark.parametrize(("text", "error", "message"), WRONG, ids=str)
def test_invalid_texts(text: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_filter(text)


@pytest.mark.parametrize("name", FILTERS)
def test_invalid_images(name: str) -> None:
    image_filter = load_filter(name)
    message = (
        r"must be a uint8 array \(n, h, w, 1 or 3\), got dtype float32; an image filter comes before values"
    )
    floats: Any = photos().astype(np.float32) / 255
    with pytest.raises(ImageTypeError, match=message):
        image_filter(floats)
    with pytest.raises(ImageValueError, match=r"shape \(64.*72.*3\)"):
        image_filter(photos()[0])
    wrong: Any = "photo.jpg"
    with pytest.raises(ImageTypeError, match="got str"):
        image_filter(wrong)
    alone = filter_kinds[name]()  # a single filter, too
    with pytest.raises(ImageTypeError, match=message):
        alone(floats)
    with pytest.raises(ImageValueError, match=r"shape \(64.*72.*3\)"):
        alone(photos()[0])
    assert alone(photos()[:0]).shape == (0, 64, 72, 3)


@pytest.mark.parametrize("kind", [TenCrop, MultiCrop])
def test_images_too_small_for_views(kind: type[Any]) -> None:
    """Crops of images that are too small would have other sizes."""
    with pytest.raises(ImageTypeError, match="dtype float64"):
        kind()(photos() / 255, (32, 32))
    for pad, least in ((0, "64×80"), (3, "58×74")):
        message = f"images must have at least {least} pixels for views of 64×80, got 64×72"
        with pytest.raises(ImageValueError, match=message):
            kind(pad=pad)(photos(), (64, 80))
    assert {view.shape for view in kind(pad=4)(photos(), (72, 80))} == {(2, 72, 80, 3)}


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Clahe, {"tiles": np.int64(4), "clip": np.float32(0.5)}),
        (NonLocalMeans, {"patch": np.uint8(3), "h": np.float64(0.4)}),
        (TenCrop, {"pad": np.int16(4)}),
        (MultiCrop, {"grid": np.int32(2), "side": np.int64(256)}),
        (Stretch, {"cut": np.float32(2)}),
    ],
)
def test_numbers_of_numpy_are_those_of_python(kind: type[Any], given: dict[str, Any]) -> None:
    ours, same = kind(**given), kind(**{name: value.item() for name, value in given.items()})
    one, other = FilterStep("kind", ours), FilterStep("kind", same)
    assert (one.name, json.dumps(one.facts)) == (other.name, json.dumps(other.facts))
    assert {type(value) for value in vars(ours).values()} <= {bool, float, int}


def test_numbers_of_numpy_have_the_bounds_of_others() -> None:
    gate: Any = np.float32(0.25)
    assert type(FilterStep("clahe", Clahe(), above=gate).above) is float
    wrong: Any
    for wrong in (np.float64(4), np.int64(65), np.True_, True):
        with pytest.raises(OptionError, match=r"tiles.*1.*64"):
            Clahe(tiles=wrong)


def test_options_that_are_true_or_false_are_nothing_else() -> None:
    wrong: Any = "no"
    with pytest.raises(OptionError, match=r"each.*True.*False.*'no'"):
        Stretch(each=wrong)
    with pytest.raises(OptionError, match=r"subtract.*True.*False.*'no'"):
        NonLocalMeans(subtract=wrong)
    for crops in (TenCrop, MultiCrop):
        with pytest.raises(OptionError, match=r"mirror.*True.*False.*'no'"):
            crops(mirror=wrong)


@pytest.mark.parametrize(
    "options", [{}, {"h": 1.2, "patch": 7, "distance": 3, "subtract": False}, {"h": 0.4}]
)
def test_non_local_means_of_tensors_are_those_of_arrays(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra torch has it")
    images = np.concatenate([photos(1), noisy(photos(1)), np.full_like(photos(1), 128)])
    nlm = NonLocalMeans(**options)
    made = nlm.on_tensors(torch.from_numpy(images).permute(0, 3, 1, 2).contiguous())
    apart = np.abs(made.permute(0, 2, 3, 1).numpy().astype(int) - nlm(images))
    assert apart.max() <= 1
    assert (apart > 0).mean() < 1e-3
    assert (nlm(images[:2]) != images[:2]).any()


@pytest.mark.parametrize("shape", [(20, 11), (1, 1), (3, 40)])
def test_tensors_may_be_smaller_than_non_local_means_reach(shape: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra torch has it")
    images = np.random.default_rng(0).integers(0, 256, (2, *shape, 3), dtype=np.uint8)
    nlm = NonLocalMeans(distance=25)
    made = nlm.on_tensors(torch.from_numpy(images).permute(0, 3, 1, 2).contiguous())
    assert np.abs(made.permute(0, 2, 3, 1).numpy().astype(int) - nlm(images)).max() <= 1


def test_tensors_are_shown_as_arrays_are() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra torch has it")

    images = np.concatenate([photos(1), noisy(photos(1))])
    tensors = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    for texts in (["clahe"], ["nlm:above=0.03", "ten-crop:pad=2"]):
        image_filter = load_filter(texts)
        size = images.shape[1:3]
        shown = image_filter.apply_tensors(tensors, (size[0], size[1]))
        for one, other in zip(shown, image_filter.apply(images, size), strict=True):
            np.testing.assert_array_equal(one.permute(0, 2, 3, 1).numpy(), other)
