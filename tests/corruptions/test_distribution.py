"""Given our own random numbers, the pixels have the reference's distribution.

The reference's statistics come from 256 draws of each corruption; ours from as many keyed draws, one an
image id. Brightness (the mean of each draw) and texture (its mean absolute neighbor difference) are
compared by two-sample Kolmogorov-Smirnov tests. The per-pixel mean and spread are compared by a sum of
squared differences over pixels, calibrated by resampling our own draws: a gamma distribution with the
mean and variance of the resampled statistic gives the p-value, so that neither pixels nor neighbors need be
independent.

Each single test has a false-alarm rate of 1e-6, all of them together (fewer than 900) one below 1e-3.
Seeds are fixed: what passes once passes always.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from scipy import stats

from beaufort.corruptions import corruptions, get_corruption_names

ALPHA = 1e-6
RESAMPLES = 100
DRAWS = 1024
DRAWS_OF_PHOTOS = 320


@cache
def _stored(path: Path) -> Any:
    return np.load(path)


@cache
def _manifest(path: Path) -> Any:
    return json.loads(path.read_text())


def keyed_draws(name: str, severity: int | None, image: np.ndarray, scale: str, count: int) -> np.ndarray:
    batch = np.broadcast_to(image, (count, *image.shape))
    images = np.ascontiguousarray(batch)
    return np.asarray(corruptions[name](images, severity, ids=range(count), scale=scale))


def texture(draws: np.ndarray) -> np.ndarray:
    """Mean absolute difference to the next pixel across and down, for each draw."""
    return np.array([(_distance(one[:, 1:], one[:, :-1]), _distance(one[1:], one[:-1])) for one in draws])


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    """Mean absolute difference."""
    return float(cv2.norm(one, other, cv2.NORM_L1)) / one.size


def brightness(draws: np.ndarray) -> np.ndarray:
    """Mean of each channel of each draw; rows are added first, which have many numbers side by side."""
    rows = draws.sum(axis=1, dtype=np.uint32)
    return np.asarray(rows.mean(axis=1) / draws.shape[1])


def ks_p_value(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Both blurred by a hundredth of a level: what has few outcomes has ties, up to rounding."""
    rng = np.random.default_rng(0)
    ours, theirs = (sample + rng.uniform(-0.01, 0.01, sample.shape) for sample in (ours, theirs))
    return float(stats.ks_2samp(ours, theirs, method="asymp").pvalue)


def distances(mean: np.ndarray, std: np.ndarray, other: np.ndarray, other_std: np.ndarray) -> np.ndarray:
    """Return the distance of two samples' per-pixel means and spreads, in units of the spread.

    The unit is at least one level, and made of both samples: a pixel that is hit once in hundreds of
    draws counts, but not without bound.
    """
    unit = (std**2 + other_std**2) / 2 + 1
    return np.array([((mean - other) ** 2 / unit).mean(), ((std - other_std) ** 2 / unit).mean()])


