"""Random numbers by image identity, independent of call order.

A corruption asks a `Random` for the fields it needs, in a fixed order. There are two sources:

* `Keyed` (the default stream): Philox-4x32-10, a counter-based generator. Its key comes from
  `(seed, corruption, version, severity)`; its counter holds the image's id, the number of the field
  and the position in it. A value depends on these and on nothing else.
* `ReferenceStream`: NumPy's legacy generator, drawn in the order of the published implementations, which
  reproduces published pixels.
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
"""What identifies an image: an integer or a name (a path in a dataset, for example)."""

STREAMS = ("keyed", "reference")

_TEXT_ID = 1 << 63

_WORD = np.dtype(np.uint64)

_MANY, _MANY_ELSEWHERE = 1 << 20, 1 << 24
"""Values per image from which `uniform_later` leaves a field undrawn: on the CPU, where drawing row by row is
as fast, and on another device, where it means computing the field on the CPU."""


class Key(NamedTuple):
    """The two key words of Philox."""

    low: int
    high: int

    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, seed: int, corruption: str, version: int, severity: int | float) -> Key:
        """Return the key of one corruption at one severity under one seed.

        >>> Key.of(0, "fog", 1, 3) == Key.of(0, "fog", 1, 3) != Key.of(0, "fog", 1, 4)
        True
        """
        text = f"beaufort|{seed}|{corruption}|{version}|{severity}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return cls(int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little"))


class FieldKey(NamedTuple):
    """What the values of one random field depend on, one field per image."""

    key: Key
    ids: Any
    """The words of the images' ids, where the backend wants them."""
    field: int
    """The number of the field, counted over the fields of a corruption."""


def id_words(ids: Sequence[Id]) -> NDArray[np.uint64]:
    """Return the 64-bit counter words of image ids.

    An integer below 2⁶³ is its own word; a string is hashed, with the top bit set, so that the two
    kinds never collide.

    >>> id_words([7, "n01440764/a.jpg"]).tolist()
    [7, 11732030946585132122]
    """
    if isinstance(ids, range) and ids and min(ids[0], ids[-1]) >= 0 and max(ids[0], ids[-1]) < _TEXT_ID:
        return np.arange(ids.start, ids.stop, ids.step, dtype=np.uint64)
    if isinstance(ids, tuple) and set(map(type, ids)) == {str}:
        return _text_words(ids).copy()  # torch does not accept read-only arrays
    return np.array([*map(_id_word, ids)], _WORD)


def validate_ids(ids: Sequence[Id] | None, count: int) -> None:
    """Raise an error unless `ids` is None or a list with one id per image."""
    # The order of a set of strings differs between processes.
    wrong = isinstance(ids, str | bytes | set | frozenset) or not hasattr(ids, "__len__")
    if ids is not None and (wrong or len(ids) != count):
        raise OptionError(
            f"ids must be a list with one id for each of {counted(count, 'image')}, got {ids!r:.60}"
        )


def validate_seed(seed: int) -> int:
    """Return the seed as an `int`; raise an error if it is not an integer."""
    if type(seed) is int:  # fast path
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise OptionError(f"seed must be an integer, got {seed!r}")
    return int(seed)


@lru_cache(maxsize=16)
def _text_words(ids: tuple[str, ...]) -> NDArray[np.uint64]:
    """Cached, because the same images are evaluated under one condition after the other."""
    return np.array([_text_word(image_id) for image_id in ids], dtype=np.uint64)


