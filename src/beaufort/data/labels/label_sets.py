"""Sets of valid labels for each image; images with an empty set are not scored."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.files import read_json
from beaufort.data.labels.space import LabelError, LabelSpace

NO_LABEL = -1
"""Padding of sets with fewer labels than the largest."""

_VALIDATION = re.compile(r"ILSVRC2012_val_(\d{8})")
_ROW = re.compile(r"[^/]+/(\d+)")
_FORM = "a JSON list of label lists, such as ReaL's real.json, or an object of label lists by image id"


@dataclass(frozen=True)
class LabelSets:
    """A set of labels for each image, as indices of outputs.

    >>> sets = LabelSets("two", {"a.png": (0, 2), "b.png": ()})
    >>> sets.labels(["b.png", "a.png"], LabelSpace()).tolist()
    [[-1, -1], [0, 2]]
    """

    name: str
    sets: Mapping[str, tuple[int, ...]] | tuple[tuple[int, ...], ...]
    """By image id; or in the order of ImageNet's validation images, whose names contain their number."""
    of_classes: bool = False
    """Whether labels are classes of the dataset instead of indices of outputs."""

    def of(self, image: str) -> tuple[int, ...]:
        """Return the set of an image."""
        if isinstance(self.sets, Mapping):
            found = self.sets.get(image)
        else:
            named, row = _VALIDATION.search(image), _ROW.fullmatch(image)
            place = int(named[1]) - 1 if named else int(row[1]) if row else -1
            found = self.sets[place] if 0 <= place < len(self.sets) else None
        if found is None:
            raise LabelError(f"{self.name} has no label set for {image!r}")
        return found

    def labels(self, ids: Sequence[str], space: LabelSpace) -> NDArray[np.int64]:
        """Return the valid columns of each image, padded with -1 to the size of the largest set.

        Labels that belong to no column cannot be predicted and are omitted.
        """
        rows = [self.of(image) for image in ids]
        if not self.of_classes:
            rows = self._columns(rows, space)
        filled = np.full((len(rows), self.most), NO_LABEL, np.int64)
        for place, row in enumerate(rows):
            filled[place, : len(row)] = row
        return filled

    def _columns(self, rows: list[tuple[int, ...]], space: LabelSpace) -> list[tuple[int, ...]]:
        """Convert indices of outputs to columns of a space."""
        if space.identity:
            highest = max((label for row in rows for label in row), default=-1)
            if space.count is not None and highest >= space.count:
                raise LabelError(
                    f"labels of {self.name} must be below {space.count}, the number of outputs, got {highest}"
                )
            return rows
        columns = space.columns
        return [tuple(dict.fromkeys(columns[one] for one in row if one in columns)) for row in rows]

    @cached_property
    def most(self) -> int:
        """Size of the largest set, at least 1."""
        sets = self.sets.values() if isinstance(self.sets, Mapping) else self.sets
        return max((len(one) for one in sets), default=0) or 1

    @cached_property
    def digest(self) -> str:
        """A hash of these sets."""
        plain: Any = dict(self.sets) if isinstance(self.sets, Mapping) else self.sets
        plain = {"of_classes": plain} if self.of_classes else plain
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def read_label_sets(path: str | Path) -> LabelSets:
    """Read label sets: a list such as ReaL's `real.json`, or an object of lists by image id.

    ReaL's file is published in google-research/reassessed-imagenet.
    """
    file = Path(path)
    found = read_json(file, LabelError)
    rows = list(found.values()) if isinstance(found, dict) else found
    if not isinstance(rows, list) or not rows or not all(map(_is_set, rows)):
        raise LabelError(f"{file} must contain {_FORM}, with non-negative integers")
    if isinstance(found, dict):
        return LabelSets(file.stem, {image: tuple(dict.fromkeys(row)) for image, row in found.items()})
    return LabelSets(file.stem, tuple(tuple(dict.fromkeys(row)) for row in rows))


def _is_set(row: object) -> bool:
    return isinstance(row, list) and all(type(label) is int and 0 <= label < 1_000_000 for label in row)
