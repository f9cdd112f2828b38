"""Cut-outs on backgrounds, or covered with textures and materials: no GPU, no weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort.data.images import read_image
from beaufort.mining._cutouts import category_pictures, images_digest, pictures_in, read_cutout
from beaufort.mining._surfaces import SURFACES
from beaufort.mining.plan import MiningError, PlanItem

_PLAIN = 0.5
"""Gray behind an object whose texture or material is what is unusual."""


class CompositeGenerator:
    """Puts an object with a mask on a surface, or a surface on the object.

    Args:
        cutouts: a folder for each category, with pictures that have a transparent ground, or a mask beside
            them: `chair/3.jpg` and `chair/3.mask.png`.
        surfaces: a folder for each nuisance, with pictures; the built-in nuisances need none.
        size: height and width of what is made, in pixels.
        fill: largest share of the side that the object takes.
    """

    batch = 16

    def __init__(
        self, cutouts: Path, *, surfaces: Path | None = None, size: int = 224, fill: float = 0.7
    ) -> None:
        if not cutouts.is_dir():
            raise MiningError(f"cutouts must be a folder, got {cutouts}")
        if surfaces is not None and not surfaces.is_dir():
            raise MiningError(f"surfaces must be a folder, got {surfaces}")
        if size < 8:
            raise MiningError(f"size must be at least 8, got {size}")
        if not 0 < fill <= 1:
            raise MiningError(f"fill must be above 0 and at most 1, got {fill:g}")
        self._cutouts, self._surfaces, self._size, self._fill = cutouts, surfaces, size, fill

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The settings, and a digest of all pictures that could have been used."""
        folders = [self._cutouts, *([self._surfaces] if self._surfaces else [])]
        return {
            "name": "composite",
            "version": 2,
            "size": self._size,
            "fill": self._fill,
            "pictures": images_digest(folders),
        }

    def check(self, items: Sequence[PlanItem]) -> None:
        """Every category must have cut-outs with masks, every nuisance pictures or a built-in surface."""
        for category in sorted({item.category for item in items}):
            for path in category_pictures(self._cutouts, category):
                read_cutout(path)
        for nuisance in sorted({item.nuisance for item in items}):
            if not self._pictures_of(nuisance) and nuisance not in SURFACES:
                raise MiningError(
                    f"a nuisance must be built in ({', '.join(sorted(SURFACES))}) or have a folder of "
                    f"pictures among the surfaces, got {nuisance!r}"
                )

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """An image for each item, which depends on its seed."""
        return [self._one(item) for item in items]

    def _one(self, item: PlanItem) -> Image.Image:
        rng = np.random.Generator(np.random.Philox(item.seed))
        choices = category_pictures(self._cutouts, item.category)
        pixels, mask = self._placed(read_cutout(choices[rng.integers(len(choices))]), rng)
        surface = self._surface(item.nuisance, rng)
        if item.kind == "background":
            made = mask * pixels + (1 - mask) * surface
        else:  # the object keeps its light and shade, and takes its colors from the surface
            light = pixels.mean(axis=2, keepdims=True)
            made = mask * surface * (0.4 + 0.6 * light) + (1 - mask) * _PLAIN
        return Image.fromarray((made.clip(0, 1) * 255).round().astype(np.uint8))

    def _placed(
        self, cutout: Image.Image, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The object at a random size and place: its colors and its mask, from 0 to 1."""
        box = cutout.getchannel("A").getbbox()
        cut = cutout.crop(box)
        scale = self._size * self._fill * rng.uniform(0.7, 1.0) / max(cut.size)
        width, height = (max(1, round(side * scale)) for side in cut.size)
        cut = cut.resize((width, height), Image.Resampling.LANCZOS)
        x, y = (int(rng.integers(0, self._size - side + 1)) for side in (width, height))
        ground = Image.new("RGBA", (self._size, self._size))
        ground.paste(cut, (x, y))
        values = np.asarray(ground, np.float32) / np.float32(255)
        return values[..., :3], values[..., 3:]

    def _surface(self, nuisance: str, rng: np.random.Generator) -> NDArray[np.float32]:
        choices = self._pictures_of(nuisance)
        if not choices:
            return SURFACES[nuisance](self._size, rng)
        picture = read_image(choices[rng.integers(len(choices))]).convert("RGB")
        side = min(picture.size)
        left, top = (int(rng.integers(0, length - side + 1)) for length in picture.size)
        crop = picture.crop((left, top, left + side, top + side))
        resized = crop.resize((self._size, self._size), Image.Resampling.LANCZOS)
        return np.asarray(resized, np.float32) / np.float32(255)

    def _pictures_of(self, nuisance: str) -> list[Path]:
        return pictures_in(self._surfaces / nuisance) if self._surfaces else []
