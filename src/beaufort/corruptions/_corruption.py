"""The class of corruptions: constants by scale, a draw, a render, and what all of them share.

A file of this package holds one corruption: the constants, what is drawn for each image, and how it
is rendered. Validation, selection of constants and derivation of keys happen here, once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from typing import Any, TypeVar

import numpy as np

from beaufort._core.arrays import as_batch, on_host
from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry, unknown_message
from beaufort._core.validation import validate_count
from beaufort.corruptions._backends import run_arrays, run_reference, run_tensors
from beaufort.corruptions._recipe import Choice, Draw, Mixed, Recipe, Render
from beaufort.corruptions._sizes import (
    FAR,
    SCALES,
    between,
    between_severities,
    grown,
    settled,
    snapped,
    warn_size,
    weight_of,
)
from beaufort.corruptions.rng import (
    STREAMS,
    Id,
    Key,
    ReferenceStream,
    id_words,
    validate_ids,
    validate_seed,
)

SCALE_NAMES = ("auto", "relative", *SCALES)
SEVERITIES = (1, 2, 3, 4, 5)
"""The published severities; numbers between them are severities, too."""

Severity = int | float
"""A number from 1 to 5; an integer is an `int`."""

_SEVERITY = re.compile(r"[0-9](\.[0-9]{1,20})?")

_PHOTOS = tuple(scale for scale in SCALES if scale != "mnist")
"""The scales for photos. Their recipes differ only in constants, which can be interpolated."""

_CHOICES = 4096
"""Choices that a corruption caches: sizes and severities may differ from image to image."""

BACKENDS = ("auto", "cpu", "torch")

R = TypeVar("R", bound=Render)


class Corruption:
    """A named way to damage images, at any severity from 1 to 5, with constants for each scale.

    Same image id and seed, same pixels: whatever the batch, the order, the thread, the process.
    """

    def __init__(
        self,
        name: str,
        group: str,
        version: int,
        doc: str,
        *,
        graded: bool = True,
        moves: bool = False,
        mixes: bool = False,
        files: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.group = group
        self.version = version
        self.graded = graded
        self.moves = moves
        """Whether it moves objects in the image, so that boxes and masks no longer fit."""
        self.mixes = mixes
        """Whether a severity between two others mixes their images instead of their constants."""
        self.files = files
        """Entries of the catalog that it needs; `beaufort data pull` downloads them."""
        self.__doc__ = doc
        self.recipes: dict[str, Recipe] = {}
        self._chosen: dict[tuple[Severity | None, str, int, int], Choice] = {}
        """Cached results of `choose`, which takes as long as everything else around a fast kernel."""
        self._chosen_from: tuple[Recipe, ...] = ()

    def __repr__(self) -> str:
        return f"<Corruption {self.name}: {self.summary}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.name,)

    @property
    def summary(self) -> str:
        """The first line of the description."""
        return (self.__doc__ or "").partition("\n")[0]

    @property
    def random(self) -> bool:
        """Whether the result depends on the seed."""
        return any(recipe.draw for recipe in self.recipes.values())

    @property
    def tensors(self) -> bool:
        """Whether it runs on torch tensors on their device, at every scale, instead of on the CPU."""
        return all(recipe.tensors for recipe in self.recipes.values())

    @property
    def relative_to(self) -> str:
        """The published scale whose constants are scaled to the image at scale `relative`."""
        order = ("imagenet", "cifar", "inception", "tiny")
        return next((scale for scale in order if scale in self.recipes), "mnist")

    def at(
        self,
        *scales: str,
        levels: Sequence[Any],
        draw: Draw | None = None,
        published: int = 1,
        bulk: int | None = None,
        smooth: type | None = None,
        tensors: bool = True,
    ) -> Callable[[R], R]:
        """Add a recipe for more scales; a decorator of its render."""
        if not scales or not set(scales) <= set(SCALES):
            given = ", ".join(map(repr, scales)) or "no scale"
            raise OptionError(
                f"{self.name} requires constants for scales of {', '.join(SCALES)}, got {given}"
            )

        def add(render: R) -> R:
            for scale in scales:
                self.recipes[scale] = Recipe(
                    tuple(levels), draw, render, published, bulk or (4 if draw else 1), tensors, smooth
                )
            return render

        return add

    def for_digits(
        self,
        levels: Sequence[Any],
        *,
        published: int,
        draw: Draw | None = None,
        bulk: int | None = None,
        **options: Any,
    ) -> None:
        """Add the recipe of MNIST-C: the draw and the render for photos, with options such as `nearest=True`.

        Args:
            levels: the constants of severities 1 to 5.
            published: the severity of the published dataset.
            draw: a draw of its own, instead of that for photos.
            bulk: as for `corruption`.
            **options: keyword arguments of the render.
        """
        photos = self.recipes["imagenet"]
        render = update_wrapper(partial(photos.render, **options), photos.render)
        self.at("mnist", levels=levels, draw=draw or photos.draw, published=published, bulk=bulk)(render)

    def __call__(
        self,
        images: Any,
        severity: Severity | None = None,
        *,
        ids: Sequence[Id] | None = None,
        seed: int = 0,
        scale: str = "auto",
        stream: str = "keyed",
        jobs: int = 1,
        backend: str = "auto",
    ) -> Any:
        """Corrupt one image or a batch; the result has the type, shape, dtype and device of the input.

        Args:
            images: a uint8 NumPy array `(h, w)`, `(h, w, 1|3|4)` or `(n, h, w, 1|3|4)`, a uint8 torch tensor
                `(1|3|4, h, w)` or `(n, 1|3|4, h, w)` on any device, or a PIL image.
            severity: 1 to 5; the constants of 2.5 are halfway between those of 2 and 3. None means 1, or at
                scale `mnist` the published severity.
            ids: one id per image, an integer or a string. By default an image's pixels identify it.
            seed: any integer.
            scale: `imagenet`, `inception`, `tiny`, `cifar` or `mnist`; `auto` for the published constants of
                the image's short side, interpolated between published sizes; `relative` for constants that
                grow with the short side.
            stream: `keyed`, or `reference` for the draws of NumPy's legacy generator seeded with
                `seed`, one image of the batch after the other.
            jobs: number of threads of the CPU backend for a batch.
            backend: `cpu` or `torch`. `auto` selects torch for tensors on a CUDA device if the recipe
                supports tensors, else the CPU backend. The reference stream always uses the CPU backend.
        """
        batch = as_batch(images)
        color = batch.color
        count, height, width, channels = color.shape
        side = min(height, width)
        _, recipe, params = self.choose(severity, scale=scale, side=side, channels=channels)
        if scale == "auto" and side >= FAR and recipe.fitted != side:
            warn_size(side)
        level = recipe.published if severity is None else validate_severity(severity)
        validate_ids(ids, count)
        if type(jobs) is not int or jobs < 1:  # fast path
            jobs = validate_count("jobs", jobs)
        validate_option("stream", stream, STREAMS)
        validate_option("backend", backend, BACKENDS)
        words = None if ids is None else id_words(ids)
        if stream == "reference":
            return batch.close(run_reference(on_host(color), recipe, params, ReferenceStream(seed)))
        key = Key.of(validate_seed(seed), self.name, self.version, level)
        if backend == "torch" and not recipe.tensors:
            raise OptionError(f"backend 'torch' cannot be used with {self.name}, which has tensors=False")
        on_gpu = not isinstance(color, np.ndarray) and color.is_cuda
        if backend == "torch" or (backend == "auto" and on_gpu and recipe.tensors):
            return batch.close(run_tensors(color, recipe, params, key, words))
        return batch.close(run_arrays(on_host(color), recipe, params, key, words, jobs))

    def params(
        self, severity: Severity | None = None, scale: str = "imagenet", side: int | None = None
    ) -> Any:
        """Return the constants at a severity and scale, for an image whose short side is `side`.

        >>> corruptions["gaussian_noise"].params(3).sigma
        0.18
        >>> corruptions["gaussian_noise"].params(2.5).sigma
        0.15
        """
        side = SCALES.get(scale, 224) if side is None else side
        return self.choose(severity, scale=scale, side=side).params

    def choose(self, severity: Severity | None = None, *, scale: str, side: int, channels: int = 3) -> Choice:
        """Return the recipe and the constants for an image.

        >>> corruptions["fog"].choose(3, scale="auto", side=30).scale
        'cifar'

        Args:
            severity: as for a call.
            scale: as for a call.
            side: short side of the image in pixels, for the scales `auto` and `relative`.
            channels: 1 for a gray image; `auto` selects `mnist` only for gray images.
        """
        level = None if severity is None else validate_severity(severity)
        validate_option("scale", scale, SCALE_NAMES)
        recipes = tuple(self.recipes.values())
        if recipes != self._chosen_from or len(self._chosen) > _CHOICES:
            self._chosen, self._chosen_from = {}, recipes
        request, chosen = (level, scale, side, channels), self._chosen
        if request not in chosen:
            chosen[request] = self._choose(*request)
        return chosen[request]

    def _choose(self, level: Severity | None, scale: str, side: int, channels: int) -> Choice:
        if self.mixes and isinstance(level, float):
            return self._choose_mixed(level, scale, side, channels)
        if scale == "auto":
            return self._choose_by_size(level, side, channels)
        if scale == "relative":
            return self._choose_relative(level, side)
        if scale not in self.recipes:
            raise OptionError(
                f"{self.name} has no constants for the scale {scale!r}, only for {', '.join(self.recipes)}; "
                "scale 'relative' works for any size"
            )
        return self._choose_published(level, scale)

    def _choose_mixed(self, severity: Severity, scale: str, side: int, channels: int) -> Choice:
        """Return the choices of the severities below and above, whose images are mixed."""
        step = math.floor(severity)
        low, high = (self.choose(s, scale=scale, side=side, channels=channels) for s in (step, step + 1))
        mixed = Mixed((low.recipe, low.params), (high.recipe, high.params), weight_of(severity - step))
        return low._replace(params=mixed)

    def _choose_published(self, severity: Severity | None, scale: str) -> Choice:
        """Return the constants of a published size, interpolated between two published severities."""
        recipe = self.recipes[scale]
        level = recipe.published if severity is None else severity
        low = math.floor(level)
        params = recipe.level(low)
        if level == low or recipe.level(low + 1) == params:
            return Choice(scale, recipe, params)
        if not hasattr(params, "_replace"):
            raise OptionError(
                f"severity must be an integer, got {level}; the constants of {self.name} are not a NamedTuple"
            )
        params = between_severities(params, recipe.level(low + 1), level - low, SCALES[scale])
        return Choice(scale, replace(recipe, fitted=SCALES[scale], smooth=None), params)

    def _choose_snapped(self, severity: Severity | None, scale: str) -> Choice:
        """Return the constants that other sizes start from, snapped to what they mean at their own size."""
        chosen = self._choose_published(severity, scale)
        if chosen.recipe.fitted is None:
            return chosen._replace(params=snapped(chosen.params, SCALES[scale]))
        return chosen._replace(recipe=self.recipes[scale])

    def _choose_relative(self, severity: Severity | None, side: int) -> Choice:
        scale = self.relative_to
        base = SCALES[scale]
        if side == base:
            return self._choose_published(severity, scale)
        chosen = self._choose_snapped(severity, scale)
        fitted = replace(chosen.recipe, fitted=side)
        return chosen._replace(recipe=fitted, params=grown(chosen.params, side, base))

    def _choose_by_size(self, severity: Severity | None, side: int, channels: int) -> Choice:
        """Return published constants at published sizes and beyond them, and interpolated ones in between."""
        if channels == 1 and side <= SCALES["mnist"] and "mnist" in self.recipes:
            return self._choose_published(severity, "mnist")
        scales = [scale for scale in _PHOTOS if scale in self.recipes]
        below = [scale for scale in scales if SCALES[scale] <= side]
        above = [scale for scale in scales if SCALES[scale] >= side]
        if below and above:
            return self._choose_between(severity, below[-1], above[0], side)
        if below and below[-1] == _PHOTOS[-1]:
            return self._choose_published(severity, below[-1])
        if above and above[0] == _PHOTOS[0]:
            return self._choose_below(severity, side)
        return self._choose_relative(severity, side)

    def _choose_below(self, severity: Severity | None, side: int) -> Choice:
        """Return the constants of the smallest size, with a smooth geometry if there is one."""
        chosen = self._choose_published(severity, _PHOTOS[0])
        recipe = self.recipes[_PHOTOS[0]]
        if not recipe.smooth:
            return chosen
        whole = chosen.recipe.fitted is None
        params = settled(chosen.params, SCALES[_PHOTOS[0]]) if whole else chosen.params
        return chosen._replace(recipe=replace(recipe, fitted=side), params=params)

    def _choose_between(self, severity: Severity | None, below: str, above: str, side: int) -> Choice:
        low, high = self._choose_published(severity, below), self._choose_published(severity, above)
        near = min(low, high, key=lambda chosen: abs(math.log(side / SCALES[chosen.scale])))
        recipe = self.recipes[near.scale]
        alike = low.recipe.render is high.recipe.render and low.recipe.draw is high.recipe.draw
        alike = alike and type(low.params) is type(high.params) and hasattr(low.params, "_replace")
        same = low.params == high.params and not recipe.smooth
        if below == above or same or not alike:
            return near
        low, high = self._choose_snapped(severity, below), self._choose_snapped(severity, above)
        fitted = between(low.params, SCALES[below], high.params, SCALES[above], side)
        return near._replace(recipe=replace(recipe, fitted=side), params=fitted)


def validate_option(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise an error unless the value is one of the choices."""
    if value not in choices:
        raise OptionError(unknown_message(name, value, choices))


