"""Randomness by image identity, never by call order.

A corruption asks a `Random` for the fields it needs, in a fixed order. Two things answer:

* `Keyed` (the default stream): Philox-4x32-10, a counter-based generator. Its key comes from
  `(seed, corruption, version, severity)`; its counter holds the image's id, the number of the field
  and the position in it. A value depends on these and on nothing else.
* `ReferenceStream`: NumPy's legacy generator, drawn in the order of the published implementations, so
  that published pixels come out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes, Field, Images
from beaufort._core.errors import OptionError
from beaufort._core.text import counted

if TYPE_CHECKING:
    from beaufort.corruptions._kernels import Ops

Id = int | str
"""What identifies an image: a number or a name (a path in a data set, say)."""

STREAMS = ("keyed", "reference")

_TEXT_ID = 1 << 63

_WORD = np.dtype(np.uint64)

_MANY, _MANY_ELSEWHERE = 1 << 20, 1 << 24
"""Numbers of one field, of one image, from which `uniform_later` leaves them undrawn: on the processor, which
is as fast without them, and on another device, where drawing them later means to leave it."""


class Key(NamedTuple):
    """The two key words of Philox."""

    low: int
    high: int

    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, seed: int, corruption: str, version: int, severity: int | float) -> Key:
        """The key of one corruption at one severity under one seed.

        >>> Key.of(0, "fog", 1, 3) == Key.of(0, "fog", 1, 3) != Key.of(0, "fog", 1, 4)
        True
        """
        text = f"beaufort|{seed}|{corruption}|{version}|{severity}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return cls(int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little"))


def id_words(ids: Sequence[Id]) -> NDArray[np.uint64]:
    """The 64-bit counter words of image ids.

    A number below 2⁶³ stands for itself; a text is hashed, with the top bit set, so that the two
    kinds never meet.

    >>> id_words([7, "n01440764/a.jpg"]).tolist()
    [7, 11732030946585132122]
    """
    if isinstance(ids, range) and ids and min(ids[0], ids[-1]) >= 0 and max(ids[0], ids[-1]) < _TEXT_ID:
        return np.arange(ids.start, ids.stop, ids.step, dtype=np.uint64)
    if isinstance(ids, tuple) and set(map(type, ids)) == {str}:
        return _text_words(ids).copy()  # torch takes no array that cannot be written to
    return np.array([*map(_id_word, ids)], _WORD)


_NO_LISTS = (str, bytes, set, frozenset)
"""What has a length and is no list of ids; the order of a set of texts is another one in each process."""


def validate_ids(ids: Sequence[Id] | None, count: int) -> None:
    """Refuse ids that are not a list with one for each image; None will do."""
    if ids is not None and (isinstance(ids, _NO_LISTS) or not hasattr(ids, "__len__") or len(ids) != count):
        raise OptionError(
            f"ids must be a list with one id for each of {counted(count, 'image')}, got {ids!r:.60}"
        )


def validate_seed(seed: int) -> int:
    """The seed as an `int`; an error if it is no whole number."""
    if type(seed) is int:  # the usual kind, before slower questions
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise OptionError(f"seed must be an integer, got {seed!r}")
    return int(seed)


@lru_cache(maxsize=16)
def _text_words(ids: tuple[str, ...]) -> NDArray[np.uint64]:
    """Kept, as the same images are shown under one condition after the other."""
    return np.array([_text_word(image_id) for image_id in ids], dtype=np.uint64)


@lru_cache(maxsize=1 << 16)
def _text_word(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") | _TEXT_ID


def _id_word(image_id: Id) -> int:
    if isinstance(image_id, str):
        return _text_word(image_id)
    if type(image_id) is int and 0 <= image_id < _TEXT_ID:  # the usual kind, before the slower question
        return image_id
    if isinstance(image_id, int | np.integer) and not isinstance(image_id, bool) and 0 <= image_id < _TEXT_ID:
        return int(image_id)
    raise OptionError(f"an image id must be a string or an integer from 0 to 2**63 - 1, got {image_id!r}")


class Undrawn(NamedTuple):
    """A field of uniform numbers in [-1, 1) too large to hold; whoever needs it draws a piece at a time."""

    key: Key
    ids: NDArray[np.uint64]
    field: int


class Random(Protocol):
    """Fields of random numbers for a batch of n images; each has shape `(n, *shape)`."""

    @property
    def host(self) -> HostRandom:
        """The same numbers as NumPy arrays, for a few numbers an image that Python works on."""

    def reseeded(self) -> Random:
        """The source of what follows, where a published program seeds another generator by a drawn number."""

    def normal(self, shape: tuple[int, ...], dtype: type = np.float32) -> Field:
        """Standard normal numbers."""

    def uniform(self, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32) -> Field:
        """Numbers spread evenly over [low, high)."""

    def tensor_normal(self, shape: tuple[int, ...]) -> Field:
        """As `normal`, where a published program draws with torch; `(h, w, c)`."""

    def uniform_later(self, size: int) -> Field | Undrawn:
        """As `uniform((size,), -1, 1)`, or where to find the numbers if they are very many."""

    def bernoulli(self, shape: tuple[int, ...], probability: float) -> Field:
        """True with the given probability."""

    def impulses(self, shape: tuple[int, ...], share: float) -> Field:
        """With probability `share` a 1 or a 2, equally often; else 0 (uint8)."""

    def integers(self, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32) -> Field:
        """Whole numbers in [low, high); `high` may be given for each image, `(n,)`."""

    def gated_pairs(self, shape: tuple[int, ...], low: int, high: int) -> tuple[Field, Field]:
        """For each place a gate, open half the time, and a pair in [low, high) for the open ones."""

    def poisson(self, images: Images, rate: float) -> Field:
        """Poisson counts (uint16, or int32 in torch) whose means are `rate` × value / 255."""

    def poisson_levels(self, images: Images, rate: float, table: Bytes) -> Images:
        """As `poisson`, the table's entry for each count, and its last entry for all beyond."""


