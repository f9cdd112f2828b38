"""A front end as a whole: steps in order, each for all images or for noisy ones, from a text and named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown
from beaufort._core.validation import validate_count
from beaufort.models.filters._front import Views, checked, front_kinds, settle_number
from beaufort.models.filters.noise import estimate_noise

_GATES = ("above", "below")


@dataclass(frozen=True)
class FrontStep:
    """One filter, or one choice of views, and for which images it is."""

    kind: str
    does: Any
    """A `Filter` or `Views`."""
    above: float | None = None
    """Only images whose noise, by `estimate_noise`, is above this are changed."""
    below: float | None = None
    """Only images whose noise is below this are changed."""

    def __post_init__(self) -> None:
        for name in _GATES:
            if getattr(self, name) is None:
                continue
            if self.makes_views:
                raise OptionError(
                    f"{name} must not be given for {self.kind}, which shows every image in parts"
                )
            settle_number(self, name, 0, 1)
        if self.below == 0:
            raise OptionError(f"below must be more than 0, or {self.kind} changes no image, got 0")
        if self.above is not None and self.below is not None and self.above >= self.below:
            raise OptionError(
                f"above must be less than below, or {self.kind} changes no image, got "
                f"{_shown(self.above)} and {_shown(self.below)}"
            )

    @property
    def makes_views(self) -> bool:
        """Whether a model sees several views of an image after this step."""
        return isinstance(self.does, Views)

    @property
    def facts(self) -> dict[str, Any]:
        """What decides its pixels, as JSON knows it."""
        kinds: dict[str, Any] = {one.name: type(one.default) for one in fields(self.does)}
        options = {name: kinds[name](value) for name, value in asdict(self.does).items()}
        gates = {name: float(value) for name in _GATES if (value := getattr(self, name)) is not None}
        return {"kind": self.kind, "version": self.does.version, **options, **gates}

    @property
    def name(self) -> str:
        """The kind, and the options that are not the usual ones.

        >>> open_front("nlm:h=0.4,above=0.03").steps[0].name
        'nlm-h0.4-above0.03'
        """
        usual = {one.name: one.default for one in fields(self.does)}
        options = {key: value for key, value in asdict(self.does).items() if value != usual[key]}
        options |= {name: value for name in _GATES if (value := getattr(self, name)) is not None}
        return "-".join([self.kind, *(f"{key}{_shown(value)}" for key, value in options.items())])

    def lets_through(self, noise: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the gate is open, for images of some noise."""
        low = self.above if self.above is not None else -1.0
        high = self.below if self.below is not None else 2.0
        found: NDArray[np.bool_] = (noise > low) & (noise < high)
        return found

    def filtered(self, images: Bytes) -> Bytes:
        """The images, changed where the gate lets them through."""
        if self.above is None and self.below is None:
            made: Bytes = self.does(images)
            return made
        chosen = self.lets_through(estimate_noise(images))
        out = images.copy()
        if chosen.any():
            out[chosen] = self.does(images[chosen])
        return out


@dataclass(frozen=True)
class Front:
    """Steps in their order. At most one of them shows several views."""

    steps: tuple[FrontStep, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise OptionError("a front end must have at least one step, got none")
        several = [step.kind for step in self.steps if step.makes_views]
        if len(several) > 1:
            raise OptionError(f"at most one step may show several views, got {' and '.join(several)}")

    @property
    def name(self) -> str:
        """What is added to a model's name."""
        return "+".join(step.name for step in self.steps)

    @property
    def facts(self) -> list[dict[str, Any]]:
        """What is added to a model's digest."""
        return [step.facts for step in self.steps]

    @property
    def views(self) -> Views | None:
        """What chooses the views; None if an image is seen as one."""
        return next((step.does for step in self.steps if step.makes_views), None)

    def __call__(self, images: Bytes, *, threads: int | None = None) -> Bytes:
        """The images as a model sees them, of a front end that keeps their shape.

        Args:
            images: uint8 `(n, h, w, 1 or 3)`.
            threads: how many to use; all processors if not given. It changes no pixel.
        """
        if self.views is not None:
            raise OptionError(
                f"a front end with views must be part of a model, got {self.name}; use with_front"
            )
        return self.show(images, images.shape[1:3] if isinstance(images, np.ndarray) else (0, 0), threads)[0]

    def show(self, images: Bytes, size: Sequence[int], threads: int | None = None) -> list[Bytes]:
        """The views of the images, each of a size; one where nothing cuts them."""
        images = checked(images)
        most = (os.cpu_count() or 1) if threads is None else validate_count("threads", threads)
        workers = min(len(images), most)
        if workers < 2:
            return self._show(images, (size[0], size[1]))
        with ThreadPoolExecutor(workers) as pool:
            parts = pool.map(
                lambda some: self._show(some, (size[0], size[1])), np.array_split(images, workers)
            )
            return [np.concatenate(view) for view in zip(*parts, strict=True)]

    def _show(self, images: Bytes, size: tuple[int, int]) -> list[Bytes]:
        seen = [images]
        for step in self.steps:
            seen = step.does(seen[0], size) if step.makes_views else [step.filtered(view) for view in seen]
        return seen


def open_front(front: str | Front | Iterable[str]) -> Front:
    """The front end that a text stands for, or several in their order.

    Args:
        front: `clahe:clip=2,tiles=8`: a kind of `front_kinds`, and options that are fields of it. With
            `above=0.03` or `below=0.03` it is for images whose noise is above or below that.
    """
    if isinstance(front, Front):
        return front
    if isinstance(front, bytes) or not isinstance(front, Iterable):
        raise OptionError(f"a front end must be a text such as clahe:clip=2,tiles=8, got {front!r:.60}")
    if isinstance(front, set | frozenset | Mapping):
        raise OptionError(f"several front ends must be a list, which has an order, got {front!r:.60}")
    texts = [front] if isinstance(front, str) else list(front)
    return Front(tuple(map(_step, texts)))


def _step(text: str) -> FrontStep:
    if not isinstance(text, str) or not text.strip():
        raise OptionError(f"a front end must be a text such as clahe:clip=2,tiles=8, got {text!r:.60}")
    name, _, rest = text.strip().partition(":")
    if "+" in name or "," in name:
        raise OptionError(
            f"a text must name one front end, got {text!r:.60}; give several one by one, with --front or in "
            "a list"
        )
    kind = front_kinds[name.strip()]
    types = {one.name: type(one.default) for one in fields(kind)}
    options: dict[str, Any] = {}
    for part in filter(None, (one.strip() for one in rest.split(","))):
        key, equals, value = (one.strip() for one in part.partition("="))
        if not equals:
            raise OptionError(f"an option of {name} must have the form name=value, got {part!r}")
        if key not in types and key not in _GATES:
            raise OptionError(unknown(f"option of {name}", key, {**types, **dict.fromkeys(_GATES)}))
        if key in options:
            raise OptionError(f"an option of {name} must be given once, got {key!r} again")
        options[key] = _value(name, key, value, types.get(key, float))
    gates = {key: options.pop(key) for key in _GATES if key in options}
    return FrontStep(name.strip(), kind(**options), **gates)


def _value(front: str, key: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() in ("yes", "true", "no", "false"):
            return text.lower() in ("yes", "true")
        raise OptionError(f"{key} of {front} must be yes or no, got {text!r}")
    try:
        return kind(text)
    except ValueError:
        what = "an integer" if kind is int else "a number"
        raise OptionError(f"{key} of {front} must be {what}, got {text!r}") from None


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "" if value else "-no"
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))  # other options have other names
