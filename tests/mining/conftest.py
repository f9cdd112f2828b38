"""Images of three categories, made once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from beaufort.models._lazy import prepare_torchvision
from tests.mining.world import make_images

prepare_torchvision()  # before anything imports it: its compiled part may not fit the torch that is here


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_images(tmp_path_factory.mktemp("mined"))


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Networks this small are slower on several threads, and very slow where others want the processors."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def images(made_once: Path, tmp_path: Path) -> Path:
    """A folder of generated images that a test may change."""
    return shutil.copytree(made_once, tmp_path / "images")
