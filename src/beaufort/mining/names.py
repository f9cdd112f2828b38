"""Names of categories and nuisances: lists, spelling in prompts, and synonyms."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort._core.files import read_csv
from beaufort._core.validation import validate_unique

KINDS = ("background", "texture", "material")
"""Kinds of nuisances of ImageNet-D. Plans may contain other kinds, such as `weather`."""

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

    >>> prompt_name("phone_booth-s"), prompt_name("honeycombed"), prompt_name("dress_shoe_men")
    ('phone booth', 'honeycombed', "men's dress shoe")
    """
    if name in _imagenet_d():
        return _imagenet_d()[name][2]
    return name.strip().removesuffix("-s").replace("_", " ").replace("-", " ").strip()


_PLURALS = frozenset(
    {"binoculars", "clippers", "earphones", "glasses", "goggles", "headphones", "jeans", "leggings"}
    | {"overalls", "pajamas", "pants", "pliers", "scissors", "shorts", "sunglasses", "tights", "trousers"}
    | {"trunks", "tweezers", "broccoli", "bread", "cheese", "pasta", "rice", "soap"}
)
"""Last words of plural and mass nouns, which have no article; other names are singular."""

_SPOKEN_CONSONANT = re.compile(
    r"(eu|ewe|one\b|once|u[bfks][aeiou]|uni(?!n|m)|utensil|utility|usb)", re.IGNORECASE
)
_SPOKEN_VOWEL = re.compile(r"([aeiou]|heir|honest|honou?r|hour|x[ -]?ray|mp3|led\b|lcd\b)", re.IGNORECASE)
_FIELD = re.compile(r"(?:\b([Aa])n? )?\{(category|nuisance)\}")


def fill_template(template: str, category: str, nuisance: str) -> str:
    """Return a prompt, with the article that fits the word that follows it.

    >>> fill_template("A photo of a {category} made of {nuisance}", "alarm_clock", "wood")
    'A photo of an alarm clock made of wood'
    >>> fill_template("A photo of a {category}, {nuisance} in the background", "jeans", "snow")
    'A photo of jeans, snow in the background'
    """
    names = {"category": prompt_name(category), "nuisance": prompt_name(nuisance)}

    def filled(match: re.Match[str]) -> str:
        article, field = match[1], match[2]
        name = names[field]
        if not article or (field == "category" and name.split()[-1:] and name.split()[-1] in _PLURALS):
            return name
        vowel = _SPOKEN_VOWEL.match(name) and not _SPOKEN_CONSONANT.match(name)
        return f"{article}{'n' if vowel else ''} {name}"

    return _FIELD.sub(filled, template)


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
def _imagenet_d() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Return the display name, synonyms and prompt name of categories where they differ from the folder."""
    text = (files("beaufort.mining") / "data" / "names.txt").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {
        folder: (name, tuple(filter(None, others.split("|"))), prompt[0] if prompt else name)
        for folder, name, others, *prompt in rows
    }
