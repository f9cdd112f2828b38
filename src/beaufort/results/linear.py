"""Numbers that are means over images: what each image adds to mCE, to an accuracy, to a difference of models.

Every headline number is a mean over base images of a weighted sum of the image's errors, with weights that do
not depend on the image. If the baseline is a model of the store, the weights are those of a straight line
through the point that was measured, and the errors of the baseline have weights, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add, sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats import (
    Estimate,
    always_valid_images_to_decide,
    always_valid_interval,
    images_to_decide,
    mean_interval,
    mean_p_value,
    paired_images_to_decide,
    paired_interval,
    paired_p_value,
)
from beaufort.results._match import ResultsError

Floats = NDArray[np.float64]
Clusters = NDArray[np.intp]
"""Index of the cluster of each image: images of one patient, one video, one photographer."""


def find_clusters(ids: Sequence[str], named: Mapping[str, str] | None) -> Clusters | None:
    """Return the clusters of dependent images; None if images are independent."""
    if named is None:
        return None
    names, index = np.unique(values_of(ids, named), return_inverse=True)
    if len(names) < 2:
        raise ResultsError(
            f"all images are in the cluster {str(names[0])!r}; intervals require at least two clusters"
        )
    return np.asarray(index, np.intp)


def values_of(ids: Sequence[str], named: Mapping[str, str]) -> list[str]:
    """Return the value of each image; every image requires one."""
    if missing := [image for image in ids if image not in named]:
        raise ResultsError(
            f"{len(missing):,} of {len(ids):,} images have no value (first: {missing[0]!r}); add a row for "
            "each image id"
        )
    return [named[image] for image in ids]


@dataclass(frozen=True, eq=False)
class Linear:
    """A number that is a mean over images, with the contribution of each image."""

    values: Floats
    """Contribution of each image, or of each cluster of images."""
    weights: Mapping[str, Floats]
    """Weights of the errors on an image, between 0 and 1, by model."""
    constant: float
    stretch: float = 1.0
    """Size of the largest cluster relative to the mean; 1 if images are independent."""
    floor: float = -math.inf
    """Lower bound of the number, which the linear form may not have: 0 for a ratio of two errors."""
    paired: bool = False
    """Whether it is a difference of two numbers on the same images, which has an interval of its own."""

    @classmethod
    def of(cls, constant: float, terms: Mapping[str, tuple[NDArray[Any], Floats]]) -> Linear:
        """Return the number of a constant and, for each model, errors `(images, k)` and weights `(k,)`."""
        values = constant + sum(errors @ weights for errors, weights in terms.values())
        return cls(np.asarray(values), {name: weights for name, (_, weights) in terms.items()}, constant)

    @staticmethod
    def mean(forms: Sequence[Linear]) -> Linear:
        """Return the mean of several numbers, which has a narrower interval than each of them."""
        return reduce(add, forms) * (1 / len(forms))

    @cached_property
    def value(self) -> float:
        return float(self.values.mean())

    @property
    def n(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Linear {self.value:.6g}, a mean over {self.n:,}>"

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean; None for a single image."""
        return float(self.values.std(ddof=1)) / self.n**0.5 if self.n > 1 else None

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible contribution of an image, or of a cluster."""
        low, high = (self.value + self.stretch * (bound - self.value) for bound in self._image_bounds)
        return low, high

    @cached_property
    def _image_bounds(self) -> tuple[float, float]:
        """Smallest and largest possible contribution of an image, and so of a mean."""
        low = self.constant + sum(float(np.minimum(weight, 0).sum()) for weight in self.weights.values())
        high = self.constant + sum(float(np.maximum(weight, 0).sum()) for weight in self.weights.values())
        return low, high

    def estimate(self, level: float, *, always_valid: bool = False) -> Estimate:
        """Return the number with its interval over images, as far as the number can lie there.

        A cluster adds its images' sum, so that it can add more than a mean can be. With `always_valid`, the
        interval holds at all numbers of images at once, not only at this one.
        """
        low, high = self.bounds
        if not low < high:  # the same for every image: a baseline over itself
            return Estimate(self.value, self.value, self.value, self.n, level)
        interval = paired_interval if self.paired else mean_interval
        if always_valid:
            interval = always_valid_interval
        found = interval(self.values, low=low, high=high, level=level)
        least, most = self._image_bounds
        least = min(max(least, self.floor), found.value)  # rounding moves the value, not the interval
        return replace(found, low=max(found.low, least), high=min(found.high, max(most, found.value)))

    def p_value(self) -> float:
        """Return the p-value of the hypothesis that the number is zero."""
        low, high = self.bounds
        p_value = paired_p_value if self.paired else mean_p_value
        return p_value(self.values, low=low, high=high) if low < 0 < high else 1.0

    def images_to_decide(self, limit: float, level: float, *, always_valid: bool = False) -> int | None:
        """Return how many images, or clusters, like these exclude `limit` from the interval; None if none."""
        low, high = self.bounds
        if not low < high:
            return None
        find = paired_images_to_decide if self.paired else images_to_decide
        if always_valid:
            find = always_valid_images_to_decide
        return find(self.values, limit=limit, low=low, high=high, level=level)

    def __sub__(self, other: Linear) -> Linear:
        return replace(self._combined(other, sub), paired=True)

    def __add__(self, other: Linear) -> Linear:
        return replace(self._combined(other, add), floor=self.floor + other.floor)

    def __mul__(self, factor: float) -> Linear:
        weights = {name: factor * weight for name, weight in self.weights.items()}
        floor = factor * self.floor if factor > 0 else -math.inf
        values, constant = factor * self.values, factor * self.constant
        return Linear(values, weights, constant, self.stretch, floor, self.paired)

    def _combined(self, other: Linear, combine: Callable[[Any, Any], Any]) -> Linear:
        nothing = np.zeros(1)
        weights = {
            name: combine(self.weights.get(name, nothing), other.weights.get(name, nothing))
            for name in {**self.weights, **other.weights}
        }
        constant = combine(self.constant, other.constant)
        paired = self.paired or other.paired
        return Linear(combine(self.values, other.values), weights, constant, self.stretch, paired=paired)

    def clustered(self, clusters: Clusters | None) -> Linear:
        """Return the same number with clusters of images as units; unchanged if None."""
        if clusters is None:
            return self
        sizes = np.bincount(clusters)
        average = len(clusters) / len(sizes)
        sums = np.bincount(clusters, weights=self.values - self.value)
        stretch = float(sizes.max()) / average
        return replace(self, values=self.value + sums / average, stretch=stretch)
