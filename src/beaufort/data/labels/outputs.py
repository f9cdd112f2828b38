"""What the two sides know: a data set of its classes, a model of its outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.data.labels.known_classes import (
    IMAGENET,
    class_ids,
    class_key,
    class_lists,
    class_names,
)

_PLACEHOLDER = re.compile(r"(label|class|output)?[ _-]*\d+", re.IGNORECASE)


@dataclass(frozen=True)
class DatasetLabels:
    """What a data set knows of its classes."""

    name: str
    classes: tuple[str, ...]
    used: NDArray[np.int64]
    """The labels that occur, each once."""
    by_name: bool = False
    """Whether labels are indices into the sorted class names, rather than numbers given by the source."""

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The classes as numbers, if all are called by one."""
        whole = all(name.isascii() and name.isdecimal() and len(name) < 10 for name in self.classes)
        return tuple(map(int, self.classes)) if whole else None

    def named(self, label: int) -> bool:
        """Whether a class has a name that says more than its number."""
        return self.classes[label] != str(label)


@dataclass(frozen=True)
class ModelOutputs:
    """What a model knows of its outputs."""

    model: str
    count: int | None
    names: tuple[str, ...] | None = None
    label_space: str | None = None
    """One of `class_lists`, maybe."""
    suite_space: str | None = None
    """The classes that a suite is about: what the outputs may be where the model says nothing."""

    @property
    def known(self) -> str:
        """What to call the list of outputs."""
        return self.label_space or f"the outputs of {self.model}"

    def sure_names(self) -> list[set[str]] | None:
        """The name of each output, where the model states them; None otherwise."""
        space = IMAGENET if self.names == class_names(IMAGENET) else self.label_space
        ids = class_ids(space) if space is not None and space in class_lists else None
        if ids is not None and len(ids) != self.count:
            ids = None
        if self.names is None or all(_PLACEHOLDER.fullmatch(name) for name in self.names):
            if ids is None and self.names is not None and self.numbered:
                return [{name} for name in self.names]
            return None if ids is None else [{class_key(one)} for one in ids]
        found = [{class_key(name)} for name in self.names]
        known = frozenset(class_ids(IMAGENET))
        for place, one in enumerate(ids or ()):
            if not found[place] & known:  # a name that ImageNet's list does not have, or has twice
                found[place].add(class_key(one))
        return found

    @property
    def numbered(self) -> bool:
        """Whether outputs are called by numbers, as digits are."""
        return self.names is not None and all(name.isdecimal() for name in self.names)

    def possible_names(self, used: Iterable[str]) -> list[set[str]] | None:
        """What outputs are called if that fits all of some classes: the suite's space, or ImageNet."""
        wanted = {class_key(name) for name in used}
        return next((names for names in self._lists().values() if wanted <= set().union(*names)), None)

    def likely_names(self, used: Iterable[str]) -> tuple[str, list[set[str]]] | None:
        """The same if it fits half of them, with the name of the list: the others may be misspelled."""
        wanted = {class_key(name) for name in used}
        for space, names in self._lists().items():
            if 2 * len(wanted & set().union(*names)) >= len(wanted):
                return space, names
        return None

    def _lists(self) -> dict[str, list[set[str]]]:
        """Lists of as many classes as there are outputs, that of the suite first."""
        spaces = [
            space for space in (self.suite_space, IMAGENET) if space is not None and space in class_lists
        ]
        return {
            space: [{class_key(one)} for one in class_ids(space)]
            for space in spaces
            if len(class_ids(space)) == self.count
        }
