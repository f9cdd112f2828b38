"""Images of three categories, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from beaufort._core.optional import prepare_torchvision
from tests.mining.world import make_images

prepare_torchvision()  # before anything imports it: its compiled part may not fit the torch that is here


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_images(tmp_path_factory.mktemp("mined"))


@pytest.fixture
def images(made_once: Path, tmp_path: Path) -> Path:
    """A folder of generated images that a test may change."""
    return shutil.copytree(made_once, tmp_path / "images")
