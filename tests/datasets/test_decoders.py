"""Pictures that other processes decode are those that are decoded here."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort.datasets import Problem, decoders, open_dataset
from beaufort.datasets.decoders import Decoders
from beaufort.errors import ImageFileError
from beaufort.evaluation import Setup
from beaufort.evaluation.blocks import Block
from beaufort.suites import Step
from beaufort.testing._contracts import picture


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setattr(decoders, "_WORTH_S", 0.0)
    monkeypatch.setattr(decoders, "_WORTH_IMAGES", 1)
    for i in range(30):
        file = tmp_path / "toys" / f"class{i % 3}" / f"{i:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(40, 50 + i % 2, variant=i)).save(file)
    broken = tmp_path / "toys" / "class1" / "04.png"
    broken.write_bytes(broken.read_bytes()[:200])
    data = open_dataset(str(tmp_path / "toys"))
    return Setup(data, len(data), (Step("resize", 36), Step("crop", 32)), "cifar", 0)


def ready(some: Decoders, count: int) -> None:
    until = time.monotonic() + 600
    while some._working < count:
        assert time.monotonic() < until
        time.sleep(0.02)


def check(setup: Setup, some: Decoders) -> None:
    with ThreadPoolExecutor(3) as pool:
        block = Block(setup, (0, 30), pool, some)
        (problem,) = block.problems()
        assert problem.id == "class1/04.png"
        for place in range(30):
            here = setup.pictures(place)
            if isinstance(here, Problem):
                assert place not in dict(block.shapes((0, 30)))
            else:
                assert np.array_equal(block.image(place), here)


def test_the_same_pictures(setup: Setup) -> None:
    with Decoders(setup.pictures, 30, 2) as some:
        check(setup, some)  # while they start
        ready(some, 2)
        assert some.decode(range(2)) is not None
        check(setup, some)
        for process in some._started:
            process.kill()
        check(setup, some)
        assert some.decode(range(2)) is None
    assert all(process.poll() is not None for process in some._started)


def test_an_error_is_met_where_the_run_is(setup: Setup, tmp_path: Path) -> None:
    strict = Setup(open_dataset(str(tmp_path / "toys"), strict=True), 30, setup.prepare, "cifar", 0)
    with Decoders(strict.pictures, 30, 1) as some, ThreadPoolExecutor(1) as pool:
        ready(some, 1)
        block = Block(strict, (8, 16), pool, some)
        place = list(strict.dataset.ids).index("class1/04.png")
        assert 8 <= place < 16
        with pytest.raises(ImageFileError):
            list(block.shapes((8, 16)))


def test_quick_pictures_need_no_process(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "_WORTH_S", 60.0)
    with Decoders(setup.pictures, 30, 2) as some:
        assert some.decode(range(2)) is None
    assert not some._started
