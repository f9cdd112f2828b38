"""Corruptions at the size of the model's input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beaufort import evaluate
from beaufort._core.errors import OptionError
from beaufort.corruptions import corruptions
from beaufort.data import from_arrays
from beaufort.models import Preprocessing, as_model
from beaufort.results import open_parts
from beaufort.suites import Condition, get_suite, parse_suite
from beaufort.testbed import load_grid
from beaufort.testbed.stored_accuracies import PART_SETTINGS, scores_of_store

SUITE = """
name: own
version: 1
dataset: data
shifts: [native-contrast@3, native-gaussian_noise@5, native-greyscale@1]
"""


def test_the_model_sees_its_own_image_corrupted(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 60, 90, 3)).astype(np.uint8)
    data = from_arrays("data", images, np.arange(4))
    seen: list[np.ndarray] = []

    def keep(batch: np.ndarray) -> np.ndarray:
        seen.append(batch.copy())
        return np.eye(4, dtype=np.float32)[np.zeros(len(batch), int)]

    own = Preprocessing(size=(40, 40), resize=48)
    model = as_model(keep, name="keeper", classes=4, version="1", input_size=40, resize=48)
    assert model.spec.preprocessing.size == own.size
    evaluate([model], parse_suite(SUITE), data, tmp_path / "kept", labels="identity")
    fitted = own.fit(images)
    shown = np.concatenate([batch for batch in seen if len(batch)])
    for name, severity in (("contrast", 3), ("gaussian_noise", 5), ("greyscale", 1)):
        wanted = corruptions[name](fitted, severity, ids=list(data.ids), scale="imagenet")
        scaled = wanted.astype(np.float32)
        for one in scaled:
            assert min(np.abs(other - one).max() for other in shown) < 1e-6, name
    (part,) = open_parts(tmp_path / "kept")
    assert [str(one).partition("/")[2] for one in part.predictions("keeper").conditions][1:] == [
        "native-contrast@3",
        "native-gaussian_noise@5",
        "native-greyscale@1",
    ]
    scores = {one.setting: one for one in scores_of_store(tmp_path / "kept", None, load_grid("paper"))[0]}
    assert scores["imagenet-c.contrast.3_in-memory"].preprocessing == "own"
    assert "greyscale" in scores


def test_levels_are_severities() -> None:
    for text in ("x/native-fog", "x/native-fog@6", "x/native-fog@no"):
        with pytest.raises(OptionError):
            Condition.parse(text)


def test_suites_cover_the_average_over_corruptions() -> None:
    """The settings of four suites are the members of `avg_corruptions`, 95 on disk and 92 others."""
    grid = load_grid("paper")
    settings = {PART_SETTINGS["stylized-imagenet"], "greyscale"}
    for name in ("imagenet-c", "imagenet-c-validation"):
        suite = get_suite(name)
        settings |= {f"imagenet-c.{one}.{k}_on-disk" for one in suite.corruptions for k in range(1, 6)}
    for shift in get_suite("testbed-in-memory").shifts:
        name, _, level = shift.removeprefix("native-").partition("@")
        settings |= {f"imagenet-c.{name}.{level}_in-memory"} - {"imagenet-c.greyscale.1_in-memory"}
    members = grid.aggregates["avg_corruptions"].members
    single = {one for name in members for one in (grid.setting(name).members or (name,))}
    assert settings == single
    assert len(settings) == 187
