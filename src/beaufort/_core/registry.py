"""Names to things: each name taken once, a miss answered with the nearest names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint
from typing import Generic, TypeVar

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.plugins import offered

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A read-only mapping that only `register` adds to.

    >>> colors = Registry[int]("color")
    >>> colors.register("red", 0)
    >>> colors["rad"]
    Traceback (most recent call last):
    beaufort.UnknownNameError: unknown color 'rad'; did you mean 'red'?
    """

    def __init__(self, kind: str, group: str = "") -> None:
        """Create an empty registry.

        Args:
            kind: what is registered, for error messages.
            group: entry-point group whose names count as registered; each is loaded when it is first used.
        """
        self._kind = kind
        self._group = group
        self._things: dict[str, T] = {}
        self._reserved: dict[str, tuple[str, str]] = {}

    def register(self, name: str, thing: T) -> None:
        """Register `thing` under `name`; a name can be taken once."""
        if name in self:
            raise OptionError(f"the {self._kind} {name!r} is already registered; use another name")
        if name in self._reserved:
            owner, _ = self._reserved[name]
            raise OptionError(f"the {self._kind} {name!r} would have the name of {owner}; use another name")
        self._things[name] = thing

    def reserve(self, names: Iterable[str], owner: str, use: str = "") -> None:
        """Let nothing be registered under names that stand for something else where they are written.

        Args:
            names: of the other things.
            owner: what they are, as "a shift".
            use: how they are used, for who asks for them here.
        """
        self._reserved.update(dict.fromkeys(names, (owner, use)))

    def miss(self, name: object, known: Mapping[str, object] | None = None, *, kind: str = "") -> str:
        """The message for a name that is not registered: what else it stands for, or near names.

        Args:
            name: what was asked for.
            known: the names that would do; those registered if not given.
            kind: what the message calls them.
        """
        kind = kind or self._kind
        # the order of registration tells a reader nothing
        known = dict.fromkeys(sorted(self)) if known is None else known
        for one in self._other_names(name):
            if one not in known:
                owner, use = self._reserved[one]
                what = "it" if one == name else repr(one)
                return f"unknown {kind} {name!r}: {what} is the name of {owner}{f'; {use}' if use else ''}"
        return unknown(kind, name, known)

    def _other_names(self, name: object) -> list[str]:
        """What a name may stand for that is reserved: itself, or itself in another case."""
        if not isinstance(name, str):
            return []
        if name in self._reserved:
            return [name]
        return [one for one in self._reserved if one.casefold() == name.casefold()]

    def __getitem__(self, name: str) -> T:
        if name not in self:
            raise UnknownNameError(self.miss(name))
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


_LISTED, _NEAR = 30, 3
"""Names that a message lists at most, all of them and near ones."""


def listed(names: Iterable[str]) -> str:
    """Names for a message, and how many others there are if they are many."""
    every = list(names)
    others = f" and {len(every) - _LISTED} others" if len(every) > _LISTED else ""
    return f"{', '.join(every[:_LISTED])}{others}"


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The names that are nearest to one, in whatever case; none if none is near.

    >>> near_names("MNIST", ["mnist-test", "cifar10-test", "Mnist"])
    ['Mnist', 'mnist-test']
    """
    folded: dict[str, list[str]] = {}
    for one in known:
        folded.setdefault(one.casefold(), []).append(one)
    near = get_close_matches(name.casefold(), folded, n=_NEAR, cutoff=0.6)
    return [one for key in near for one in folded[key]][:_NEAR]


def unknown(kind: str, name: object, known: Mapping[str, object]) -> str:
    """The message for a name that is not registered, with near names if there are any."""
    if near := near_names(str(name), known):
        return f"unknown {kind} {name!r}; did you mean {' or '.join(map(repr, near))}?"
    return f"unknown {kind} {name!r}; known are {listed(known)}"
