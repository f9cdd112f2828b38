"""Composites of cut-outs with backgrounds, textures and materials; they need no GPU and no weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.validation import validate_directory, validate_integer
from beaufort.data.images import is_image_name, read_image
from beaufort.mining.plan import MiningError, PlanItem

ON_OBJECT = ("texture", "material")
"""Kinds of nuisances that change the object; others change what is around it."""
_GRAY = 0.5
"""Background behind objects with an unusual texture or material."""


class CompositeGenerator:
    """Puts an object with a mask on a surface, or a surface onto the object.

    Args:
        cutouts: a folder for each category, with images that have a transparent background, or a mask
            beside them: `chair/3.jpg` and `chair/3.mask.png`.
        surfaces: a folder of images for each nuisance; not needed for the built-in nuisances.
        size: height and width of the generated images, in pixels.
        fill: largest fraction of the image side that the object covers.
    """

    batch = 16

    def __init__(
        self, cutouts: Path, *, surfaces: Path | None = None, size: int = 224, fill: float = 0.7
    ) -> None:
        self._cutouts = validate_directory("cutouts", cutouts, MiningError)
        self._surfaces = surfaces and validate_directory("surfaces", surfaces, MiningError)
        if not 0 < fill <= 1:
            raise MiningError(f"fill must be above 0 and at most 1, got {fill:g}")
        self._size, self._fill = validate_integer("size", size, 8), fill

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Settings, and a digest of all input images."""
        folders = [self._cutouts, *([self._surfaces] if self._surfaces else [])]
        return {
            "name": "composite",
            "version": 2,
            "size": self._size,
            "fill": self._fill,
            "pictures": images_digest(folders),  # the earlier name is part of digests
        }

    def check(self, items: Sequence[PlanItem]) -> None:
        """Raise an error if a category has no cut-outs with masks, or a nuisance has no surface."""
        for category in sorted({item.category for item in items}):
            for path in category_images(self._cutouts, category):
                read_cutout(path)
        for nuisance in sorted({item.nuisance for item in items}):
            if not self._surface_images(nuisance) and nuisance not in SURFACES:
                raise MiningError(
                    f"no surface for the nuisance {nuisance!r}; add a folder of images to the surfaces, or "
                    f"use a built-in nuisance: {', '.join(sorted(SURFACES))}"
                )

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """Return an image for each item."""
        return [self._composite(item) for item in items]

    def _composite(self, item: PlanItem) -> Image.Image:
        rng = np.random.Generator(np.random.Philox(item.seed))
        choices = category_images(self._cutouts, item.category)
        pixels, mask = self._placed(read_cutout(choices[rng.integers(len(choices))]), rng)
        surface = self._surface(item.nuisance, rng)
        if item.kind in ON_OBJECT:  # the object keeps its shading, and takes its colors from the surface
            light = pixels.mean(axis=2, keepdims=True)
            result = mask * surface * (0.4 + 0.6 * light) + (1 - mask) * _GRAY
        else:
            result = mask * pixels + (1 - mask) * surface
        return Image.fromarray((result.clip(0, 1) * 255).round().astype(np.uint8))

    def _placed(
        self, cutout: Image.Image, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return colors and mask, from 0 to 1, of the object at a random size and position."""
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
    """Return the images of a category, without masks; an error if there are none."""
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
    """Read an image with its mask as transparency: its alpha channel, or `NAME.mask.png` beside it."""
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


# Surfaces of the built-in nuisances, painted from a seed

Pixels = NDArray[np.float32]
"""Height × width × 3, from 0 to 1."""

Rng = np.random.Generator


def _clouds(size: int, rng: Rng, cell: int) -> Pixels:
    """Return smooth noise from 0 to 1, one channel, with features of about `cell` pixels."""
    side = max(2, size // cell + 2)
    field = rng.random((side, side)).astype(np.float32)
    smooth = Image.fromarray(field).resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(smooth, np.float32).clip(0, 1)


Color = tuple[float, float, float]


def _blend(field: Pixels, first: Color, second: Color) -> Pixels:
    weight = field[..., None]
    mixed = (1 - weight) * np.array(first, np.float32) + weight * np.array(second, np.float32)
    return np.asarray(mixed, np.float32)


def _two_colors(field: Pixels, rng: Rng) -> Pixels:
    first = rng.random(3)
    second = 1 - first + rng.uniform(-0.1, 0.1, 3)
    return _blend(field, tuple(first), tuple(second)).clip(0, 1)


def _rotated(size: int, rng: Rng) -> tuple[Pixels, Pixels]:
    """Return coordinates from 0 to 1, rotated by a random angle."""
    y, x = np.mgrid[:size, :size].astype(np.float32) / size
    angle = rng.uniform(0, np.pi)
    c, s = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    return c * x - s * y, s * x + c * y


def _sky(size: int, rng: Rng) -> Pixels:
    return _blend(_clouds(size, rng, max(2, size // 4)) ** 2, (0.35, 0.6, 0.9), (1, 1, 1))


def _sand(size: int, rng: Rng) -> Pixels:
    return _blend(_clouds(size, rng, 2), (0.76, 0.64, 0.42), (0.93, 0.84, 0.64))


def _snow(size: int, rng: Rng) -> Pixels:
    return _blend(_clouds(size, rng, max(2, size // 8)), (0.82, 0.87, 0.93), (1, 1, 1))


def _night(size: int, rng: Rng) -> Pixels:
    stars = (rng.random((size, size)) > 0.995).astype(np.float32)
    return np.maximum(
        _blend(_clouds(size, rng, size), (0.01, 0.01, 0.05), (0.08, 0.08, 0.2)), stars[..., None]
    )


def _striped(size: int, rng: Rng) -> Pixels:
    along, _ = _rotated(size, rng)
    return _two_colors((np.floor(along * rng.integers(6, 14)) % 2).astype(np.float32), rng)


def _checkered(size: int, rng: Rng) -> Pixels:
    along, across = _rotated(size, rng)
    count = rng.integers(5, 11)
    return _two_colors(((np.floor(along * count) + np.floor(across * count)) % 2).astype(np.float32), rng)


def _dotted(size: int, rng: Rng) -> Pixels:
    along, across = (axis * rng.integers(5, 10) % 1 - 0.5 for axis in _rotated(size, rng))
    return _two_colors((along**2 + across**2 < 0.09).astype(np.float32), rng)


def _blotchy(size: int, rng: Rng) -> Pixels:
    return _two_colors((_clouds(size, rng, max(2, size // 6)) > 0.5).astype(np.float32), rng)


def _wood(size: int, rng: Rng) -> Pixels:
    along, across = _rotated(size, rng)
    bend = _clouds(size, rng, max(2, size // 2))
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * (12 * along + 2 * bend + 0.3 * across))
    return _blend(rings.astype(np.float32), (0.42, 0.25, 0.12), (0.72, 0.5, 0.28))


def _metal(size: int, rng: Rng) -> Pixels:
    lines = np.repeat(rng.random((size, 1)).astype(np.float32), size, axis=1)
    shine = _clouds(size, rng, max(2, size // 2))
    return _blend((0.3 * lines + 0.7 * shine).astype(np.float32), (0.4, 0.42, 0.45), (0.95, 0.96, 0.98))


SURFACES: dict[str, Callable[[int, Rng], Pixels]] = {
    "sky": _sky,
    "sand": _sand,
    "snow": _snow,
    "night": _night,
    "striped": _striped,
    "checkered": _checkered,
    "dotted": _dotted,
    "blotchy": _blotchy,
    "wood": _wood,
    "metal": _metal,
}
