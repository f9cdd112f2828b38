"""Greyscale is the luma of the testbed, on every backend."""

from __future__ import annotations

import numpy as np
import pytest

from beaufort import corrupt
from beaufort.suites.conditions import Condition
from beaufort.testbed import load_grid


def test_the_luma_is_in_all_channels() -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    luma = np.rint(images @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)
    for severity in (1, 5):
        out = corrupt(images, "greyscale", severity)
        assert (out == luma[..., None]).all()
    gray = images[..., :1]
    assert (corrupt(gray, "greyscale", 1) == gray).all()


def test_tensors_give_the_same() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    tensor = torch.from_numpy(images).permute(0, 3, 1, 2)
    out = corrupt(tensor, "greyscale", 1).permute(0, 2, 3, 1).numpy()
    assert (out == corrupt(images, "greyscale", 1)).all()


def test_it_is_the_setting_of_the_testbed() -> None:
    setting = load_grid("paper").setting("greyscale")
    assert setting.corruption == "greyscale"
    assert Condition.parse("imagenet-val/greyscale@1").corruption == setting.corruption
