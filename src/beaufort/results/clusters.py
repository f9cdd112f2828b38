"""Images that are not independent of each other: of one patient, one video, one photographer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.results._match import ResultsError


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which cluster each image belongs to."""

    index: NDArray[np.intp]
    """Of each image, a number from 0."""
    count: int

    @classmethod
    def of(cls, ids: Sequence[str], named: Mapping[str, str]) -> Clusters:
        """The clusters of some images; at least two."""
        names, index = np.unique(values_of(ids, named), return_inverse=True)
        if len(names) < 2:
            raise ResultsError(
                f"clusters must have at least two values, got only {str(names[0])!r}; one has no spread"
            )
        return cls(np.asarray(index, np.intp), len(names))


def values_of(ids: Sequence[str], named: Mapping[str, str]) -> list[str]:
    """The value of each image; every image needs one."""
    if missing := [image for image in ids if image not in named]:
        raise ResultsError(
            f"every image needs a value, got none for {len(missing):,} of {len(ids):,} (first: "
            f"{missing[0]!r}); write one row for each image id"
        )
    return [named[image] for image in ids]
