"""Cut-outs on backgrounds, or covered with textures and materials: no GPU, no weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.validation import validate_integer
from beaufort.data.images import is_image_name, read_image
from beaufort.mining.plan import MiningError, PlanItem
from beaufort.mining.surfaces import SURFACES

_GRAY = 0.5
"""Background of an object with an unusual texture or material."""


class CompositeGenerator:
    """Puts an object with a mask on a surface, or a surface on the object.

    Args:
        cutouts: a folder for each category, with images that have a transparent background, or a mask
            beside them: `chair/3.jpg` and `chair/3.mask.png`.
        surfaces: a folder of images for each nuisance; the built-in nuisances need none.
        size: height and width of the generated images, in pixels.
        fill: largest fraction of the side that the object takes.
    """

    batch = 16

    def __init__(
        self, cutouts: Path, *, surfaces: Path | None = None, size: int = 224, fill: float = 0.7
    ) -> None:
        for name, folder in (("cutouts", cutouts), ("surfaces", surfaces)):
            if folder is not None and not folder.is_dir():
                raise MiningError(f"{name} must be a folder, got {folder}")
        if not 0 < fill <= 1:
            raise MiningError(f"fill must be above 0 and at most 1, got {fill:g}")
        self._cutouts, self._surfaces = cutouts, surfaces
        self._size, self._fill = validate_integer("size", size, 8), fill

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The settings, and a digest of all images that could have been used."""
        folders = [self._cutouts, *([self._surfaces] if self._surfaces else [])]
        return {
            "name": "composite",
            "version": 2,
            "size": self._size,
            "fill": self._fill,
            "pictures": images_digest(folders),
        }

    def check(self, items: Sequence[PlanItem]) -> None:
        """Raise an error unless categories have cut-outs with masks, and nuisances have surfaces."""
        for category in sorted({item.category for item in items}):
            for path in category_images(self._cutouts, category):
                read_cutout(path)
        for nuisance in sorted({item.nuisance for item in items}):
            if not self._surface_images(nuisance) and nuisance not in SURFACES:
                raise MiningError(
                    f"no surface for the nuisance {nuisance!r}; add a folder of images to the surfaces, or "
                    f"use a built-in one: {', '.join(sorted(SURFACES))}"
                )

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """Return an image for each item, which depends on its seed."""
        return [self._one(item) for item in items]

    def _one(self, item: PlanItem) -> Image.Image:
        rng = np.random.Generator(np.random.Philox(item.seed))
        choices = category_images(self._cutouts, item.category)
        pixels, mask = self._placed(read_cutout(choices[rng.integers(len(choices))]), rng)
        surface = self._surface(item.nuisance, rng)
        if item.kind == "background":
            made = mask * pixels + (1 - mask) * surface
        else:  # the object keeps its light and shade, and takes its colors from the surface
            light = pixels.mean(axis=2, keepdims=True)
            made = mask * surface * (0.4 + 0.6 * light) + (1 - mask) * _GRAY
        return Image.fromarray((made.clip(0, 1) * 255).round().astype(np.uint8))

    def _placed(
        self, cutout: Image.Image, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the object at a random size and place: its colors and its mask, from 0 to 1."""
        cut = cutout.crop(cutout.getchannel("A").getbbox())
        scale = self._size * self._fill * rng.uniform(0.7, 1.0) / max(cut.size)
        width, height = (max(1, round(side * scale)) for side in cut.size)
        cut = cut.resize((width, height), Image.Resampling.LANCZOS)
        x, y = (int(rng.integers(0, self._size - side + 1)) for side in (width, height))
        ground = Image.new("RGBA", (self._size, self._size))
        ground.paste(cut, (x, y))
        values = np.asarray(ground, np.float32) / np.float32(255)
        return values[..., :3], values[..., 3:]

    def _surface(self, nuisance: str, rng: np.random.Generator) -> NDArray[np.float32]:
        choices = self._surface_images(nuisance)
        if not choices:
            return SURFACES[nuisance](self._size, rng)
        image = read_image(choices[rng.integers(len(choices))]).convert("RGB")
        side = min(image.size)
        left, top = (int(rng.integers(0, length - side + 1)) for length in image.size)
        crop = image.crop((left, top, left + side, top + side))
        resized = crop.resize((self._size, self._size), Image.Resampling.LANCZOS)
        return np.asarray(resized, np.float32) / np.float32(255)

    def _surface_images(self, nuisance: str) -> list[Path]:
        return _images_in(self._surfaces / nuisance) if self._surfaces else []


def category_images(folder: Path, category: str) -> list[Path]:
    """Return the images of a category in order, without masks; an error if there are none."""
    found = [path for path in _images_in(folder / category) if not path.stem.endswith(".mask")]
    if not found:
        raise MiningError(f"no images for the category {category!r} in {folder / category}")
    return found


def images_digest(folders: Sequence[Path]) -> str:
    """Return a digest of all images below some folders."""
    digest = sha256()
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if is_image_name(path.name)):
            content = sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def read_cutout(path: Path) -> Image.Image:
    """Read an image with its mask as transparency: its own, or that of `NAME.mask.png` beside it."""
    image = read_image(path)
    beside = path.with_name(f"{path.stem}.mask.png")
    if beside.is_file():
        mask = read_image(beside).convert("L")
        if mask.size != image.size:
            raise MiningError(f"{beside} has size {mask.size}, but its image has {image.size}")
        image = image.convert("RGB")
        image.putalpha(mask)
    image = image.convert("RGBA")
    low, high = image.getchannel("A").getextrema()
    if high == 0:
        raise MiningError(f"the mask of {path} is empty")
    if low == 255:
        raise MiningError(
            f"{path} has no mask; it needs a transparent background, or {beside.name} beside it"
        )
    return image


def _images_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if is_image_name(path.name) and path.is_file())
