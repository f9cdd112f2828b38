"""Names of categories and nuisances: lists, spelling in prompts, and synonyms in answers."""

from __future__ import annotations

import csv
import io
from functools import cache
from importlib.resources import files
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_unique

KINDS = ("background", "texture", "material")

BUILT_IN: dict[str, tuple[str, ...]] = {
    "background": ("sky", "sand", "snow", "night"),
    "texture": ("striped", "checkered", "dotted", "blotchy"),
    "material": ("wood", "metal"),
}
"""Nuisances of each kind that `CompositeGenerator` paints without any files."""


def display_name(category: str) -> str:
    """Return a category as a prompt or a question names it.

    >>> display_name("t_shirt"), display_name("iron_for_clothes"), display_name("Cup/Mug")
    ('t shirt', 'iron (for clothes)', 'cup or mug')
    """
    if category in _imagenet_d():
        return _imagenet_d()[category][0]
    return category.replace("_", " ").replace("-", " ").replace("/", " or ").lower().strip()


def synonyms(category: str) -> tuple[str, ...]:
    """Return the other names of a category of ImageNet-D; none for any other category.

    >>> synonyms("cellphone"), synonyms("zeppelin")
    (('cell phone', 'mobile phone'), ())
    """
    return _imagenet_d()[category][1] if category in _imagenet_d() else ()


def prompt_name(name: str) -> str:
    """Return a name as a prompt spells it; lists of scenes end names with `-s` and join words.

    >>> prompt_name("phone_booth-s"), prompt_name("honeycombed")
    ('phone booth', 'honeycombed')
    """
    return name.strip().removesuffix("-s").replace("_", " ").replace("-", " ").strip()


def read_names(path: str | Path) -> tuple[str, ...]:
    """Read names from a text file with one per line, or from the column `name` of a CSV file.

    `imagenet-d` stands for the 113 categories of ImageNet-D.
    """
    if path == "imagenet-d":
        from beaufort.data.labels import label_maps

        return tuple(label_maps["imagenet-d"].classes)
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        names = _column(text, path) if path.suffix.lower() == ".csv" else text.splitlines()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise OptionError(f"cannot read names from {path} as a text file in UTF-8: {error}") from None
    if not (found := [name.strip() for name in names if name.strip()]):
        raise OptionError(f"{path} contains no names")
    return tuple(validate_unique(f"names in {path}", found))


def _column(text: str, path: Path) -> list[str]:
    rows = csv.DictReader(io.StringIO(text))
    if "name" not in (rows.fieldnames or ()):
        raise OptionError(f"{path} has no column name; its columns are {rows.fieldnames}")
    return [row["name"] or "" for row in rows]


@cache
def _imagenet_d() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Display name and synonyms of the categories for which they differ from the folder's name."""
    text = (files("beaufort.mining") / "data" / "names.txt").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {folder: (name, tuple(filter(None, others.split("|")))) for folder, name, others in rows}
