"""Constants at any size: the published ones at published sizes, no jump between, a notice far away."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from size_steps import Damage, damage, resized, steps

from beaufort import get_corruption_names
from beaufort._core.errors import SizeWarning
from beaufort.corruptions import SCALES, SEVERITIES, corruptions
from beaufort.suites.conditions import Condition
from beaufort.testing._contracts import example_image

PHOTO_SCALES = {scale: side for scale, side in SCALES.items() if scale != "mnist"}
ALL = get_corruption_names("all")


@pytest.mark.parametrize("name", ALL)
def test_auto_at_a_published_size_is_the_published_scale(name: str) -> None:
    corruption = corruptions[name]
    for scale, side in PHOTO_SCALES.items():
        for severity in SEVERITIES:
            chosen = corruption.choose(severity, scale="auto", side=side)
            assert chosen == corruption.choose(severity, scale=scale, side=side)
            assert chosen.recipe is corruption.recipes[scale]
    digits = corruption.choose(None, scale="auto", side=28, channels=1)
    assert digits == corruption.choose(None, scale="mnist", side=28)


def test_scale_chosen_by_auto() -> None:
    """The nearest one in ratio; gray images up to 28 pixels are digits."""
    for side, channels, scale in (
        (28, 1, "mnist"),
        (16, 1, "mnist"),
        (29, 1, "cifar"),
        (28, 3, "cifar"),
        (16, 3, "cifar"),
        (45, 3, "cifar"),
        (46, 3, "tiny"),
        (119, 3, "tiny"),
        (120, 3, "imagenet"),
        (258, 3, "imagenet"),
        (259, 3, "inception"),
        (900, 3, "inception"),
    ):
        assert corruptions["contrast"].choose(2, scale="auto", side=side, channels=channels).scale == scale


def test_constants_between_two_sizes() -> None:
    noise = corruptions["gaussian_noise"]
    assert noise.params(3, "auto", side=48).sigma == pytest.approx((0.08 * 0.12) ** 0.5)
    assert noise.params(3, "auto", side=20) == noise.params(3, "cifar")
    assert noise.params(3, "auto", side=2000) == noise.params(3, "inception")
    assert 2 < corruptions["glass_blur"].params(4, "auto", side=150).distance < 3
    assert corruptions["contrast"].params(1, "auto", side=48).factor == pytest.approx(1 - (0.25 * 0.6) ** 0.5)


def test_facts_of_a_size_between_are_its_own() -> None:
    """Equal facts mean equal pixels: sizes in between have facts of their own."""
    condition = Condition("data", "glass_blur", 3)
    facts = [str(condition.facts(scale="auto", side=side)) for side in range(32, 300)]
    assert len(set(facts)) == len(facts)
    assert str(condition.facts(scale="tiny")) in facts


STEEP = {
    ("brightness", 1): 1.12,  # 12 levels become 13: 8-bit images have no values in between
    ("jpeg_compression", 1): 1.11,  # from 32 to 33 pixels a fifth row and column of blocks begins
}
"""Corruptions and severities that change by more than 10 % somewhere from 24 pixels on, and by how much."""

SMALL_CELLS = 72
"""Below this side cells of pixelate have one or two pixels, and where the twos fall decides."""


@pytest.mark.parametrize("severity", [1, 3, 5])
@pytest.mark.parametrize("name", [name for name in ALL if not corruptions[name].random])
def test_damage_does_not_jump(name: str, severity: int) -> None:
    """From one side to the next it changes by less than 10 %, on photos resized to each."""
    first = SMALL_CELLS if name == "pixelate" else 24
    for sides in (range(first, 81), range(118, 122), range(222, 227), range(297, 302), range(599, 601)):
        found: Damage = {side: damage(name, severity, side, scale="auto", draws=1) for side in sides}
        ratio, _, side = max(steps(found))
        assert ratio < STEEP.get((name, severity), 1.1), side


@pytest.mark.parametrize("sides", [(31, 34), (45, 47), (63, 66), (119, 121)])
@pytest.mark.parametrize("name", [name for name in ALL if corruptions[name].random])
def test_random_damage_does_not_jump(name: str, sides: tuple[int, int]) -> None:
    """As above, within what chance leaves open with this many draws."""
    found = {
        side: damage(name, 3, side, scale="auto", draws=16 if side < 100 else 6)
        for side in range(sides[0], sides[1] + 1)
    }
    for ratio, error, side in steps(found):
        assert ratio < 1.1 + 3 * error, side


def test_a_rule_that_jumps_is_noticed() -> None:
    """The check can fail: the nearest published scale does not pass."""
    for name, low, high in (("shot_noise", "tiny", "imagenet"), ("defocus_blur", "tiny", "imagenet")):
        found = {
            side: damage(name, 3, side, scale=scale, draws=4) for side, scale in ((119, low), (120, high))
        }
        assert max(steps(found))[0] > 3


@pytest.mark.parametrize("side", [50, 72, 100, 128, 150, 200, 260])
def test_pixelate_grows_with_severity(side: int) -> None:
    found = [damage("pixelate", severity, side, scale="auto", draws=1)[0] for severity in SEVERITIES]
    assert found == sorted(found), found


@pytest.mark.parametrize("side", [20, 47, 150])
@pytest.mark.parametrize("name", ALL)
def test_both_engines_follow_the_rule(name: str, side: int) -> None:
    pytest.importorskip("torch")
    images = resized(side)
    cpu, torch = (corruptions[name](images, 3, ids=range(3), backend=backend) for backend in ("cpu", "torch"))
    off = np.abs(cpu.astype(int) - torch)
    assert off.max() <= 1
    assert (off > 0).mean() < 2e-3


@pytest.mark.parametrize("name", ["glass_blur", "pixelate", "snow", "zoom_blur", "defocus_blur"])
def test_images_that_are_not_square(name: str) -> None:
    for scale in ("auto", "relative"):
        out = corruptions[name](example_image(47, 131), 3, scale=scale)
        assert out.shape == (47, 131, 3)
        turned = corruptions[name](example_image(131, 47), 3, scale=scale)
        assert turned.shape == (131, 47, 3)


def test_a_size_far_from_the_published_ones_gets_one_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    notice = importlib.import_module("beaufort.corruptions._sizes")
    monkeypatch.setattr(notice, "_given", count())
    large = np.zeros((notice.FAR, notice.FAR + 5, 3), np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corruptions["contrast"](large[:-1], 3)
        corruptions["contrast"](large, 3, scale="imagenet")
        corruptions["contrast"](large, 3, scale="relative")
        corruptions["rotate"](large, 3)  # has constants for digits only, which grow
    with pytest.warns(SizeWarning, match=r"897 pixels.*scale='relative'"):
        corruptions["contrast"](large, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corruptions["gaussian_blur"](large, 3)


def test_the_command_line_shows_it_as_a_note(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.png", "b.png"):
        Image.new("RGB", (1000, 950), (120, 90, 60)).save(tmp_path / "in" / name)
    command = [sys.executable, "-m", "beaufort", "corrupt", "in", "out", "--corruption", "contrast"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.count("short side of 950 pixels") == 1
    assert "Warning" not in done.stderr
