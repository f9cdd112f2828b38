"""Chains of image filters, written as text; each step applies to all images or to noisy ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, checked_batch
from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_count
from beaufort.models.filters.base import BEFORE_SCALING, Views, filter_kinds, validate_field
from beaufort.models.filters.nlm import estimate_noise

if TYPE_CHECKING:
    from torch import Tensor

_GATES = ("above", "below")


@dataclass(frozen=True)
class FilterStep:
    """A filter or choice of views, and the images that it applies to."""

    kind: str
    filter: Any
    """A `Filter` or `Views`."""
    above: float | None = None
    """Apply only to images whose noise, by `estimate_noise`, is above this."""
    below: float | None = None
    """Apply only to images whose noise is below this."""

    def __post_init__(self) -> None:
        for name in self._gates:
            if self.makes_views:
                raise OptionError(f"{name} cannot be used with {self.kind}, which makes views of every image")
            validate_field(self, name, 0, 1)
        if (self.above or 0) >= (2 if self.below is None else self.below):
            raise OptionError(
                f"{self.kind} would change no image: above must be less than below, got "
                f"{_format(self.above or 0)} and {_format(self.below)}"
            )

    @property
    def _gates(self) -> dict[str, float]:
        return {name: value for name in _GATES if (value := getattr(self, name)) is not None}

    @property
    def makes_views(self) -> bool:
        """Whether a model sees several views of an image after this step."""
        return isinstance(self.filter, Views)

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that determines its pixels, as JSON values."""
        kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(self.filter)}
        options = {name: kinds[name](value) for name, value in asdict(self.filter).items()}
        return {"kind": self.kind, "version": self.filter.version, **options, **self._gates}

    @property
    def name(self) -> str:
        """The kind, and the options that differ from their defaults.

        >>> load_filter("nlm:h=0.4,above=0.03").steps[0].name
        'nlm-h0.4-above0.03'
        """
        defaults = {field.name: field.default for field in fields(self.filter)}
        options = {key: value for key, value in asdict(self.filter).items() if value != defaults[key]}
        options |= self._gates
        return "-".join([self.kind, *(f"{key}{_format(value)}" for key, value in options.items())])

    def apply(self, images: Bytes) -> Bytes:
        """Return the images, changed where their noise is within the gates."""
        if not self._gates:
            return np.asarray(self.filter(images))
        selected = self._selected(images)
        out = images.copy()
        if selected.any():
            out[selected] = self.filter(images[selected])
        return out

    def apply_tensors(self, images: Tensor) -> Tensor:
        """Return the same for uint8 tensors `(n, channels, h, w)`, on their GPU if the filter supports it."""
        if not (images.is_cuda and hasattr(self.filter, "on_tensors")):
            return _tensor(self.apply(_pixels(images)), images)
        changed: Tensor = self.filter.on_tensors(images)
        if not self._gates:
            return changed
        import torch

        selected = torch.from_numpy(self._selected(_pixels(images))).to(images.device)
        return torch.where(selected[:, None, None, None], changed, images)

    def _selected(self, images: Bytes) -> NDArray[np.bool_]:
        noise = estimate_noise(images)
        low = -1.0 if self.above is None else self.above
        high = 2.0 if self.below is None else self.below
        return np.asarray((noise > low) & (noise < high))