def validate_severity(severity: object) -> Severity:
    """Return the severity, as an `int` if it is an integer; raise an error if it is invalid.

    >>> validate_severity(3.0), validate_severity(2.5)
    (3, 2.5)
    """
    if type(severity) is int and 1 <= severity <= SEVERITIES[-1]:  # fast path
        return severity
    number = isinstance(severity, int | float | np.integer | np.floating) and not isinstance(severity, bool)
    if not number or not 1 <= severity <= SEVERITIES[-1]:  # type: ignore[operator]
        raise OptionError(f"severity must be a number from 1 to 5, got {severity!r:.60}")
    value = float(severity)  # type: ignore[arg-type]
    return int(value) if value.is_integer() else value


def parse_severity(text: str) -> Severity:
    """Return the severity written as a string, in its only valid form.

    >>> parse_severity("2.5"), parse_severity("3")
    (2.5, 3)
    """
    if not _SEVERITY.fullmatch(text) or not 1 <= float(text) <= SEVERITIES[-1]:
        raise OptionError(f"severity must be a number from 1 to 5, got {text!r}")
    severity = validate_severity(float(text))
    if str(severity) != text:
        raise OptionError(f"severity must be written as {severity}, got {text!r}")
    return severity


corruptions: Registry[Corruption] = Registry("corruption")
"""All corruptions by name."""