class HostRandom(Random, Protocol):
    """A `Random` whose numbers are NumPy arrays."""

    def reseeded(self) -> HostRandom:
        """The source of what follows, where a published program seeds another generator by a drawn number."""

    def normal(self, shape: tuple[int, ...], dtype: type = np.float32) -> Array:
        """Standard normal numbers."""

    def uniform(self, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32) -> Array:
        """Numbers spread evenly over [low, high)."""

    def integers(self, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32) -> Array:
        """Whole numbers in [low, high); `high` may be given for each image, `(n,)`."""


class Keyed:
    """Numbers that depend on key, image id, field and position alone.

    Args:
        key: of the corruption, its severity and the seed.
        ids: the words of the images' ids, where the backend wants them.
        ops: the backend.
        host: gives a source of the same numbers on the processor, if the backend is elsewhere; the two
            number their fields together.
    """

    def __init__(
        self,
        key: Key,
        ids: Field,
        ops: Ops,
        host: Callable[[Iterator[int]], Keyed] | None = None,
        *,
        fields: Iterator[int] | None = None,
    ) -> None:
        self._key = key
        self._ids = ids
        self._host = host
        self._fields = count() if fields is None else fields
        self._ops = ops

    @property
    def host(self) -> HostRandom:
        return cast("HostRandom", self._on_host())

    def _on_host(self) -> Keyed:
        return self if self._host is None else self._host(self._fields)

    def reseeded(self) -> Keyed:
        return self

    def normal(self, shape: tuple[int, ...], dtype: type = np.float32) -> Field:
        return self._ops.philox_normal(self._key, self._ids, next(self._fields), shape, dtype)

    def uniform(self, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32) -> Field:
        return self._ops.philox_uniform(self._key, self._ids, next(self._fields), shape, low, high, dtype)

    def tensor_normal(self, shape: tuple[int, ...]) -> Field:
        return self.normal(shape)

    def uniform_later(self, size: int) -> Field | Undrawn:
        if size < (_MANY if self._host is None else _MANY_ELSEWHERE):
            return self.uniform((size,), -1, 1)
        return Undrawn(self._key, np.asarray(self._on_host()._ids), next(self._fields))

    def bernoulli(self, shape: tuple[int, ...], probability: float) -> Field:
        return self._ops.philox_bernoulli(self._key, self._ids, next(self._fields), shape, probability)

    def impulses(self, shape: tuple[int, ...], share: float) -> Field:
        return self._ops.philox_impulses(self._key, self._ids, next(self._fields), shape, share)

    def integers(self, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32) -> Field:
        return self._ops.philox_integers(self._key, self._ids, next(self._fields), shape, low, high, dtype)

    def gated_pairs(self, shape: tuple[int, ...], low: int, high: int) -> tuple[Field, Field]:
        return self.bernoulli(shape, 0.5), self.integers((*shape, 2), low, high, np.int8)

    def poisson(self, images: Images, rate: float) -> Field:
        return self._ops.philox_poisson(self._key, self._ids, next(self._fields), images, rate)

    def poisson_levels(self, images: Images, rate: float, table: Bytes) -> Images:
        return self._ops.philox_levels(self._key, self._ids, next(self._fields), images, rate, table)


