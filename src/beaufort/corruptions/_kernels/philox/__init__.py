"""Random fields from a counter-based generator: the same numbers on every backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from beaufort._core.arrays import Array, Bytes, Field, Images

if TYPE_CHECKING:
    from beaufort.corruptions.rng import Key

__all__ = ["PhiloxOps"]


class PhiloxOps(Protocol):
    """Random fields from a counter-based generator: the same numbers on every backend."""

    def content_ids(self, images: Images) -> Field:
        """Ids made of the pixels themselves, for images without one."""

    def philox_bernoulli(
        self, key: Key, ids: Field, field: int, shape: tuple[int, ...], probability: float
    ) -> Field:
        """True with the given probability, to 2⁻³²."""

    def philox_impulses(
        self, key: Key, ids: Field, field: int, shape: tuple[int, ...], share: float
    ) -> Field:
        """With probability `share` a 1 or a 2, by one word; else 0."""

    def philox_integers(
        self,
        key: Key,
        ids: Field,
        field: int,
        shape: tuple[int, ...],
        low: int,
        high: int | Array,
        dtype: type = np.int32,
    ) -> Field:
        """Whole numbers in [low, high), `high` for all images or for each."""

    def philox_levels(
        self, key: Key, ids: Field, field: int, images: Images, rate: float, table: Bytes
    ) -> Images:
        """The table's entry for each count of `philox_poisson`, and its last entry for all beyond."""

    def philox_normal(
        self, key: Key, ids: Field, field: int, shape: tuple[int, ...], dtype: type = np.float32
    ) -> Field:
        """Standard normal float32 numbers; torch leaves them so where a wider dtype is asked for."""

    def philox_poisson(self, key: Key, ids: Field, field: int, images: Images, rate: float) -> Field:
        """Poisson counts with means rate × value / 255, exact to 2⁻¹⁶ of a column's share."""

    def philox_uniform(
        self,
        key: Key,
        ids: Field,
        field: int,
        shape: tuple[int, ...],
        low: float,
        high: float,
        dtype: type = np.float32,
    ) -> Field:
        """Float32 numbers in [low, high), in steps of 2⁻²⁴ of the range; dtype as for `philox_normal`."""

    def philox_words(self, key: Key, ids: Field, field: int, shape: tuple[int, ...]) -> Field:
        """The raw 32-bit words of a field."""
