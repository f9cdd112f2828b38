"""Names of categories and nuisances: lists, spelling in prompts, and synonyms."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort._core.files import read_csv
from beaufort._core.validation import validate_unique

KINDS = ("background", "texture", "material")

BUILT_IN: dict[str, tuple[str, ...]] = {
    "background": ("sky", "sand", "snow", "night"),
    "texture": ("striped", "checkered", "dotted", "blotchy"),
    "material": ("wood", "metal"),
}
"""Nuisances of each kind that `CompositeGenerator` paints without any files."""


def display_name(category: str) -> str:
    """Return a category as spelled in prompts and questions.

    >>> display_name("t_shirt"), display_name("iron_for_clothes"), display_name("Cup/Mug")
    ('t shirt', 'iron (for clothes)', 'cup or mug')
    """
    if category in _imagenet_d():
        return _imagenet_d()[category][0]
    return category.replace("_", " ").replace("-", " ").replace("/", " or ").lower().strip()


def synonyms(category: str) -> tuple[str, ...]:
    """Return other names of a category of ImageNet-D, and nothing for other categories.

    >>> synonyms("cellphone"), synonyms("zeppelin")
    (('cell phone', 'mobile phone'), ())
    """
    return _imagenet_d()[category][1] if category in _imagenet_d() else ()


def prompt_name(name: str) -> str:
    """Return a name as spelled in prompts, without the underscores and suffixes `-s` of lists of scenes.

    >>> prompt_name("phone_booth-s"), prompt_name("honeycombed")
    ('phone booth', 'honeycombed')
    """
    return name.strip().removesuffix("-s").replace("_", " ").replace("-", " ").strip()


def read_names(path: str | Path) -> tuple[str, ...]:
    """Read names from a text file with one per line, or from the column `name` of a CSV file.

    `imagenet-d` returns the 113 categories of ImageNet-D.
    """
    if path == "imagenet-d":
        from beaufort.data.labels import label_maps

        return tuple(label_maps["imagenet-d"].classes)
    path = Path(path)
    if path.suffix.lower() == ".csv":
        names = [row["name"] for _, row in read_csv(path, ["name"])]
    else:
        try:
            names = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"cannot read names from {path} as a text file in UTF-8: {error}") from None
    names = [name.strip() for name in names if name.strip()]
    if not names:
        raise OptionError(f"{path} contains no names")
    return tuple(validate_unique(f"names in {path}", names))


@cache
def _imagenet_d() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Display name and synonyms of the categories for which they differ from the folder's name."""
    text = (files("beaufort.mining") / "data" / "names.txt").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {folder: (name, tuple(filter(None, others.split("|")))) for folder, name, others in rows}
