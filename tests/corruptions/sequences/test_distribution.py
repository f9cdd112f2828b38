"""Given our own random numbers, frames have the published distribution.

Brightness and texture (the mean absolute difference of neighbors) of single frames are compared with those of
the published programs by two-sample Kolmogorov-Smirnov tests: of the first and last frame over 64 published
sequences where flakes and drops are drawn once, of all noisy frames of one sequence where each is drawn anew.
A single test has a false-alarm rate of 1e-6; seeds are fixed, so what passes once passes always.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from beaufort.corruptions.sequences import perturbations

ALPHA = 1e-6
DRAWS = 128


@cache
def stored(path: Path) -> Any:
    return np.load(path)


def texture(frames: np.ndarray) -> np.ndarray:
    wide = frames.astype(np.float64)
    across = np.abs(np.diff(wide, axis=2)).mean(axis=(1, 2, 3))
    down = np.abs(np.diff(wide, axis=1)).mean(axis=(1, 2, 3))
    return np.stack([across, down], axis=1)


def p_values(ours: np.ndarray, theirs: np.ndarray) -> list[float]:
    """One for each column."""
    columns = zip(ours.reshape(len(ours), -1).T, theirs.reshape(len(theirs), -1).T, strict=True)
    return [float(stats.ks_2samp(one, other, method="asymp").pvalue) for one, other in columns]


@pytest.mark.parametrize("name", ["snow", "spatter"])
def test_frames_with_fixed_random_numbers_match_statistics(shared: Path, name: str) -> None:
    files = stored(shared / "golden" / "cifar_p_32.npz")
    image = files["inputs"][files["input_names"].tolist().index("astronaut")]
    batch = np.ascontiguousarray(np.broadcast_to(image, (DRAWS, *image.shape)))
    frames = list(perturbations[name].frames(batch, scale="cifar", ids=range(DRAWS)))
    for which, frame in (("first", frames[0]), ("last", frames[-1])):
        about = f"stat/{name}/1/astronaut/{which}"
        drawn = np.asarray(frame)
        # Published frames without a drop are black, ours are clean: neither says anything about drops.
        ours = drawn[np.abs(drawn.astype(int) - image).any(axis=(1, 2, 3))]
        means, textures = files[f"{about}/draw_mean"], files[f"{about}/draw_tv"]
        seen = means.reshape(len(means), -1).max(axis=1) > 0
        assert min(p_values(ours.mean(axis=(1, 2), dtype=np.float64), means[seen])) > ALPHA, which
        assert min(p_values(texture(ours), textures[seen])) > ALPHA, which


@pytest.mark.parametrize("difficulty", [1, 3])
@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "speckle_noise"])
def test_frames_with_new_random_numbers_match_statistics(shared: Path, name: str, difficulty: int) -> None:
    files = stored(shared / "golden" / "imagenet_p_224.npz")
    source = files["source/astronaut"]
    frames = perturbations[name].frames(source[None], scale="imagenet", ids=["x"], difficulty=difficulty)
    ours = np.stack([np.asarray(frame)[0] for frame in frames])[1:]
    about = f"stat/{name}/{difficulty}/astronaut"
    assert min(p_values(ours.mean(axis=(1, 2), dtype=np.float64), files[f"{about}/frame_mean"][1:])) > ALPHA
    assert min(p_values(texture(ours), files[f"{about}/frame_tv"][1:])) > ALPHA
    # Noise of one frame says nothing about that of another.
    noise = (ours.astype(np.float64) - ours.mean(axis=0)).reshape(len(ours), -1)[:, ::7]
    correlation = np.corrcoef(noise)[np.triu_indices(len(noise), 1)]
    assert np.abs(correlation + 1 / (len(noise) - 1)).max() < 6 / np.sqrt(noise.shape[1])