@lru_cache(maxsize=1 << 16)
def _text_word(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") | _TEXT_ID


def _id_word(image_id: Id) -> int:
    if isinstance(image_id, str):
        return _text_word(image_id)
    if type(image_id) is int and 0 <= image_id < _TEXT_ID:  # fast path
        return image_id
    if isinstance(image_id, int | np.integer) and not isinstance(image_id, bool) and 0 <= image_id < _TEXT_ID:
        return int(image_id)
    raise OptionError(f"an image id must be a string or an integer from 0 to 2**63 - 1, got {image_id!r}")


class Random(Protocol):
    """Fields of random numbers for a batch of n images; each has shape `(n, *shape)`."""

    @property
    def host(self) -> HostRandom:
        """The same source with NumPy arrays as results, for a few numbers per image."""

    def reseeded(self) -> Random:
        """Return the source of later fields, where a published program seeds a second generator."""

    def normal(self, shape: tuple[int, ...], dtype: type = np.float32) -> Field:
        """Draw standard normal numbers."""

    def uniform(self, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32) -> Field:
        """Draw uniform numbers in [low, high)."""

    def tensor_normal(self, shape: tuple[int, ...]) -> Field:
        """Draw normal numbers `(h, w, c)`, in torch's order if the stream is the reference."""

    def uniform_later(self, size: int) -> Field | FieldKey:
        """Draw `uniform((size,), -1, 1)`, or return only the key of a very large field."""

    def bernoulli(self, shape: tuple[int, ...], probability: float) -> Field:
        """Draw booleans that are true with the given probability."""

    def impulses(self, shape: tuple[int, ...], probability: float) -> Field:
        """Draw 1 or 2, equally likely, with probability `probability` in total; else 0 (uint8)."""

    def integers(self, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32) -> Field:
        """Draw integers in [low, high); `high` may be an array with one value per image, `(n,)`."""

    def gated_pairs(self, shape: tuple[int, ...], low: int, high: int) -> tuple[Field, Field]:
        """Draw a gate for each position, open half of the time, and pairs in [low, high) for open ones."""

    def poisson(self, images: Images, rate: float) -> Field:
        """Draw Poisson counts (uint16, or int32 in torch) with means `rate` × value / 255."""

    def poisson_levels(self, images: Images, rate: float, table: Bytes) -> Images:
        """Draw as `poisson` and look up each count in a table; larger counts get its last entry."""


class HostRandom(Random, Protocol):
    """A `Random` whose numbers are NumPy arrays."""

    def reseeded(self) -> HostRandom:
        """Return the source of later fields, where a published program seeds a second generator."""

    def normal(self, shape: tuple[int, ...], dtype: type = np.float32) -> Array:
        """Draw standard normal numbers."""

    def uniform(self, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32) -> Array:
        """Draw uniform numbers in [low, high)."""

    def integers(self, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32) -> Array:
        """Draw integers in [low, high); `high` may be an array with one value per image, `(n,)`."""


class Keyed:
    """Numbers that depend on key, image id, field and position alone.

    Args:
        key: of the corruption, its severity and the seed.
        ids: the words of the images' ids, where the backend wants them.
        ops: the backend.
        host_ids: returns the words of the ids on the CPU, if the backend runs elsewhere.
        fields: the numbers of the fields to come.
    """

    def __init__(
        self,
        key: Key,
        ids: Field,
        ops: Ops,
        host_ids: Callable[[], Array] | None = None,
        fields: Iterator[int] | None = None,
    ) -> None:
        self._key = key
        self._ids = ids
        self._ops = ops
        self._host_ids = host_ids
        self._fields = count() if fields is None else fields

    @property
    def host(self) -> HostRandom:
        if self._host_ids is None:
            return cast("HostRandom", self)
        from beaufort.corruptions._kernels import cpu_ops

        return cast("HostRandom", Keyed(self._key, self._host_ids(), cpu_ops(), fields=self._fields))

    def reseeded(self) -> Keyed:
        return self

    def _next(self) -> FieldKey:
        return FieldKey(self._key, self._ids, next(self._fields))

    def normal(self, shape: tuple[int, ...], dtype: type = np.float32) -> Field:
        return self._ops.philox_normal(self._next(), shape, dtype)

    def uniform(self, shape: tuple[int, ...], low: float, high: float, dtype: type = np.float32) -> Field:
        return self._ops.philox_uniform(self._next(), shape, low, high, dtype)

    def tensor_normal(self, shape: tuple[int, ...]) -> Field:
        return self.normal(shape)

    def uniform_later(self, size: int) -> Field | FieldKey:
        if size < (_MANY if self._host_ids is None else _MANY_ELSEWHERE):
            return self.uniform((size,), -1, 1)
        return FieldKey(self._key, self._host_ids() if self._host_ids else self._ids, next(self._fields))

    def bernoulli(self, shape: tuple[int, ...], probability: float) -> Field:
        return self._ops.philox_bernoulli(self._next(), shape, probability)

    def impulses(self, shape: tuple[int, ...], probability: float) -> Field:
        return self._ops.philox_impulses(self._next(), shape, probability)

    def integers(self, shape: tuple[int, ...], low: int, high: int | Array, dtype: type = np.int32) -> Field:
        return self._ops.philox_integers(self._next(), shape, low, high, dtype)

    def gated_pairs(self, shape: tuple[int, ...], low: int, high: int) -> tuple[Field, Field]:
        return self.bernoulli(shape, 0.5), self.integers((*shape, 2), low, high, np.int8)

    def poisson(self, images: Images, rate: float) -> Field:
        return self._ops.philox_poisson(self._next(), images, rate)

    def poisson_levels(self, images: Images, rate: float, table: Bytes) -> Images:
        return self._ops.philox_levels(self._next(), images, rate, table)


class ReferenceStream:
    """NumPy's legacy stream, frozen across its versions; one image at a time."""

    def __init__(self, seed: int) -> None:
        if not 0 <= validate_seed(seed) < 1 << 32:
            raise OptionError(
                f"seed must be an integer from 0 to 2**32 - 1 with stream='reference', got {seed!r}"
            )
        self._state = np.random.RandomState(int(seed))

    def repeated(self) -> Callable[[], ReferenceStream]:
        """Return a function that resets the stream to its present state, so that mixed images draw alike."""
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
        """Draw what torch draws with this seed: the same generator, Box-Muller, channel by channel."""
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

    def impulses(self, shape: tuple[int, ...], probability: float) -> Field:
        hit = self.bernoulli(shape, probability)
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
    """Return a random order of the integers below `size` per image, `(n, size)`, as legacy NumPy does."""
    order: Array | None = None
    for last in range(size - 1, 0, -1):
        other = random.integers((), 0, last + 1).astype(np.int64)
        if order is None:
            order = np.tile(np.arange(size), (len(other), 1))
        images = np.arange(len(other))
        order[images, last], order[images, other] = order[images, other], order[images, last].copy()
    assert order is not None, "size is at least 2"
    return order
