"""How a corruption is made at one scale: constants, a draw, a render."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from beaufort._core.arrays import Images
from beaufort._core.errors import RenderError
from beaufort.corruptions._kernels import Ops
from beaufort.corruptions._sizes import parts
from beaufort.corruptions.rng import Random

Draw = Callable[[Random, Images, Any], Any]
Render = Callable[..., Images]


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
    """Severity used when none is given."""
    bulk: int
    """Bytes of working memory for each value of the image, roughly."""
    tensors: bool = True
    """Whether draw and render work on torch tensors, too."""

    def level(self, severity: int) -> Any:
        """The constants of a published severity."""
        return self.levels[severity - 1 if len(self.levels) > 1 else 0]

    smooth: type | None = None
    """The class of constants that asks the render for its smooth geometry, if it has one."""
    fitted: int | None = None
    """The side that constants were fitted to, which may have fractions then; None for published ones. Those
    of a severity between two published ones are fitted to the side of their scale."""

    def run(self, images: Images, params: Any, random: Callable[[], Random], ops: Ops) -> Images:
        """The images, corrupted; `random` gives a source of the same random numbers each time."""
        if isinstance(params, Mixed):
            both = [recipe.run(images, of, random, ops) for recipe, of in (params.low, params.high)]
            return ops.mix(both, [1 - params.share, params.share])
        if self.fitted is None:
            return self._run(images, params, random, ops)
        mixed = parts(params, self.fitted, self.smooth)
        made = [self._run(images, part.params, random, ops) for part in mixed]
        return made[0] if len(made) == 1 else ops.mix(made, [part.weight for part in mixed])

    def _run(self, images: Images, params: Any, random: Callable[[], Random], ops: Ops) -> Images:
        if self.draw is None:
            made = self.render(images, params, ops)
        else:
            made = self.render(images, params, self.draw(random(), images, params), ops)
        kind, shape = getattr(made, "dtype", None), getattr(made, "shape", None)
        if shape != images.shape or kind != images.dtype:  # else it would be cast and stretched in silence
            rounded = "; round floats, as in np.clip(np.rint(x), 0, 255).astype(np.uint8)"
            advice = "" if kind == images.dtype else rounded
            kind = type(made).__name__ if kind is None else kind
            raise RenderError(
                f"{self.render.__name__} must return uint8 images of the shape {tuple(images.shape)} that "
                f"came in, got {kind}{'' if shape is None else f' of the shape {tuple(shape)}'}{advice}"
            )
        return made


@dataclass(frozen=True)
class Mixed:
    """Two severities whose pictures are mixed, each with its recipe and constants."""

    low: tuple[Recipe, Any]
    high: tuple[Recipe, Any]
    share: float
    """Of the higher one."""

    def _asdict(self) -> dict[str, Any]:
        """As other constants have it."""
        return {"low": self.low[1]._asdict(), "high": self.high[1]._asdict(), "share": self.share}


class Choice(NamedTuple):
    """What a corruption does to images of one size at one severity."""

    scale: str
    """The published scale whose recipe it is, also where `auto` or `relative` was asked for."""
    recipe: Recipe
    params: Any
    """The constants, fitted to the image at the scales `auto` and `relative`."""
