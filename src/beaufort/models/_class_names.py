"""What the classes of well-known label spaces are called."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from beaufort.registry import Registry

__all__ = ["class_names"]

_SPACES: Registry[str] = Registry("label space with names")
"""Label spaces whose names are a file of the package, one a line, in the order of the labels."""

_SPACES.register("imagenet-1k", "imagenet-1k.txt")


@cache
def class_names(label_space: str) -> tuple[str, ...]:
    """The name of every class, no two the same.

    >>> class_names("imagenet-1k")[:2]
    ('tench', 'goldfish')
    """
    file = files("beaufort.models") / "data" / _SPACES[label_space]
    return tuple(file.read_text(encoding="utf-8").splitlines())
