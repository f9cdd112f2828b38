"""What a corruption is: constants by scale, a draw, a render, and everything around them.

A file of this package holds one corruption: the constants, what is drawn for each image, and how it
is rendered. Checking, choosing constants, deriving keys, cutting a batch into pieces that fit the
cache, and keeping shape and alpha happen here, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes, Images, is_tensor, open_batch
from beaufort.corruptions._tensors import run_tensors
from beaufort.corruptions._threads import in_threads
from beaufort.errors import OptionError
from beaufort.ops import Ops, cpu_ops
from beaufort.registry import Registry
from beaufort.rng import STREAMS, Id, Key, Keyed, Random, Reference, id_words

__all__ = [
    "SCALES",
    "SCALE_NAMES",
    "SEVERITIES",
    "Area",
    "Corruption",
    "PerPixel",
    "Pixels",
    "WholePixels",
    "corruption",
    "corruptions",
]

SCALES = {"mnist": 28, "cifar": 32, "tiny": 64, "imagenet": 224, "inception": 299}
"""The published scales and the side, in pixels, that their constants were chosen for."""

SCALE_NAMES = ("auto", "relative", *SCALES)
SEVERITIES = (1, 2, 3, 4, 5)

Pixels = Annotated[float, "pixels"]
"""A constant in pixels: grows with the image at scale `relative`."""
WholePixels = Annotated[int, "whole pixels"]
"""As `Pixels`, rounded, at least 1."""
Area = Annotated[float, "pixels²"]
"""A constant that must grow with the square of the side to do the same."""
PerPixel = Annotated[float, "1/pixels"]
"""A constant that must shrink as the image grows."""

_PIECE = 602_112
"""How many bytes are worked on at a time: four 224×224×3 images, or one with a number drawn a value."""

ENGINES = ("auto", "cpu", "torch")

Draw = Callable[[Random, Images, Any], Any]
Render = Callable[..., Images]
R = TypeVar("R", bound=Render)


@dataclass(frozen=True)
class Recipe:
    """How a corruption is made at one scale."""

    levels: tuple[Any, ...]
    """Constants by severity; a single entry serves all severities."""
    draw: Draw | None
    """What is random, `(random, images, params) -> drawn`; None if nothing is."""
    render: Render
    """`(images, params, drawn, ops) -> images`; without `drawn` if nothing is random."""
    published: int
    """The severity that stands for none."""
    bulk: int
    """About how many bytes are at hand for each value of the image while it is worked on."""
    tensors: bool = True
    """Whether draw and render work on torch tensors, too."""

    def level(self, severity: int) -> Any:
        return self.levels[severity - 1 if len(self.levels) > 1 else 0]

    def run(self, images: Images, params: Any, random: Random, ops: Ops) -> Images:
        if self.draw is None:
            return self.render(images, params, ops)
        return self.render(images, params, self.draw(random, images, params), ops)


class Choice(NamedTuple):
    """What a corruption does to images of one size at one severity."""

    scale: str
    """The published scale whose recipe it is, also where `auto` or `relative` was asked for."""
    recipe: Recipe
    params: Any
    """The constants, grown to the image where the scale is relative."""


class Corruption:
    """A named way to damage images, at severities 1 to 5, with constants for each scale.

    Same image id and seed, same pixels: whatever the batch, the order, the thread, the process.
    """

    def __init__(self, name: str, group: str, version: int, doc: str, *, graded: bool = True) -> None:
        self.name = name
        self.group = group
        self.version = version
        self.graded = graded
        self.__doc__ = doc
        self.recipes: dict[str, Recipe] = {}

    def __repr__(self) -> str:
        return f"<Corruption {self.name}: {self.summary}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.name,)

    @property
    def summary(self) -> str:
        """The first line of its description."""
        return (self.__doc__ or "").partition("\n")[0]

    @property
    def random(self) -> bool:
        """Whether two seeds give two results."""
        return any(recipe.draw for recipe in self.recipes.values())

    @property
    def tensors(self) -> bool:
        """Whether it works on torch tensors where they are, at every scale; else the CPU engine does it."""
        return all(recipe.tensors for recipe in self.recipes.values())

    def at(
        self,
        *scales: str,
        levels: Sequence[Any],
        draw: Draw | None = None,
        published: int = 1,
        bulk: int | None = None,
        tensors: bool = True,
    ) -> Callable[[R], R]:
        """Add the recipe for more scales; used as a decorator on its render."""

        def add(render: R) -> R:
            for scale in scales:
                self.recipes[scale] = Recipe(
                    tuple(levels), draw, render, published, bulk or (4 if draw else 1), tensors
                )
            return render

        return add

    def __call__(
        self,
        images: Any,
        severity: int | None = None,
        *,
        ids: Sequence[Id] | None = None,
        seed: int = 0,
        scale: str = "auto",
        stream: str = "keyed",
        jobs: int = 1,
        engine: str = "auto",
    ) -> Any:
        """Corrupt one image or a batch; what comes back has the kind, shape, dtype and device that came.

        Args:
            images: uint8 NumPy `(h, w)`, `(h, w, 1|3|4)`, `(n, h, w, 1|3|4)`, a uint8 torch tensor
                `(1|3|4, h, w)` or `(n, 1|3|4, h, w)` on any device, or a PIL image.
            severity: 1 to 5. None is 1, or at scale `mnist` the published severity.
            ids: one identity an image, a number or a text. Without, an image's own pixels identify it.
            seed: any whole number.
            scale: `imagenet`, `inception`, `tiny`, `cifar`, `mnist`, or `auto` (the nearest of them by
                the short side), or `relative` (constants in pixels grow with the short side).
            stream: `keyed`, or `reference` for the draws of NumPy's legacy generator seeded with
                `seed`, one image of the batch after the other.
            jobs: threads of the CPU engine to use on a batch.
            engine: `cpu` or `torch`; `auto` is torch for tensors on a CUDA device, if the recipe can do
                tensors, and the CPU engine for all else, which is faster where both can work. The reference
                stream is the CPU engine's.
        """
        batch = open_batch(images)
        color = batch.color
        height, width, channels = color.shape[1:]
        _, recipe, params = self.choose(severity, scale=scale, side=min(height, width), channels=channels)
        level = recipe.published if severity is None else int(severity)
        if ids is not None and (isinstance(ids, str) or len(ids) != len(color)):
            raise OptionError(
                f"ids {ids!r:.60} came for {len(color)} images; give one id an image, in a list"
            )
        if not _is_whole(jobs) or jobs < 1:
            raise OptionError(f"jobs={jobs!r} came; accepted is a whole number of threads, 1 or more")
        if stream not in STREAMS:
            raise OptionError(f"the stream {stream!r} came; accepted are {' and '.join(STREAMS)}")
        if engine not in ENGINES:
            raise OptionError(f"the engine {engine!r} came; accepted are {', '.join(ENGINES)}")
        words = None if ids is None else id_words(ids)
        if stream == "reference":
            return batch.close(self._run_reference(_host(color), recipe, params, Reference(seed)))
        key = Key.of(_whole(seed), self.name, self.version, level)
        if engine == "torch" and not recipe.tensors:
            raise OptionError(
                f"{self.name} is declared with tensors=False, so engine must be 'auto' or 'cpu', got 'torch'"
            )
        if engine == "torch" or (engine == "auto" and is_tensor(color) and color.is_cuda and recipe.tensors):
            return batch.close(run_tensors(color, recipe, params, key, words))
        return batch.close(self._run_keyed(_host(color), recipe, params, key, words, jobs))

    def params(self, severity: int | None = None, scale: str = "imagenet", side: int | None = None) -> Any:
        """The constants at a severity and scale, for an image whose short side is `side`.

        >>> corruptions["gaussian_noise"].params(3).sigma
        0.18
        """
        side = SCALES.get(scale, 224) if side is None else side
        return self.choose(severity, scale=scale, side=side).params

    def choose(self, severity: int | None = None, *, scale: str, side: int, channels: int = 3) -> Choice:
        """Whose recipe is used on an image, and with which constants.

        >>> corruptions["fog"].choose(3, scale="auto", side=30).scale
        'cifar'

        Args:
            severity: as for a call.
            scale: as for a call.
            side: the short side of the image in pixels, for the scales `auto` and `relative`.
            channels: 1 for a grey image; `auto` takes `mnist` for those only.
        """
        if severity is not None and (not _is_whole(severity) or severity not in SEVERITIES):
            raise OptionError(f"the severity {severity!r} came; accepted is a whole number from 1 to 5")
        if scale == "auto":
            scale = _nearest_scale(side, channels)
            if scale not in self.recipes:
                scale = "relative"
        factor = 1.0
        if scale == "relative":
            scale = "imagenet" if "imagenet" in self.recipes else "mnist"
            factor = side / SCALES[scale]
        if scale not in SCALES:
            raise OptionError(f"the scale {scale!r} came; accepted are {', '.join(SCALE_NAMES)}")
        if scale not in self.recipes:
            raise OptionError(
                f"{self.name} has no constants for the scale {scale!r}; it has them for "
                f"{', '.join(self.recipes)}, and 'relative' fits any size"
            )
        recipe = self.recipes[scale]
        params = recipe.level(recipe.published if severity is None else int(severity))
        return Choice(scale, recipe, params if factor == 1 else _grow(params, factor))

    def _run_reference(self, color: Bytes, recipe: Recipe, params: Any, random: Reference) -> Bytes:
        out = np.empty_like(color)
        for i in range(len(color)):
            out[i : i + 1] = recipe.run(color[i : i + 1], params, random, cpu_ops())
        return out

    def _run_keyed(
        self,
        color: Bytes,
        recipe: Recipe,
        params: Any,
        key: Key,
        words: NDArray[np.uint64] | None,
        jobs: int,
    ) -> Bytes:
        ops = cpu_ops()
        out = np.empty_like(color)
        ids = words if words is not None else _content_ids(color, recipe, ops)
        step = max(1, _PIECE // (math.prod(color.shape[1:]) * recipe.bulk))
        if jobs > 1:  # larger pieces, because threads wait for each other between them
            step = max(1, min(4 * step, len(color) // (4 * jobs)))

        def run(start: int) -> None:
            part = slice(start, start + step)
            out[part] = recipe.run(color[part], params, Keyed(key, ids[part], ops), ops)

        in_threads(run, range(0, len(color), step), jobs)
        return out


def _host(color: Images) -> Bytes:
    return color if isinstance(color, np.ndarray) else color.cpu().numpy()


def _content_ids(color: Bytes, recipe: Recipe, ops: Ops) -> NDArray[np.uint64]:
    return np.zeros(len(color), np.uint64) if recipe.draw is None else ops.content_ids(color)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole(seed: int) -> int:
    if not _is_whole(seed):
        raise OptionError(f"the seed {seed!r} came; accepted is a whole number")
    return int(seed)


def _nearest_scale(side: int, channels: int) -> str:
    """The scale whose side is nearest in ratio; `mnist` is for grey images only."""
    near = {name: abs(math.log(side / of)) for name, of in SCALES.items() if name != "mnist" or channels == 1}
    return min(near, key=near.__getitem__)


@lru_cache(maxsize=1024, typed=True)  # equal constants of two corruptions are two things
def _grow(params: Any, factor: float) -> Any:
    """The same damage on an image `factor` times as large."""
    grown: dict[str, float] = {}
    for name, hint in get_type_hints(type(params), include_extras=True).items():
        value = getattr(params, name)
        match getattr(hint, "__metadata__", ()):
            case ("pixels",):
                grown[name] = value * factor
            case ("whole pixels",):
                grown[name] = max(1, round(value * factor))
            case ("pixels²",):
                grown[name] = value * factor**2
            case ("1/pixels",):
                grown[name] = value / factor
    return params._replace(**grown)


corruptions: Registry[Corruption] = Registry("corruption")
"""Every corruption by its name."""


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
    tensors: bool = True,
) -> Callable[[Render], Corruption]:
    """Register a render as the corruption of its name.

    Args:
        group: `noise`, `blur`, `weather`, `digital` or `digits`.
        levels: for each scale the constants of severities 1 to 5, or a single one.
        draw: what is random for each image; its result is handed to the render.
        published: the severity taken when none is given.
        version: goes up when the pixels of an unchanged call change.
        graded: whether severity 5 changes the pixels more than severity 1.
        tensors: whether draw and render work on torch tensors, too; give False if they are for arrays only,
            and images on a GPU go through the CPU engine.
    """

    def register(render: Render) -> Corruption:
        made = Corruption(render.__name__, group, version, render.__doc__ or "", graded=graded)
        for scale, constants in levels.items():
            made.at(scale, levels=constants, draw=draw, published=published, tensors=tensors)(render)
        corruptions.register(made.name, made)
        return made

    return register
