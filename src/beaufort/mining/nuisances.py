"""What an object is put into or made of: backgrounds, textures, materials."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from beaufort._core.errors import OptionError

KINDS = ("background", "texture", "material")

BUILT_IN: dict[str, tuple[str, ...]] = {
    "background": ("sky", "sand", "snow", "night"),
    "texture": ("striped", "checkered", "dotted", "blotchy"),
    "material": ("wood", "metal"),
}
"""A short list of ours, which `composite` can paint without any files."""


def clean_name(name: str) -> str:
    """A name as a prompt says it; lists of scenes mark them with `-s` and join words.

    >>> clean_name("phone_booth-s"), clean_name("honeycombed")
    ('phone booth', 'honeycombed')
    """
    return name.strip().removesuffix("-s").replace("_", " ").replace("-", " ").strip()


def read_names(path: Path) -> tuple[str, ...]:
    """Names from a text file with one on each line, or from the column `name` of a CSV file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        names = _column(text, path) if path.suffix.lower() == ".csv" else text.splitlines()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise OptionError(f"a list of names must be a text file in UTF-8, got {path}: {error}") from None
    found = [name.strip() for name in names if name.strip()]
    if not found:
        raise OptionError(f"a list of names must have at least one, got none in {path}")
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise OptionError(f"a name must be listed once, got {twice!r} again in {path}")
    return tuple(found)


def _column(text: str, path: Path) -> list[str]:
    rows = csv.DictReader(io.StringIO(text))
    if "name" not in (rows.fieldnames or ()):
        raise OptionError(f"a list of names must have the column name, got {rows.fieldnames} in {path}")
    return [row["name"] or "" for row in rows]
