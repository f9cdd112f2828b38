"""Names of classes in the free text of a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property


class NameMatcher:
    """Finds which classes a text names, by names and synonyms.

    Names match as whole words in any case, also in the plural; spaces, underscores and hyphens are
    equivalent. A longer name takes the words that it covers.

    >>> NameMatcher([["pen"], ["can opener", "tin opener"]]).named("It is a can-opener.")
    (1,)

    Args:
        names: names of each class.
    """

    def __init__(self, names: Sequence[Sequence[str]]) -> None:
        self._classes: dict[str, list[int]] = {}
        for place, some in enumerate(names):
            for name in some:
                known = self._classes.setdefault(_plain(name), [])
                if place not in known:
                    known.append(place)

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """Names, the longest first, with their patterns."""
        names = sorted(filter(None, self._classes), key=lambda name: -len(name))
        return [(name, re.compile(rf"(?<!\w){re.escape(name)}(?:e?s)?(?!\w)")) for name in names]

    def named(self, text: str) -> tuple[int, ...]:
        """Return the classes that a text names, in their order."""
        text = _plain(text)
        if exact := self._classes.get(text.strip(" .!\"'`*")):
            return tuple(exact)
        found: set[int] = set()
        for name, pattern in self._patterns:
            if name in text and pattern.search(text):
                found.update(self._classes[name])
                text = pattern.sub(" \0 ", text)  # a word that no name contains
        return tuple(sorted(found))


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text.casefold()).strip()