class ReferenceStream:
    """NumPy's legacy stream, frozen across its versions; one image at a time."""

    def __init__(self, seed: int) -> None:
        if not 0 <= validate_seed(seed) < 1 << 32:
            raise OptionError(
                f"seed must be an integer from 0 to 2**32 - 1 for the reference stream, got {seed!r}"
            )
        self._state = np.random.RandomState(int(seed))

    def repeated(self) -> Callable[[], ReferenceStream]:
        """What gives this stream as it stands now, each time, so that pictures that are mixed draw alike."""
        start = self._state.get_state(legacy=False)

        def again() -> ReferenceStream:
            self._state.set_state(start)
            return self

        return again

    @property
    def host(self) -> ReferenceStream:
        return self

    def reseeded(self) -> ReferenceStream:
        return ReferenceStream(int(self._state.randint(0, 1 << 32, dtype=np.uint32)))

    def normal(self, shape: tuple[int, ...], dtype: type = np.float32) -> Array:
        return self._state.standard_normal((1, *shape)).astype(dtype)

    def uniform(self, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32) -> Array:
        return self._state.uniform(low, high, (1, *shape)).astype(dtype)

    def tensor_normal(self, shape: tuple[int, ...]) -> Array:
        """What torch draws with this seed: the same generator, Box and Muller's way, color by color."""
        height, width, channels = shape
        words = self._state.randint(0, 1 << 32, height * width * channels, dtype=np.uint32)
        u = ((words & 0xFFFFFF) / np.float32(1 << 24)).astype(np.float32).reshape(-1, 2, 8)
        radius, angle = np.sqrt(-2 * np.log(1 - u[:, 0])), np.float32(2 * np.pi) * u[:, 1]
        pair = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return np.ascontiguousarray(pair.reshape(1, channels, height, width).transpose(0, 2, 3, 1))

    def uniform_later(self, size: int) -> Field:
        return self.uniform((size,), -1, 1)

    def bernoulli(self, shape: tuple[int, ...], probability: float) -> Field:
        return self._state.random_sample((1, *shape)) < probability

    def impulses(self, shape: tuple[int, ...], share: float) -> Field:
        hit = self.bernoulli(shape, share)
        salt = self.bernoulli(shape, 0.5)
        return np.where(hit, np.where(salt, 2, 1), 0).astype(np.uint8)

    def integers(self, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32) -> Array:
        return self._state.randint(low, int(np.ravel(high)[0]), (1, *shape)).astype(dtype)

    def gated_pairs(self, shape: tuple[int, ...], low: int, high: int) -> tuple[Field, Field]:
        gates = np.zeros(shape, np.bool_)
        pairs = np.zeros((*shape, 2), np.int8)
        for place in np.ndindex(*shape):
            if self._state.randint(0, 2) == 0:
                gates[place] = True
                pairs[place] = self._state.randint(low, high, 2)
        return gates[None], pairs[None]

    def poisson(self, images: Images, rate: float) -> Array:
        counts: NDArray[Any] = self._state.poisson(images / 255.0 * rate)
        return counts.astype(np.uint16)

    def poisson_levels(self, images: Images, rate: float, table: Bytes) -> Bytes:
        return table[np.minimum(self.poisson(images, rate), len(table) - 1)]


def draw_permutations(random: HostRandom, size: int) -> Array:
    """A random order of the numbers below `size` for each image, `(n, size)`, as NumPy's legacy one."""
    order: Array | None = None
    for last in range(size - 1, 0, -1):
        other = random.integers((), 0, last + 1).astype(np.int64)
        if order is None:
            order = np.tile(np.arange(size), (len(other), 1))
        images = np.arange(len(other))
        order[images, last], order[images, other] = order[images, other], order[images, last].copy()
    assert order is not None, "size is at least 2"
    return order
