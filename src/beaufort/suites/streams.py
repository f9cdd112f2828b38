"""Streams: images in an order, for models that adapt while they are tested.

A stream is a shift whose level is the scale, the order and its options:
`cifar10-test/stream@cifar/continual,batch=200,seed=0`. Pixels are those of the same corruption outside of a
stream. The id of an image in a stream starts with its position and its condition: `17/fog@5/test/3`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import MIN_SIDE, Bytes
from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_choice, validate_count, validate_integer
from beaufort.corruptions import Severity, expand_names, parse_severity
from beaufort.corruptions.rng import Id
from beaufort.suites.difficulty import difficulty_of
from beaufort.suites.shifts import register_shift

if TYPE_CHECKING:
    from beaufort.suites.conditions import Condition

NAME = "stream"
_VERSION = 1
"""Raised when the order of a stream changes."""
SCALES = ("cifar", "tiny", "imagenet")
ORDERS = {
    "episodic": "one corruption after another; the model is reset before each",
    "continual": "one corruption after another",
    "recurring": "one corruption after another, all of them in several rounds",
    "gradual": "each corruption at severities that rise to the highest and fall again",
    "mixed": "all corruptions in a random order, image by image",
    "drifting": "corruptions that turn into one another, at a constant error of a reference model",
}
"""Orders of a stream, and what each means."""
_BY_CONDITION = "condition"


class Schedule(NamedTuple):
    """The images of a stream in order."""

    images: NDArray[np.int64]
    """Index in the dataset by position."""
    conditions: tuple[str, ...]
    """The distinct conditions, without the dataset."""
    condition: NDArray[np.int64]
    """Index in `conditions` by position."""
    segments: tuple[int, ...]
    """Position of the start of each segment, and of the end; a batch is within one segment."""
    batch: int
    """Images per batch; the last batch of a segment may be smaller."""
    resets: frozenset[int]
    """Positions before which the model is reset; 0 is among them."""

    def ids(self, ids: Sequence[str]) -> list[str]:
        """Return the id of each position, from the ids of the dataset."""
        both = zip(self.condition.tolist(), self.images.tolist(), strict=True)
        return [f"{at}/{self.conditions[c]}/{ids[i]}" for at, (c, i) in enumerate(both)]

    def blocks(self, least: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of whole batches within segments, of about `least` images each."""
        step = self.batch * max(1, least // self.batch)
        for start, stop in pairwise(self.segments):
            yield from ((at, min(at + step, stop)) for at in range(start, stop, step))

    def batch_at(self, position: int) -> int | None:
        """Return the size of the batch that starts at a position; None if no batch does."""
        segment = int(np.searchsorted(self.segments, position, side="right")) - 1
        start, stop = self.segments[segment], self.segments[segment + 1]
        return min(self.batch, stop - position) if (position - start) % self.batch == 0 else None


def split_id(id: str) -> tuple[int, str, str]:  # noqa: A002
    """Return the position, the condition and the image of an id in a stream.

    >>> split_id("17/fog@5/test/3")
    (17, 'fog@5', 'test/3')
    """
    position, condition, image = id.split("/", 2)
    return int(position), condition, image


@dataclass(frozen=True, kw_only=True)
class Stream:
    """An order of images and conditions; `Stream.parse(str(stream))` gives the same stream."""

    scale: str
    order: str
    of: str = "common"
    """Corruptions: names or subsets, joined by `+`, in the order of the stream. For a drifting stream, those
    whose difficulty is known are the default."""
    severity: Severity = 5
    """The severity, or the highest one of a gradual stream; not used by a drifting one."""
    batch: int = 200
    """Images per batch."""
    dirichlet: float | None = None
    """Concentration of the class distribution over time, as in NOTE and RoTTA; None for independent classes.
    Small values make neighboring images share their class."""
    reset: str | int | None = None
    """When the model is reset: before each `condition`, every so many batches, or never."""
    rounds: int = 3
    """Rounds of a recurring stream."""
    error: int = 40
    """Error of the reference model in percent, for a drifting stream."""
    seed: int = 0
    """Seed of the order."""

    def __post_init__(self) -> None:
        validate_choice("scale of a stream", self.scale, SCALES)
        if self.order not in ORDERS:
            raise OptionError(unknown_message("order of a stream", self.order, ORDERS))
        for name in ("batch", "rounds", "error"):
            validate_count(f"{name} of a stream", getattr(self, name))
        validate_integer("seed of a stream", self.seed, 0, 2**32 - 1)
        if self.dirichlet is not None and not 0 < self.dirichlet <= 1e6:
            raise OptionError(f"dirichlet of a stream must be a positive number, got {self.dirichlet}")
        if self.reset is not None and self.reset != _BY_CONDITION:
            validate_count("reset of a stream", self.reset)
        for name, order in (("rounds", "recurring"), ("error", "drifting")):
            if getattr(self, name) != getattr(type(self), name) and self.order != order:
                raise OptionError(f"{name} of a stream requires the order {order}, got {self.order}")
        if self.order == "episodic" and self.reset is not None:
            raise OptionError("an episodic stream is reset before each condition; remove reset")
        if self.order == "mixed" and self.reset == _BY_CONDITION:
            raise OptionError("a mixed stream cannot be reset before each condition; reset=N counts batches")
        if self.order == "drifting" and self.severity != type(self).severity:
            raise OptionError("severities of a drifting stream follow from error; remove severity")
        if self.order == "drifting" and len(self.corruptions) < 2:
            raise OptionError("a drifting stream requires at least two corruptions")
        self.conditions  # noqa: B018  a severity or a corruption without constants raises an error

    @classmethod
    def parse(cls, level: str) -> Stream:
        """Return the stream of a level.

        >>> str(Stream.parse("cifar/mixed,batch=64,seed=1"))
        'cifar/mixed,batch=64,seed=1'
        """
        head, *options = level.split(",")
        scale, slash, order = head.partition("/")
        if not slash:
            raise OptionError(
                "the level of a stream must be SCALE/ORDER,batch=N,seed=N, such as "
                f"cifar/continual,batch=200,seed=0, got {level!r:.100}"
            )
        values: dict[str, Any] = {}
        for option in options:
            name, equals, text = option.partition("=")
            if name not in _OPTIONS or name in values or not equals:
                raise OptionError(
                    f"invalid option {option!r:.60} of a stream; available, each once: {', '.join(_OPTIONS)}"
                )
            try:
                values[name] = _OPTIONS[name](text)
            except ValueError:
                raise OptionError(f"{name} of a stream must be a number, got {text!r:.60}") from None
        return cls(scale=scale, order=order, **values)

    def __str__(self) -> str:
        shown = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("batch", "seed") or (field.name in _OPTIONS and value != field.default):
                shown.append(
                    f"{field.name}={value:g}" if isinstance(value, float) else f"{field.name}={value}"
                )
        return ",".join([f"{self.scale}/{self.order}", *shown])

    @cached_property
    def corruptions(self) -> tuple[str, ...]:
        """Names of the corruptions, in order."""
        if self.order == "drifting" and self.of == type(self).of:
            return tuple(difficulty_of(self.scale).single)
        return tuple(dict.fromkeys(expand_names(self.of.split("+"), kind="corruption")))

    @cached_property
    def _steps(self) -> tuple[tuple[str, ...], ...]:
        """The conditions of each segment, in order; several share a segment that drifts or is mixed."""
        names, severity = self.corruptions, self.severity
        if self.order == "drifting":
            cycle = [names[place] for place in self._rng(0).permutation(len(names))]
            paths = difficulty_of(self.scale)
            return tuple(tuple(paths.path(a, b, self.error)) for a, b in pairwise([*cycle, cycle[0]]))
        if self.order == "gradual":
            rising = [*range(1, int(severity)), severity]
            return tuple((f"{name}@{level}",) for name in names for level in (*rising, *rising[-2::-1]))
        at = [f"{name}@{severity}" for name in names]
        if self.order == "mixed":
            return (tuple(at),)
        return tuple((one,) for one in at * (self.rounds if self.order == "recurring" else 1))

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """The distinct conditions, without the dataset."""
        found = tuple(dict.fromkeys(one for step in self._steps for one in step))
        for one in found:
            _condition(one).facts(scale=self.scale)
        return found

    def schedule(self, labels: NDArray[np.int64]) -> Schedule:
        """Return the order of the images of a dataset with these labels.

        Each segment shows every image once; a mixed stream shows every image once under each condition.
        """
        count = len(labels)
        numbers = {one: number for number, one in enumerate(self.conditions)}
        images, chosen, ends = [], [], [0]
        for number, step in enumerate(self._steps):
            conditions = np.array([numbers[one] for one in step])
            repeated = len(step) if self.order == "mixed" else 1
            places = self._ordered(np.tile(labels, repeated), self._rng(number + 1))
            images.append(places % count)
            if self.order == "mixed":
                chosen.append(conditions[places // count])
            else:  # evenly along the path of a drifting stream
                chosen.append(conditions[np.arange(count) * len(step) // count])
            ends.append(ends[-1] + len(places))
        return Schedule(
            np.concatenate(images).astype(np.int64),
            self.conditions,
            np.concatenate(chosen).astype(np.int64),
            tuple(ends),
            self.batch,
            frozenset(self._resets(ends)),
        )

    def _resets(self, ends: Sequence[int]) -> Iterator[int]:
        yield 0
        if self.order == "episodic" or self.reset == _BY_CONDITION:
            yield from ends[:-1]
        elif isinstance(self.reset, int):
            starts = [at for start, stop in pairwise(ends) for at in range(start, stop, self.batch)]
            yield from starts[:: self.reset]

    def _rng(self, number: int) -> np.random.Generator:
        return np.random.default_rng([_VERSION, self.seed, number])

    def _ordered(self, labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Return indices in random order; with `dirichlet`, classes are spread unevenly over slots of time.

        There are as many slots as classes (at most 100). The images of a class fall into them in proportions
        drawn from a Dirichlet distribution; within a slot, one class follows another.
        """
        order = rng.permutation(len(labels))
        if self.dirichlet is None:
            return order
        classes = np.unique(labels)
        slots: list[list[NDArray[np.int64]]] = [[] for _ in range(min(len(classes), 100))]
        for label in classes:
            mine = order[labels[order] == label]
            shares = rng.dirichlet(np.full(len(slots), self.dirichlet))
            cuts = np.round(np.nan_to_num(np.cumsum(shares)[:-1]) * len(mine)).astype(np.int64)
            for slot, some in zip(slots, np.split(mine, cuts), strict=True):
                slot.append(some)
        return np.concatenate([slot[place] for slot in slots for place in rng.permutation(len(slot))])

    # An image shift

    @property
    def least_side(self) -> int:
        """Minimum side of an image in pixels."""
        return MIN_SIDE

    def facts(self, *, seed: int) -> dict[str, Any]:
        """Return all that determines order and pixels, beside the images; ready for JSON."""
        pixels = [_condition(one).facts(scale=self.scale, seed=seed) for one in self.conditions]
        text = json.dumps(pixels, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {"level": str(self), "version": _VERSION, "conditions": f"sha256:{digest}", "seed": seed}

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:
        """Return each image under the condition in its id."""
        found = [split_id(str(id)) for id in ids]
        result = np.empty_like(images)
        for name in dict.fromkeys(condition for _, condition, _ in found):
            rows = [row for row, one in enumerate(found) if one[1] == name]
            some = [found[row][2] for row in rows]
            result[rows] = _condition(name).apply(images[rows], ids=some, seed=seed, scale=self.scale)
        return result


def _reset(text: str) -> str | int:
    return text if text == _BY_CONDITION else int(text)


_OPTIONS: dict[str, Callable[[str], Any]] = {
    "of": str,
    "severity": parse_severity,
    "batch": int,
    "dirichlet": float,
    "reset": _reset,
    "rounds": int,
    "error": int,
    "seed": int,
}
"""Options of a stream, and how each is parsed."""


@lru_cache(maxsize=1024)
def _condition(done: str) -> Condition:
    from beaufort.suites.conditions import Condition  # which imports this module to register the shift

    return Condition.parse(f"x/{done}")


def stream_texts(text: str) -> list[str]:
    """Return the streams of a text with `seeds=N`, one for each seed; or the one stream of any other text.

    >>> stream_texts("stream@cifar/mixed,batch=64,seeds=2")
    ['stream@cifar/mixed,batch=64,seed=0', 'stream@cifar/mixed,batch=64,seed=1']
    """
    level = text.removeprefix(f"{NAME}@")
    several = re.search(r",seeds=([1-9][0-9]{0,2})(?=,|$)", level)
    if several is None:
        return [f"{NAME}@{Stream.parse(level)}"]
    base = level[: several.start()] + level[several.end() :]
    return [f"{NAME}@{Stream.parse(f'{base},seed={seed}')}" for seed in range(int(several[1]))]


register_shift(NAME)(lru_cache(maxsize=256)(Stream.parse))
