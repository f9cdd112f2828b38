"""One picture under every corruption at every severity: a contact sheet and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from beaufort._core.errors import AssetError, OptionError
from beaufort._core.files import remove_leftovers, write_bytes
from beaufort.corruptions import SEVERITIES, Corruption, corruptions, is_chain
from beaufort.data import Step
from beaufort.data.images import FORMATS, encode, flatten, read_image
from beaufort.data.writers import Failure, Outcome, Progress, corruption_names, prepare_image
from beaufort.report.gallery._exhibit import Exhibit, ExhibitRow
from beaufort.report.gallery._page import page
from beaufort.report.gallery._sheet import sheet
from beaufort.report.gallery.scene import paint_digit, paint_scene
from beaufort.suites import get_suite

_PHOTO, _DIGIT = 224, 28


def make_gallery(
    output: Path | str,
    image: Path | str | None = None,
    *,
    subset: str = "all",
    seed: int = 0,
    progress: Progress | None = None,
) -> Outcome:
    """Write `output/gallery.png` and `output/gallery.html`: every corruption of a subset at every severity.

    A gallery that is there already is replaced.

    Args:
        output: a folder; made if missing.
        image: the picture to corrupt; its middle is cut out as for ImageNet-C. Without, a painted
            landscape. The subsets of MNIST-C take it as a digit of 28×28, and paint one without.
        subset: `all`, `common`, `weather`, `mnist-c` and so on, or the name of one corruption.
        seed: any whole number.
        progress: called after each corruption.
    """
    if is_chain(subset):
        raise OptionError(
            f"a gallery shows single corruptions at every severity, got the chain {subset!r}, whose links "
            "have severities of their own; `beaufort corrupt` makes its pictures"
        )
    names = corruption_names([subset])
    digits = any(corruptions[name].relative_to == "mnist" for name in names)
    scale = "mnist" if digits else "imagenet"
    clean = _clean(image, digits)
    rows, failures = [], []
    for number, name in enumerate(names, 1):
        try:
            rows.append(_row(corruptions[name], clean, scale, seed))
        except AssetError as error:
            failures.append(Failure(name, str(error)))
        if progress:
            progress(number, len(names))
    exhibit = Exhibit(clean, tuple(rows), "painted" if image is None else Path(image).name, seed, subset)
    done = _write(Path(output), exhibit) if rows else 0
    return Outcome(done, failures=tuple(failures))


def _write(output: Path, exhibit: Exhibit) -> int:
    if output.exists() and not output.is_dir():
        raise OptionError(f"output must be a folder, got the file {output}")
    remove_leftovers(output)
    files = {"gallery.png": encode(sheet(exhibit), FORMATS["png"]), "gallery.html": page(exhibit).encode()}
    for name, content in files.items():
        try:
            write_bytes(output / name, content)
        except OSError as error:
            raise OptionError(f"{output / name} cannot be written ({error.strerror or error})") from None
    return len(files)


def _clean(image: Path | str | None, digits: bool) -> Image.Image:
    if image is None:
        return paint_digit(_DIGIT) if digits else paint_scene(_PHOTO)
    opened = flatten(read_image(Path(image)))
    if digits:
        return prepare_image(opened, [Step("resize", _DIGIT), Step("crop", _DIGIT)]).convert("L")
    return prepare_image(opened, get_suite("imagenet-c").prepare)


def _row(corruption: Corruption, clean: Image.Image, scale: str, seed: int) -> ExhibitRow:
    recipe = corruption.recipes[scale if scale in corruption.recipes else corruption.relative_to]
    scale = scale if scale in corruption.recipes else "relative"
    severities: Sequence[int] = SEVERITIES if len(recipe.levels) > 1 else (recipe.published,)
    return ExhibitRow(
        corruption.name,
        corruption.group,
        recipe.render.__doc__ or "",
        corruption.random,
        {s: corruption(clean, s, ids=["gallery"], seed=seed, scale=scale) for s in severities},
        {s: _constants(corruption.params(s, scale, min(clean.size))) for s in severities},
        recipe.published if scale == "mnist" else None,
        scale,
    )


def _constants(params: object) -> str:
    """Constants as text, `amount 1.5, decay 2`."""
    fields: dict[str, object] = getattr(params, "_asdict", dict)()
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in fields.items())