@dataclass(frozen=True)
class ImageFilter:
    """A chain of steps, of which at most one makes views."""

    steps: tuple[FilterStep, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise OptionError("an image filter must have at least one step")
        several = [step.kind for step in self.steps if step.makes_views]
        if len(several) > 1:
            raise OptionError(f"at most one step can make views, got {' and '.join(several)}")

    @property
    def name(self) -> str:
        """The suffix of a model's name."""
        return "+".join(step.name for step in self.steps)

    @property
    def facts(self) -> list[dict[str, Any]]:
        """Everything that determines its pixels, part of a model's digest."""
        return [step.facts for step in self.steps]

    @property
    def views(self) -> Views | None:
        """The step that makes views; None if there is none."""
        return next((step.filter for step in self.steps if step.makes_views), None)

    def __call__(self, images: Bytes, *, threads: int | None = None) -> Bytes:
        """Return filtered images; for filters without views.

        Args:
            images: uint8 `(n, h, w, 1 or 3)`.
            threads: number of threads; one per processor by default.
        """
        if self.views is not None:
            raise OptionError(f"{self.name} makes several views of an image; use with_filter")
        return self.apply(images, (0, 0), threads)[0]

    def apply(self, images: Bytes, size: Sequence[int], threads: int | None = None) -> list[Bytes]:
        """Return the views of the images, each of the given size; one view without a step that makes them."""
        images = checked_batch(images, BEFORE_SCALING)
        limit = (os.cpu_count() or 1) if threads is None else validate_count("threads", threads)
        workers = min(len(images), limit)
        if workers < 2:
            return self._apply(images, (size[0], size[1]))
        with ThreadPoolExecutor(workers) as pool:
            parts = pool.map(
                lambda part: self._apply(part, (size[0], size[1])), np.array_split(images, workers)
            )
            return [np.concatenate(view) for view in zip(*parts, strict=True)]

    def _apply(self, images: Bytes, size: tuple[int, int]) -> list[Bytes]:
        views = [images]
        for step in self.steps:
            views = step.filter(views[0], size) if step.makes_views else [step.apply(view) for view in views]
        return views

    def apply_tensors(self, images: Tensor, size: tuple[int, int]) -> list[Tensor]:
        """Return the views of uint8 tensors `(n, channels, h, w)`, as `apply` does, on their device."""
        views = [images]
        for step in self.steps:
            if step.makes_views:
                views = [_tensor(view, images) for view in step.filter(_pixels(views[0]), size)]
            else:
                views = [step.apply_tensors(view) for view in views]
        return views


def load_filter(texts: str | ImageFilter | Sequence[str]) -> ImageFilter:
    """Return an image filter from its text, or a chain of several.

    Args:
        texts: `clahe:clip=2,tiles=8`: a name in `filter_kinds`, and fields of it. With `above=0.03` or
            `below=0.03` it applies only to images whose noise is above or below that.
    """
    if isinstance(texts, ImageFilter):
        return texts
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise OptionError(f"filter must be a string such as clahe:clip=2,tiles=8, got {texts!r:.60}")
    return ImageFilter(tuple(map(_step, texts)))


def _step(text: str) -> FilterStep:
    name, _, rest = (part.strip() for part in text.partition(":"))
    if "+" in name or "," in name:
        raise OptionError(f"{text!r:.60} is not one image filter; pass several with --filter or in a list")
    kind = filter_kinds[name]
    types = {field.name: type(field.default) for field in fields(kind)} | dict.fromkeys(_GATES, float)
    options: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or key in options:
            raise OptionError(f"options of {name} must be written as name=value, each once, got {part!r}")
        if key not in types:
            raise OptionError(unknown_message(f"option of {name}", key, types))
        options[key] = _value(f"{key} of {name}", value, types[key])
    gates = {key: options.pop(key) for key in _GATES if key in options}
    return FilterStep(name, kind(**options), **gates)


def _value(option: str, text: str, kind: type) -> Any:
    flags = {"yes": True, "true": True, "no": False, "false": False}
    try:
        return flags[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        rule = {bool: "yes or no", int: "an integer"}.get(kind, "a number")
        raise OptionError(f"{option} must be {rule}, got {text!r}") from None


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "" if value else "-no"
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))  # different options have different names


def _pixels(images: Tensor) -> Any:
    return np.ascontiguousarray(images.permute(0, 2, 3, 1).cpu().numpy())


def _tensor(pixels: Any, like: Tensor) -> Tensor:
    import torch

    return torch.from_numpy(pixels).to(like.device).permute(0, 3, 1, 2)
