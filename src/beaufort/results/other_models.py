"""Models of a store that were not selected, and the folders in which a suite's cells are found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple

from beaufort.store import Cell, Listing, Store, folder_name
from beaufort.suites.conditions import Condition


class ListedStore(NamedTuple):
    """A store, with a listing of its files at one moment."""

    store: Store
    listing: Listing


Row = Mapping[Condition, Cell]
"""Cells of one model by condition."""


class OtherModels(Mapping[str, Row]):
    """Models that may be a baseline: one name is looked up in its folder, and only a loop reads the store.

    Args:
        selected: the names of the other models, which are left out.
        store: their store; files that `read` finds are added to its listing.
        read: function that returns the complete models of a name, or all of them for None.
    """

    def __init__(
        self, selected: Iterable[str], store: ListedStore, read: Callable[[str | None], Mapping[str, Row]]
    ) -> None:
        self._selected = frozenset(selected)
        self.store = store
        self._read = cache(read)

    def without(self, selected: Iterable[str]) -> OtherModels:
        """Return these models except more selected ones."""
        return OtherModels(self._selected.union(selected), self.store, self._read)

    @cached_property
    def _all(self) -> dict[str, Row]:
        rows = self._read(None)
        return {name: rows[name] for name in sorted(rows) if name not in self._selected}

    def __getitem__(self, name: str) -> Row:
        if name in self._selected:
            raise KeyError(name)
        return self._all[name] if "_all" in self.__dict__ else self._read(name)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def names_in_folders(models: Iterable[str]) -> set[str]:
    """Return the names whose folders have some models, one of which may be `name#digest`.

    >>> sorted(names_in_folders(["net", "other#1234abcd"]))
    ['net', 'other', 'other#1234abcd']
    """
    return {part for name in models for part in (name, name.rpartition("#")[0] or name)}


class ConditionFolders:
    """Selects the folders of some conditions among those of a model, whatever the dataset is called.

    >>> chosen = ConditionFolders([Condition("x"), Condition("x", "fog", 3)])
    >>> sorted(chosen(["digits", "digits_fog@3", "digits_fog@4", "other", "other_snow@3"]))
    ['digits', 'digits_fog@3']
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        conditions = list(conditions)
        self._clean = any(one.clean for one in conditions)
        self._ends = tuple({folder_name(f"/{one.done}") for one in conditions if not one.clean})
        self._any_strength = tuple(
            {
                folder_name(f"/{one.corruption}")
                for one in conditions
                if one.corruption and one.severity is None and one.level is None
            }
        )
        self._dataset = cache(self._dataset_of)

    @property
    def useful(self) -> bool:
        """Whether the conditions are known by their folders: those of clean images are not."""
        return bool(self._ends)

    def __call__(self, names: Sequence[str]) -> Collection[str]:
        datasets = {name: dataset for name in names if (dataset := self._dataset(name)) is not None}
        if not self._clean:
            return datasets.keys()
        if not datasets:  # a model may have clean images only
            return {name for name in names if "@" not in name}
        return datasets.keys() | (set(datasets.values()) & set(names))

    def _dataset_of(self, name: str) -> str | None:
        """Return the part of a folder's name before one of the conditions; None if it has another one."""
        for text, ends in ((name, self._ends), (name.rpartition("@")[0], self._any_strength)):
            if text.endswith(ends):
                return text[: -max(len(end) for end in ends if text.endswith(end))]
        return None