def moments_of_resamples(draws: np.ndarray, count: int, repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of each pixel over `count` draws that are taken with replacement, `repeats` times.

    What is taken is written as how often each draw is taken, so that all sums are one product of matrices.
    """
    rng = np.random.default_rng(0)
    taken = np.array(
        [np.bincount(rng.integers(0, len(draws), count), minlength=len(draws)) for _ in range(repeats)]
    )
    center = draws.mean(axis=0)
    about_center = draws - center
    mean = taken @ about_center / count
    variance = taken @ about_center**2 / count - mean**2
    return mean + center, np.sqrt(np.maximum(variance, 0))


def field_p_values(draws: np.ndarray, mean: np.ndarray, std: np.ndarray, count: int) -> tuple[float, float]:
    """Compare the reference's per-pixel mean and spread with those of as many of our draws."""
    flat = draws.reshape(len(draws), -1).astype(np.float64)
    theirs = mean.reshape(-1).astype(np.float64), std.reshape(-1).astype(np.float64)
    observed = distances(flat[:count].mean(axis=0), flat[:count].std(axis=0), *theirs)
    means, stds = moments_of_resamples(flat, count, 2 * RESAMPLES)
    resampled = [distances(means[i], stds[i], means[i + 1], stds[i + 1]) for i in range(0, 2 * RESAMPLES, 2)]
    rounding = 0.07**2  # of the reference's float16
    center, variance = np.mean(resampled, axis=0) + rounding, np.var(resampled, axis=0) + rounding**2
    on_mean, on_std = stats.gamma.sf(observed, center**2 / variance, scale=variance / center)
    return float(on_mean), float(on_std)


def p_values(draws: np.ndarray, reference: dict[str, np.ndarray], step: int) -> dict[str, float]:
    """All comparisons of our draws with the reference's statistics."""
    their_means = reference["draw_mean"].reshape(-1, draws.shape[-1])
    first = draws[: len(their_means)]
    means = brightness(first)
    ours_texture, their_texture = texture(first), reference["draw_tv"].reshape(-1, 2)
    found = {f"brightness {c}": ks_p_value(means[:, c], their_means[:, c]) for c in range(means.shape[1])}
    found |= {f"texture {c}": ks_p_value(ours_texture[:, c], their_texture[:, c]) for c in range(2)}
    mean, std = (reference[what].reshape(draws.shape[1:])[::step, ::step] for what in ("mean", "std"))
    fields = field_p_values(draws[:, ::step, ::step], mean, std, len(first))
    found["pixel mean"], found["pixel spread"] = fields
    return found


def entry(shared: Path, file: str, key: str) -> dict[str, np.ndarray]:
    stored = _stored(shared / "golden" / f"{file}.npz")
    return {what: stored[f"stat/{key}/{what}"] for what in ("mean", "std", "draw_mean", "draw_tv")}


RANDOM = [
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "speckle_noise",
    "glass_blur",
    "motion_blur",
    "snow",
    "frost",
    "fog",
    "elastic_transform",
    "spatter",
]
MNIST_RANDOM = [*RANDOM, "pessimal_noise", "shear", "rotate", "translate", "line", "dotted_line", "zigzag"]


@pytest.mark.parametrize(
    ("file", "scale", "step"), [("imagenet_c_224", "imagenet", 7), ("cifar_c_32", "cifar", 2)]
)
@pytest.mark.parametrize("name", RANDOM)
def test_photos(shared: Path, name: str, file: str, scale: str, step: int) -> None:
    stored = _stored(shared / "golden" / f"{file}.npz")
    images = dict(zip(_manifest(shared / "golden" / f"{file}.json")["inputs"], stored["inputs"], strict=True))
    keys = sorted({key.rsplit("/", 1)[0] for key in stored.files if key.startswith(f"stat/{name}/")})
    assert keys
    for key in keys:
        _, _, severity, image = key.split("/")
        count = DRAWS_OF_PHOTOS if scale == "imagenet" else DRAWS
        draws = keyed_draws(name, int(severity), images[image], scale, count)
        found = p_values(draws, entry(shared, file, key.removeprefix("stat/")), step)
        assert min(found.values()) > ALPHA, (key, found)


BAR_RANDOM = [name for name in get_corruption_names("cifar10-c-bar") if corruptions[name].random]


@pytest.mark.parametrize("name", BAR_RANDOM)
def test_c_bar(shared: Path, name: str) -> None:
    """These have 64 draws at severity 3."""
    image = _stored(shared / "golden" / "cifar_c_bar_32.npz")["inputs"][0]
    draws = keyed_draws(name, 3, image, "cifar", 256)
    found = p_values(draws, entry(shared, "cifar_c_bar_32", f"{name}/3/astronaut"), 2)
    assert min(found.values()) > ALPHA, found


@pytest.mark.parametrize("name", MNIST_RANDOM)
def test_digits(shared: Path, name: str) -> None:
    stored = _stored(shared / "golden" / "mnist_c.npz")
    reference = entry(shared, "mnist_c", name)
    for j in range(0, 64, 8):
        draws = keyed_draws(name, None, stored["inputs"][j][..., None], "mnist", DRAWS)
        found = p_values(draws, {what: field[j] for what, field in reference.items()}, 1)
        assert min(found.values()) > ALPHA, (j, found)


@pytest.mark.parametrize("name", RANDOM)
def test_the_wrong_severity_is_noticed(shared: Path, name: str) -> None:
    """The comparison can fail: draws at the severity below do not pass for the one above."""
    stored = _stored(shared / "golden" / "cifar_c_32.npz")
    draws = keyed_draws(name, 4, stored["inputs"][0], "cifar", DRAWS)
    found = p_values(draws, entry(shared, "cifar_c_32", f"{name}/5/astronaut"), 1)
    assert min(found.values()) < ALPHA, found


def test_a_slightly_wrong_noise_is_noticed(shared: Path) -> None:
    """Three percent more noise than published does not pass."""
    stored = _stored(shared / "golden" / "cifar_c_32.npz")
    image = stored["inputs"][0]
    reference = entry(shared, "cifar_c_32", "gaussian_noise/3/astronaut")
    rng = np.random.default_rng(0)
    for factor, passes in ((1.0, True), (1.03, False)):
        noise = rng.normal(0, 0.08 * factor, (DRAWS, *image.shape))
        draws = (np.clip(image / 255 + noise, 0, 1) * 255).astype(np.uint8)
        assert (min(p_values(draws, reference, 1).values()) > ALPHA) is passes
