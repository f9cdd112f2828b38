"""What a category is called in a sentence, and what answers may call it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


def display_name(category: str) -> str:
    """A category as a prompt or a question names it.

    >>> display_name("t_shirt"), display_name("iron_for_clothes"), display_name("Cup/Mug")
    ('t shirt', 'iron (for clothes)', 'cup or mug')
    """
    if category in _known():
        return _known()[category][0]
    return category.replace("_", " ").replace("-", " ").replace("/", " or ").lower().strip()


def synonyms(category: str) -> tuple[str, ...]:
    """Other names that mean a category of ImageNet-D; none for a category that it does not have.

    >>> synonyms("cellphone"), synonyms("zeppelin")
    (('cell phone', 'mobile phone'), ())
    """
    return _known()[category][1] if category in _known() else ()


@cache
def _known() -> dict[str, tuple[str, tuple[str, ...]]]:
    text = (files("beaufort.mining") / "data" / "names.txt").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {folder: (name, tuple(filter(None, others.split("|")))) for folder, name, others in rows}
