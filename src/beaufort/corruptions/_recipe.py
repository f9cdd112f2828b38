"""How a corruption is made at one scale: constants, a draw and a render."""

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
    """Constants by severity; a single entry applies to all severities."""
    draw: Draw | None
    """What is random, `(random, images, params) -> drawn`; None if nothing is."""
    render: Render
    """`(images, params, drawn, ops) -> images`; without `drawn` if nothing is random."""
    published: int
    """Severity used when none is given."""
    bulk: int
    """Approximate bytes of working memory for each value of the image."""
    tensors: bool = True
    """Whether draw and render work on torch tensors, too."""
    smooth: type | None = None
    """Class of constants that selects the smooth geometry of the render, if it has one."""
    fitted: int | None = None
    """The side that constants are fitted to, which may then be fractions; None for published constants.
    Constants of a severity between two published ones are fitted to the side of their scale."""

    def level(self, severity: int) -> Any:
        """Return the constants of a published severity."""
        return self.levels[severity - 1 if len(self.levels) > 1 else 0]

    def run(self, images: Images, params: Any, random: Callable[[], Random], ops: Ops) -> Images:
        """Return the corrupted images; `random` returns a source of the same random numbers each time."""
        if isinstance(params, Mixed):
            both = [recipe.run(images, of, random, ops) for recipe, of in (params.low, params.high)]
            return ops.mix(both, [1 - params.weight, params.weight])
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
        kind, shape = getattr(made, "dtype", type(made).__name__), getattr(made, "shape", None)
        if shape != images.shape or kind != images.dtype:  # NumPy would cast and broadcast it silently
            got = kind if shape is None else f"{kind} of shape {tuple(shape)}"
            hint = (
                ""
                if kind == images.dtype
                else "; round floats, as in np.clip(np.rint(x), 0, 255).astype(np.uint8)"
            )
            raise RenderError(
                f"{self.render.__name__} must return uint8 images of the input shape {tuple(images.shape)}, "
                f"got {got}{hint}"
            )
        return made


@dataclass(frozen=True)
class Mixed:
    """Two severities whose images are mixed, each with its recipe and constants."""

    low: tuple[Recipe, Any]
    high: tuple[Recipe, Any]
    weight: float
    """Weight of the higher one."""

    def _asdict(self) -> dict[str, Any]:
        """Return the constants as a `NamedTuple` does; the key `share` is part of fingerprints."""
        return {"low": self.low[1]._asdict(), "high": self.high[1]._asdict(), "share": self.weight}


class Choice(NamedTuple):
    """What a corruption does to images of one size at one severity."""

    scale: str
    """The published scale of the recipe, also for `auto` and `relative`."""
    recipe: Recipe
    params: Any
    """The constants, fitted to the image at the scales `auto` and `relative`."""
