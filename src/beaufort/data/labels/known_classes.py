"""Well-known class lists, and a normal form of class names."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib.resources import files

from beaufort._core.registry import Registry

IMAGENET = "imagenet-1k"

class_lists: Registry[tuple[str, ...]] = Registry("label space with names")
"""Class names of label spaces in the order of their labels; those of ImageNet are loaded on access."""


def data_file(name: str) -> str:
    """Return the text of a file of this package."""
    return (files("beaufort.data.labels") / "data" / name).read_text(encoding="utf-8")


def data_rows(name: str) -> list[list[str]]:
    """Return the lines of a file of this package, split at tabs, without comments."""
    return [line.split("\t") for line in data_file(name).splitlines() if not line.startswith("#")]


for _space, _names in data_rows("class_names.txt"):
    class_lists.register(_space, tuple(_names.split(" ")))
class_lists.register(IMAGENET, ())

_WNID = re.compile(r"n\d{8}")
_SHARED = {"n02012849": "crane", "n03126707": "crane", "n02113186": "Cardigan", "n02963159": "cardigan"}
"""Common names of classes that have a longer, unique name in the file."""
_SHARED |= {"n03710721": "maillot"}


_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGITS = {word: str(digit) for digit, word in enumerate(_WORDS)}


@cache
def _imagenet() -> tuple[tuple[str, str], ...]:
    pairs = (line.partition(" ") for line in data_file(f"{IMAGENET}.txt").splitlines())
    return tuple((wnid, name) for wnid, _, name in pairs)


def class_names(label_space: str) -> tuple[str, ...]:
    """Return the unique names of all classes.

    >>> class_names("imagenet-1k")[:2]
    ('tench', 'goldfish')
    """
    return class_lists[label_space] or tuple(name for _, name in _imagenet())


def class_ids(label_space: str) -> tuple[str, ...]:
    """Return WordNet ids of classes for ImageNet, and names for other lists.

    >>> class_ids("imagenet-1k")[0]
    'n01440764'
    """
    return class_lists[label_space] or tuple(wnid for wnid, _ in _imagenet())


@cache
def devkit_ids() -> tuple[str, ...]:
    """Return the WordNet ids of ImageNet's classes in the order of the development kit of ILSVRC2012.

    >>> devkit_ids()[490 - 1]  # numbers start from 1; the first validation image is 490, a sea snake
    'n01751748'
    """
    return tuple(data_file(f"{IMAGENET}-devkit.txt").split())


@cache
def _by_name() -> dict[str, str]:
    """Return WordNet ids by plain name, for unique names, and digits by their words."""
    named = [(wnid, _plain(name)) for wnid, name in _imagenet()]
    named += [(wnid, _plain(name)) for wnid, name in _SHARED.items()]
    counts = Counter(name for _, name in named)
    return {name: wnid for wnid, name in named if counts[name] == 1} | _DIGITS


def class_key(name: str) -> str:
    """Return a normal form of a class name: a WordNet id for classes of ImageNet, or a plain name.

    Case, underscores, hyphens and spaces are ignored; of synonyms separated by commas, the first is used.
    Digits may be words.

    >>> class_key("Great_white_shark"), class_key("tench, Tinca tinca"), class_key("My  Class")
    ('n01484850', 'n01440764', 'my class')
    >>> class_key("Seven")
    '7'
    """
    plain = _plain(name)
    if _WNID.fullmatch(plain):
        return plain
    known = _by_name()
    return known.get(plain) or known.get(_plain(name.partition(",")[0])) or plain


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()
