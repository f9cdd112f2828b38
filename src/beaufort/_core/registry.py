"""Registries of named things, with error messages that suggest similar names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint
from typing import Generic, TypeVar

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.plugins import offered

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping of names to things; only `register` adds to it.

    >>> colors = Registry[int]("color")
    >>> colors.register("red", 0)
    >>> colors["rad"]
    Traceback (most recent call last):
    beaufort.UnknownNameError: unknown color 'rad'; did you mean 'red'?
    """

    def __init__(self, kind: str, group: str = "") -> None:
        """Create an empty registry.

        Args:
            kind: the kind of thing, for error messages.
            group: entry-point group whose names count as registered; each entry is loaded on first use.
        """
        self._kind = kind
        self._group = group
        self._things: dict[str, T] = {}
        self._reserved: dict[str, tuple[str, str]] = {}

    def register(self, name: str, thing: T) -> None:
        """Register `thing` under a name that is still free."""
        if name in self:
            raise OptionError(f"the {self._kind} {name!r} is already registered; use another name")
        if name in self._reserved:
            raise OptionError(f"{name!r} is already the name of {self._reserved[name][0]}; use another name")
        self._things[name] = thing

    def reserve(self, names: Iterable[str], owner: str, hint: str = "") -> None:
        """Reserve names that have another meaning in the same place, so that they stay free.

        Args:
            names: the reserved names.
            owner: the kind of thing that has these names, such as "a shift".
            hint: how to use such a thing, for the error message.
        """
        self._reserved.update(dict.fromkeys(names, (owner, hint)))

    def unknown_message(self, name: object, known: Iterable[str] | None = None, *, kind: str = "") -> str:
        """Return the error message for a name that is not registered.

        Args:
            name: the unknown name.
            known: the valid names; the registered ones by default.
            kind: the kind of thing; that of the registry by default.
        """
        kind = kind or self._kind
        known = sorted(self) if known is None else list(known)
        for one, (owner, hint) in self._reserved.items():
            if one.casefold() == str(name).casefold() and one not in known:
                what = "it" if one == name else repr(one)
                return (
                    f"unknown {kind} {name!r:.80}: {what} is the name of {owner}{f'; {hint}' if hint else ''}"
                )
        return unknown_message(kind, name, known)

    def __getitem__(self, name: str) -> T:
        if name not in self:
            raise UnknownNameError(self.unknown_message(name))
        if name not in self._things:
            self._things[name] = self._offered[name].load()
        return self._things[name]

    @property
    def _offered(self) -> dict[str, EntryPoint]:
        return offered(self._group) if self._group else {}

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._things or name in self._offered)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._things, **self._offered})

    def __len__(self) -> int:
        return len({**self._things, **self._offered})


_MAX_LISTED, _MAX_SUGGESTED = 30, 3


def listed(names: Iterable[str]) -> str:
    """Return names separated by commas; of a long list the first ones and the number of the others."""
    every = list(names)
    others = f" and {len(every) - _MAX_LISTED} others" if len(every) > _MAX_LISTED else ""
    return f"{', '.join(every[:_MAX_LISTED])}{others}"


def similar_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the names most similar to `name`, ignoring case.

    >>> similar_names("MNIST", ["mnist-test", "cifar10-test", "Mnist"])
    ['Mnist', 'mnist-test']
    """
    folded: dict[str, list[str]] = {}
    for one in known:
        folded.setdefault(one.casefold(), []).append(one)
    similar = get_close_matches(name.casefold(), folded, n=_MAX_SUGGESTED, cutoff=0.6)
    return [one for key in similar for one in folded[key]][:_MAX_SUGGESTED]


def unknown_message(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the error message for an unknown name: similar names, or the list of valid ones."""
    known = list(known)
    if similar := similar_names(str(name), known):
        return f"unknown {kind} {name!r:.80}; did you mean {' or '.join(map(repr, similar))}?"
    return f"unknown {kind} {name!r:.80}; available: {listed(known)}"
