"""Pictures of categories in folders, with their masks."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from PIL import Image

from beaufort.data.images import is_image_name, read_image
from beaufort.mining.plan import MiningError


def pictures_in(folder: Path) -> list[Path]:
    """The pictures of a folder, in order."""
    return sorted(path for path in folder.glob("*") if is_image_name(path.name) and path.is_file())


def category_pictures(folder: Path, category: str) -> list[Path]:
    """The pictures of a category, without masks; an error if there are none."""
    found = [path for path in pictures_in(folder / category) if not path.stem.endswith(".mask")]
    if not found:
        raise MiningError(
            f"every category must have a folder of cut-outs, got none for {category!r} in {folder}"
        )
    return found


def images_digest(folders: Sequence[Path]) -> str:
    """A digest of all pictures below some folders."""
    digest = sha256()
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if is_image_name(path.name)):
            content = sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def read_cutout(path: Path) -> Image.Image:
    """A picture with its mask as transparency: its own, or that of `NAME.mask.png` beside it."""
    picture = read_image(path)
    beside = path.with_name(f"{path.stem}.mask.png")
    if beside.is_file():
        mask = read_image(beside).convert("L")
        if mask.size != picture.size:
            raise MiningError(
                f"a mask must be as large as its picture, {picture.size}, got {mask.size}: {beside}"
            )
        picture = picture.convert("RGB")
        picture.putalpha(mask)
    picture = picture.convert("RGBA")
    low, high = picture.getchannel("A").getextrema()
    if high == 0:
        raise MiningError(f"a mask must show something, got an empty one for {path}")
    if low == 255:
        raise MiningError(
            f"a cut-out must have a mask, a transparent ground or {beside.name} beside it, got none for "
            f"{path}"
        )
    return picture