def _by_name(name: str) -> Corruption:
    return corruptions[name]


def corruption(
    group: str,
    *,
    levels: Mapping[str, Sequence[Any]],
    draw: Draw | None = None,
    published: int = 1,
    version: int = 1,
    graded: bool = True,
    moves: bool = False,
    smooth: type | None = None,
    mixes: bool = False,
    tensors: bool = True,
    files: tuple[str, ...] = (),
    bulk: int | None = None,
) -> Callable[[Render], Corruption]:
    """Register a render as the corruption of its name.

    Args:
        group: `noise`, `blur`, `weather`, `digital` or `digits`.
        levels: for each scale the constants of severities 1 to 5, or one entry for all.
        draw: draws what is random for each image; the render gets its result.
        published: the severity used when none is given.
        version: increases when the pixels of an unchanged call change.
        graded: whether severity 5 changes the pixels more than severity 1.
        moves: whether it moves objects in the image, so that boxes and masks no longer fit.
        smooth: a subclass of the constants without fields of its own. Away from the published sizes the
            render gets its constants as this class, if its own geometry would jump from one size to
            the next.
        mixes: whether a severity between two published ones mixes their images, because the constants
            cannot be interpolated one by one.
        tensors: whether draw and render work on torch tensors, too. With False, images on a GPU are
            corrupted by the CPU backend.
        files: entries of the catalog that it needs; a run downloads them before its first image.
        bulk: bytes of working memory for each value of an image; by default 4 if anything is random, else 1.
    """

    def register(render: Render) -> Corruption:
        doc = render.__doc__ or ""
        made = Corruption(
            render.__name__, group, version, doc, graded=graded, moves=moves, mixes=mixes, files=files
        )
        recipe: dict[str, Any] = {
            "draw": draw,
            "published": published,
            "bulk": bulk,
            "smooth": smooth,
            "tensors": tensors,
        }
        if not levels:
            made.at(levels=())  # raises the error
        for scale, constants in levels.items():
            made.at(scale, levels=constants, **recipe)(render)
        corruptions.register(made.name, made)
        return made

    return register
