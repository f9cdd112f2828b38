"""The gallery: an image under every corruption and severity, as a contact sheet and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from beaufort._core.errors import AssetError, OptionError
from beaufort._core.files import remove_leftovers, write_bytes
from beaufort._core.pages import render
from beaufort._core.text import comma_list, counted
from beaufort.corruptions import SEVERITIES, Corruption, corruptions, is_chain
from beaufort.data import Step
from beaufort.data.images import FORMATS, encode, flatten, read_image
from beaufort.data.writers import Failure, Outcome, Progress, corruption_names, prepare_image
from beaufort.report.painted_scene import paint_digit, paint_scene
from beaufort.report.thumbnails import image_uri
from beaufort.report.wording import words
from beaufort.suites import get_suite

_PHOTO, _DIGIT = 224, 28
_QUALITY = 88


@dataclass(frozen=True)
class GalleryRow:
    """A corruption with its images."""

    name: str
    group: str
    description: str
    random: bool
    images: Mapping[int, Image.Image]
    """By severity; a single image if the corruption has one severity."""
    constants: Mapping[int, str]
    published: int | None
    """The published severity, if the corruption has several."""
    scale: str
    """`relative` if the corruption has no constants for the size of the image."""


@dataclass(frozen=True)
class Gallery:
    """A clean image and its corrupted versions."""

    clean: Image.Image
    rows: tuple[GalleryRow, ...]
    origin: str
    """File name of the image, or `painted`."""
    seed: int

    @property
    def scales(self) -> str:
        """Return which constants are used: `scale imagenet`, `scales imagenet and relative`."""
        names = sorted({row.scale for row in self.rows})
        return f"scale{'s' * (len(names) > 1)} {' and '.join(names)}"

    @property
    def pixelated(self) -> bool:
        """Whether the image is so small that its pixels are enlarged."""
        return max(self.clean.size) < 100

    @property
    def groups(self) -> dict[str, list[GalleryRow]]:
        """Rows by group, in the order of their first appearance."""
        found: dict[str, list[GalleryRow]] = {}
        for row in self.rows:
            found.setdefault(row.group, []).append(row)
        return found


def make_gallery(
    output: Path | str,
    image: Path | str | None = None,
    *,
    subset: str = "all",
    seed: int = 0,
    progress: Progress | None = None,
) -> Outcome:
    """Write `output/gallery.png` and `output/gallery.html`: every corruption of a subset at every severity.

    An existing gallery is replaced.

    Args:
        output: a folder; created if missing.
        image: the image to corrupt; its center is cropped as for ImageNet-C. Without, a painted
            landscape. The subsets of MNIST-C take it as a digit of 28×28, and paint one without.
        subset: `all`, `common`, `weather`, `mnist-c` and so on, or names of corruptions, separated by commas.
        seed: any integer.
        progress: called after each corruption.
    """
    if chains := [name for name in comma_list(subset) if is_chain(name)]:
        raise OptionError(
            f"a gallery shows single corruptions at every severity, not the chain {chains[0]!r}; `beaufort "
            "corrupt` makes its images"
        )
    names = corruption_names(comma_list(subset))
    digits = any(corruptions[name].relative_to == "mnist" for name in names)
    scale = "mnist" if digits else "imagenet"
    clean = _clean(image, digits)
    rows, failures = [], []
    for number, name in enumerate(names, 1):
        try:
            rows.append(_corrupted(corruptions[name], clean, scale, seed))
        except AssetError as error:
            failures.append(Failure(name, str(error)))
        if progress:
            progress(number, len(names))
    gallery = Gallery(clean, tuple(rows), "painted" if image is None else Path(image).name, seed)
    done = _write(Path(output), gallery) if rows else 0
    return Outcome(done, failures=tuple(failures))


def _clean(image: Path | str | None, digits: bool) -> Image.Image:
    if image is None:
        return paint_digit(_DIGIT) if digits else paint_scene(_PHOTO)
    opened = flatten(read_image(Path(image)))
    if digits:
        return prepare_image(opened, [Step("resize", _DIGIT), Step("crop", _DIGIT)]).convert("L")
    return prepare_image(opened, get_suite("imagenet-c").prepare)


def _corrupted(corruption: Corruption, clean: Image.Image, scale: str, seed: int) -> GalleryRow:
    recipe = corruption.recipes[scale if scale in corruption.recipes else corruption.relative_to]
    scale = scale if scale in corruption.recipes else "relative"
    several = len(recipe.levels) > 1
    severities: Sequence[int] = SEVERITIES if several else (recipe.published,)
    return GalleryRow(
        corruption.name,
        corruption.group,
        recipe.render.__doc__ or "",
        corruption.random,
        {s: corruption(clean, s, ids=["gallery"], seed=seed, scale=scale) for s in severities},
        {s: _constants(corruption.params(s, scale, min(clean.size))) for s in severities},
        recipe.published if scale == "mnist" and several else None,
        scale,
    )


def _constants(params: object) -> str:
    """Return constants as text, such as `amount 1.5, decay 2`."""
    fields: dict[str, object] = getattr(params, "_asdict", dict)()
    return ", ".join(f"{words(name)} {value}" for name, value in fields.items())


def _write(output: Path, gallery: Gallery) -> int:
    if output.exists() and not output.is_dir():
        raise OptionError(f"output must be a folder, got the file {output}")
    remove_leftovers(output)
    files = {"gallery.png": encode(_sheet(gallery), FORMATS["png"]), "gallery.html": _page(gallery).encode()}
    for name, content in files.items():
        try:
            write_bytes(output / name, content)
        except OSError as error:
            raise OptionError(f"cannot write {output / name}: {error.strerror or error}") from None
    return len(files)


def _page(gallery: Gallery) -> str:
    """Return the gallery as a self-contained HTML file."""
    image = "a painted image" if gallery.origin == "painted" else gallery.origin
    marked = (
        " The severity that was published is marked." if any(row.published for row in gallery.rows) else ""
    )
    return render(
        "report/gallery.html",
        styles=["report/gallery.css"],
        title="Beaufort: the corruptions",
        eyebrow="gallery",
        pixelated=gallery.pixelated,
        about=f"{counted(len(gallery.rows), 'corruption')} of {image}; constants of the {gallery.scales}, "
        f"seed {gallery.seed}.{marked}",
        navigation={row.name: words(row.name) for row in gallery.rows},
        groups={
            group: [_page_row(row, gallery.clean) for row in rows] for group, rows in gallery.groups.items()
        },
    )


def _page_row(row: GalleryRow, clean: Image.Image) -> dict[str, Any]:
    """Return the values of one corruption for the template."""
    name = words(row.name)
    summary, _, details = row.description.partition("\n")
    figures = [_figure(clean, "clean", f"the clean image, before {name}")]
    for severity, image in row.images.items():
        caption = f"severity {severity}" if len(row.images) > 1 else "one strength"
        figures.append(_figure(image, caption, f"{name}, {caption}", marked=severity == row.published))
    return {
        "name": row.name,
        "title": name,
        "kind": "random" if row.random else "not random",
        "summary": summary,
        "details": " ".join(details.split()),
        "figures": figures,
        "constants": {severity: text for severity, text in row.constants.items() if text},
    }


def _figure(image: Image.Image, caption: str, alt: str, *, marked: bool = False) -> dict[str, Any]:
    address = image_uri(image, "png" if image.mode == "L" else "jpeg", _QUALITY)
    shown = {"address": address, "width": image.width, "height": image.height}
    return {**shown, "caption": caption, "alt": alt, "marked": marked}


_TILE, _GAP, _MARGIN = 168, 6, 20
_NAMES, _HEAD = 190, 84
_PAPER, _INK, _FAINT, _ACCENT = (250, 250, 248), (28, 32, 38), (112, 118, 126), (214, 92, 34)


def _sheet(gallery: Gallery) -> Image.Image:
    """Return the contact sheet, RGB: a row per corruption, a column per severity."""
    columns = 1 + len(SEVERITIES)
    width = 2 * _MARGIN + _NAMES + columns * (_TILE + _GAP) - _GAP
    height = 2 * _MARGIN + _HEAD + len(gallery.rows) * (_TILE + _GAP) - _GAP
    canvas = Image.new("RGB", (width, height), _PAPER)
    _sheet_head(ImageDraw.Draw(canvas), gallery)
    for number, row in enumerate(row for rows in gallery.groups.values() for row in rows):
        _sheet_row(canvas, _MARGIN + _HEAD + number * (_TILE + _GAP), row, gallery)
    return canvas


def _sheet_head(draw: ImageDraw.ImageDraw, gallery: Gallery) -> None:
    draw.text((_MARGIN, _MARGIN - 4), "Beaufort", font=ImageFont.load_default(28), fill=_INK)
    about = f"{counted(len(gallery.rows), 'corruption')}, {gallery.scales}, seed {gallery.seed}"
    if any(row.published for row in gallery.rows):
        about += "; framed: the severity that was published"
    draw.text((_MARGIN, _MARGIN + 32), about, font=ImageFont.load_default(14), fill=_FAINT)
    font = ImageFont.load_default(15)
    for column, label in enumerate(("clean", *(f"severity {s}" for s in SEVERITIES))):
        middle = _left(column) + _TILE / 2
        draw.text((middle, _MARGIN + _HEAD - 10), label, font=font, fill=_INK, anchor="ms")


def _sheet_row(canvas: Image.Image, top: int, row: GalleryRow, gallery: Gallery) -> None:
    draw = ImageDraw.Draw(canvas)
    middle = top + _TILE / 2
    name, note = words(row.name), row.group if len(row.images) > 1 else f"{row.group}, one strength"
    draw.text((_MARGIN, middle - 4), name, font=ImageFont.load_default(18), fill=_INK, anchor="ls")
    draw.text((_MARGIN, middle + 18), note, font=ImageFont.load_default(13), fill=_FAINT, anchor="ls")
    how = Image.Resampling.NEAREST if gallery.pixelated else Image.Resampling.LANCZOS
    for column, image in {0: gallery.clean, **row.images}.items():
        left = _left(column)
        canvas.paste(image.convert("RGB").resize((_TILE, _TILE), how), (left, top))
        if column == row.published:
            draw.rectangle((left - 2, top - 2, left + _TILE + 1, top + _TILE + 1), outline=_ACCENT, width=2)


def _left(column: int) -> int:
    return _MARGIN + _NAMES + column * (_TILE + _GAP)
