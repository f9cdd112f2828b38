"""Image filters as they are used: steps in order, each for all images or for noisy ones, made from texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_count
from beaufort.models.filters.base import Views, checked, filter_kinds, validate_field
from beaufort.models.filters.nlm import estimate_noise

if TYPE_CHECKING:
    from torch import Tensor

_GATES = ("above", "below")


@dataclass(frozen=True)
class FilterStep:
    """One filter, or one choice of views, and for which images it is."""

    kind: str
    does: Any
    """A `Filter` or `Views`."""
    above: float | None = None
    """Only images whose noise, by `estimate_noise`, is above this are changed."""
    below: float | None = None
    """Only images whose noise is below this are changed."""

    def __post_init__(self) -> None:
        for name in self._gates:
            if self.makes_views:
                raise OptionError(f"{name} cannot be used with {self.kind}, which shows every image in parts")
            validate_field(self, name, 0, 1)
        if self.below == 0:
            raise OptionError(f"below must be more than 0, or {self.kind} changes no image, got 0")
        if self.above is not None and self.below is not None and self.above >= self.below:
            raise OptionError(
                f"above must be less than below, or {self.kind} changes no image, got "
                f"{_shown(self.above)} and {_shown(self.below)}"
            )

    @property
    def _gates(self) -> dict[str, float]:
        return {name: value for name in _GATES if (value := getattr(self, name)) is not None}

    @property
    def makes_views(self) -> bool:
        """Whether a model sees several views of an image after this step."""
        return isinstance(self.does, Views)

    @property
    def facts(self) -> dict[str, Any]:
        """What decides its pixels, as JSON knows it."""
        kinds: dict[str, Any] = {one.name: type(one.default) for one in fields(self.does)}
        options = {name: kinds[name](value) for name, value in asdict(self.does).items()}
        return {"kind": self.kind, "version": self.does.version, **options, **self._gates}

    @property
    def name(self) -> str:
        """The kind, and the options that are not the usual ones.

        >>> load_filter("nlm:h=0.4,above=0.03").steps[0].name
        'nlm-h0.4-above0.03'
        """
        usual = {one.name: one.default for one in fields(self.does)}
        options = {key: value for key, value in asdict(self.does).items() if value != usual[key]}
        options |= self._gates
        return "-".join([self.kind, *(f"{key}{_shown(value)}" for key, value in options.items())])

    def filtered(self, images: Bytes) -> Bytes:
        """The images, changed where their noise is within the gates."""
        if not self._gates:
            made: Bytes = self.does(images)
            return made
        chosen = self._chosen(images)
        out = images.copy()
        if chosen.any():
            out[chosen] = self.does(images[chosen])
        return out

    def filtered_tensors(self, images: Tensor) -> Tensor:
        """The same of uint8 tensors `(n, channels, h, w)`: on a GPU where the filter can, else on the CPU."""
        if not (images.is_cuda and hasattr(self.does, "on_tensors")):
            return _tensor(self.filtered(_pixels(images)), images)
        made: Tensor = self.does.on_tensors(images)
        if not self._gates:
            return made
        import torch

        chosen = torch.from_numpy(self._chosen(_pixels(images))).to(images.device)
        return torch.where(chosen[:, None, None, None], made, images)

    def _chosen(self, images: Bytes) -> NDArray[np.bool_]:
        noise = estimate_noise(images)
        low = self.above if self.above is not None else -1.0
        high = self.below if self.below is not None else 2.0
        found: NDArray[np.bool_] = (noise > low) & (noise < high)
        return found


@dataclass(frozen=True)
class ImageFilter:
    """Steps in their order. At most one of them shows several views."""

    steps: tuple[FilterStep, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise OptionError("an image filter must have at least one step")
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
        """The images as a model sees them, of a filter that keeps their shape.

        Args:
            images: uint8 `(n, h, w, 1 or 3)`.
            threads: how many to use; all processors if not given. It changes no pixel.
        """
        if self.views is not None:
            raise OptionError(f"{self.name} shows several views of an image; use with_filter")
        return self.show(images, (0, 0), threads)[0]

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

    def show_tensors(self, images: Tensor, size: tuple[int, int]) -> list[Tensor]:
        """The views of uint8 tensors `(n, channels, h, w)`, as `show` has them, on their device."""
        seen = [images]
        for step in self.steps:
            if step.makes_views:
                seen = [_tensor(view, images) for view in step.does(_pixels(seen[0]), size)]
            else:
                seen = [step.filtered_tensors(view) for view in seen]
        return seen


def load_filter(texts: str | ImageFilter | Sequence[str]) -> ImageFilter:
    """The image filter that a text stands for, or several texts in their order.

    Args:
        texts: `clahe:clip=2,tiles=8`: a kind of `filter_kinds`, and options that are fields of it. With
            `above=0.03` or `below=0.03` it is for images whose noise is above or below that.
    """
    if isinstance(texts, ImageFilter):
        return texts
    if not isinstance(texts, Sequence):
        raise OptionError(f"an image filter must be a text such as clahe:clip=2,tiles=8, got {texts!r:.60}")
    return ImageFilter(tuple(map(_step, [texts] if isinstance(texts, str) else texts)))


def _step(text: str) -> FilterStep:
    if not isinstance(text, str) or not text.strip():
        raise OptionError(f"an image filter must be a text such as clahe:clip=2,tiles=8, got {text!r:.60}")
    name, _, rest = text.strip().partition(":")
    if "+" in name or "," in name:
        raise OptionError(f"{text!r:.60} is not one image filter; pass several with --filter or in a list")
    kind = filter_kinds[name.strip()]
    types = {one.name: type(one.default) for one in fields(kind)}
    options: dict[str, Any] = {}
    for part in filter(None, (one.strip() for one in rest.split(","))):
        key, equals, value = (one.strip() for one in part.partition("="))
        if not equals:
            raise OptionError(f"an option of {name} must have the form name=value, got {part!r}")
        if key not in types and key not in _GATES:
            raise OptionError(unknown_message(f"option of {name}", key, {**types, **dict.fromkeys(_GATES)}))
        if key in options:
            raise OptionError(f"an option of {name} must be given once, got {key!r} again")
        options[key] = _value(f"{key} of {name}", value, types.get(key, float))
    gates = {key: options.pop(key) for key in _GATES if key in options}
    return FilterStep(name.strip(), kind(**options), **gates)


def _value(option: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() in ("yes", "true", "no", "false"):
            return text.lower() in ("yes", "true")
        raise OptionError(f"{option} must be yes or no, got {text!r}")
    try:
        return kind(text)
    except ValueError:
        what = "an integer" if kind is int else "a number"
        raise OptionError(f"{option} must be {what}, got {text!r}") from None


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "" if value else "-no"
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))  # other options have other names


def _pixels(images: Tensor) -> Any:
    return np.ascontiguousarray(images.permute(0, 2, 3, 1).cpu().numpy())


def _tensor(pixels: Any, like: Tensor) -> Tensor:
    import torch

    return torch.from_numpy(pixels).to(like.device).permute(0, 3, 1, 2)
