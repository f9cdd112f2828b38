"""Files in an output directory."""

from __future__ import annotations

from pathlib import Path

from PIL import Image


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by path."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def opened(path: Path) -> Image.Image:
    """An image, decoded, with its file closed."""
    with Image.open(path) as image:
        image.load()
        return image
