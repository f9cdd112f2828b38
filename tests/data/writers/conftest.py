"""Generated images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def photo(number: int = 0, size: tuple[int, int] = (40, 32)) -> Image.Image:
    width, height = size
    y, x = np.mgrid[0:height, 0:width]
    channels = [(x * 5 + number * 17) % 256, (y * 7 + number * 31) % 256, (x + y) * 3 % 256]
    return Image.fromarray(np.stack(channels, -1).astype(np.uint8))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Five images in two classes, and a file that is not an image."""
    source = tmp_path / "source"
    for number, name in enumerate(["cat/a.png", "cat/b.jpg", "cat/deep/c.JPEG", "dog/a.png", "dog/d.png"]):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        photo(number).save(path)
    (source / "labels.csv").write_text("0\n")
    return source
