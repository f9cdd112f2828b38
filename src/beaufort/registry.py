"""Names to things: each name taken once, a miss answered with the nearest names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Generic, TypeVar

from beaufort.errors import OptionError, UnknownNameError

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A read-only mapping that only `register` adds to.

    >>> colors = Registry[int]("color")
    >>> colors.register("red", 0)
    >>> colors["rad"]
    Traceback (most recent call last):
    beaufort.errors.UnknownNameError: 'rad' is not a color; did you mean 'red'?
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._things: dict[str, T] = {}

    def register(self, name: str, thing: T) -> None:
        """Take `name` for `thing`; a name that is taken is an error."""
        if name in self._things:
            raise OptionError(f"the {self._kind} {name!r} is registered already; pick another name")
        self._things[name] = thing

    def __getitem__(self, name: str) -> T:
        try:
            return self._things[name]
        except (KeyError, TypeError):
            raise UnknownNameError(unknown(self._kind, name, self._things)) from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)


def unknown(kind: str, name: object, known: Mapping[str, object]) -> str:
    """The sentence that answers a wrong name."""
    near = get_close_matches(str(name), known, n=3, cutoff=0.6)
    article = "an" if kind[0] in "aeiou" else "a"
    if near:
        return f"{name!r} is not {article} {kind}; did you mean {' or '.join(map(repr, near))}?"
    return f"{name!r} is not {article} {kind}; known are {', '.join(known)}"
