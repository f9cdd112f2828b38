"""Constants for images of any size and for any severity: published ones, and a continuous way between.

Two rules fit constants to a size. `between` goes from the constants of one published size to those of the
next; `grown` does to an image what a published scale does at its own size. A third one, `between_severities`,
goes from one published severity to the next. All give fractions where a recipe can take integers only:
two and a half sweeps, 88.7 cells a side. `parts` says which integers are rendered then, and how the
results are mixed, so that nothing jumps as an image grows by a pixel, or a severity by a little.
"""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Callable
from functools import lru_cache
from itertools import count, pairwise
from typing import Annotated, Any, NamedTuple, get_origin, get_type_hints

from beaufort._core.errors import SizeWarning

SCALES = {"mnist": 28, "cifar": 32, "tiny": 64, "imagenet": 224, "inception": 299}
"""The published scales and the side, in pixels, that their constants were chosen for."""

Pixels = Annotated[float, "pixels"]
"""A constant in pixels: grows with the image at scale `relative`."""
WholePixels = Annotated[int, "whole pixels"]
"""As `Pixels`, at least 1, and whole."""
DiskRadius = Annotated[float, "disk radius"]
"""As `Pixels`; the disk has whole pixels, so that it grows in steps."""
Area = Annotated[float, "pixels²"]
"""A constant that must grow with the square of the side to do the same."""
PerPixel = Annotated[float, "1/pixels"]
"""A constant that must shrink as the image grows; times the side it is a number of cells, cut off."""
FractionOfSide = Annotated[float, "share of the side"]
"""A share that stays; times the side it is rounded to an integer."""
FractionKept = Annotated[float, "share kept"]
"""A share of the image that stays as it was: the rest is the damage."""
Enlargement = Annotated[float, "enlargement"]
"""As `Pixels`: how much noise is enlarged, at least 1. Noise that is not enlarged at all is not smoothed."""
Softness = Annotated[float, "softness"]
"""As `Pixels`: the standard deviation of a Gaussian of three pixels."""

_STEPS = 256
"""Weights of parts are multiples of one over this: less shows in no 8-bit value."""

_RAMP = 6
"""Pixels from a published size at which nothing of its own geometry is left."""

_ENLARGED = 1.25
"""The smallest published enlargement above 1."""

_RADII = sorted({math.hypot(x, y) for x in range(9) for y in range(9) if x * x + y * y <= 64})
"""Radii up to 8 at which a disk of whole pixels grows. Beyond, it grows by a few percent at a time."""

_ABOVE = 1 + 1e-9
"""Lifts a product that should be whole above it, whatever the rounding."""

FAR = 3 * SCALES["inception"]
"""From this short side on, constants for 299 pixels show so little that a notice is due."""

_given = count()


class Rendering(NamedTuple):
    """One of the renderings that are mixed."""

    weight: float
    params: Any


@lru_cache(maxsize=1024, typed=True)  # equal constants of two corruptions are two things
def grown(params: Any, side: int, base: int) -> Any:
    """The constants that do to an image of a side what `params` do to one of the side `base`.

    Published constants are to be `snapped` first.
    """
    factor = side / base
    return params._replace(**{name: _grown(value, kind, factor) for name, value, kind in _fields(params)})


def _grown(value: float, kind: str, factor: float) -> float:
    match kind:
        case "pixels" | "disk radius" | "softness" | "enlargement":
            return value * factor
        case "whole pixels":
            return max(1, value * factor)
        case "pixels²":
            return value * factor**2
        case "1/pixels":
            return value / factor
    return value


@lru_cache(maxsize=4096, typed=True)
def between(low: Any, low_side: int, high: Any, high_side: int, side: int) -> Any:
    """The constants for a side between two published ones.

    The damage that a constant does goes from one value to the other by equal factors a pixel, or in equal
    steps if one of the two is zero. That keeps the change from one pixel to the next as small as it can be
    everywhere. Published constants are to be `snapped` first.
    """
    return _mixed(low, high, (side - low_side) / (high_side - low_side), _by_factors)


@lru_cache(maxsize=4096, typed=True)
def between_severities(low: Any, high: Any, share: float, side: int) -> Any:
    """The constants for a severity between two whole ones, in equal steps from one value to the other.

    Integers are rounded to the nearest, halves toward the higher severity. What results stands for the
    whole things that it makes at the side it was published for, so it need not be `snapped`.

    Constants may have a method `leads_to(higher)`: where it is false, there is nothing between the two, and
    those of the lower severity serve until the higher one is reached.

    >>> class Params(NamedTuple):
    ...     sigma: float
    ...     sweeps: int
    >>> between_severities(Params(0.1, 1), Params(0.2, 4), 0.5, 224)
    Params(sigma=0.15, sweeps=3)

    Args:
        low: the constants of the lower severity.
        high: those of the next one.
        share: how far it is on the way from one to the other, 0 to 1.
        side: of the images that both were published for.
    """
    if not getattr(low, "leads_to", lambda _: True)(high):
        return low
    low, high = snapped(low, side), snapped(high, side)
    mixed = _mixed(low, high, share, _by_steps)
    whole = {
        name: _rounded(value, getattr(high, name) - getattr(low, name))
        for name, value, kind in _fields(mixed)
        if kind in ("whole", "whole pixels")
    }
    return mixed._replace(**whole)


def _rounded(value: float, toward: float) -> int:
    """The nearest integer, of two that are as near the one in the direction of `toward`."""
    return math.floor(value + 0.5) if toward > 0 else math.ceil(value - 0.5)


def _mixed(low: Any, high: Any, share: float, way: Callable[[float, float, float], float]) -> Any:
    """Constants on the way from some to others; ten digits are kept, which every machine agrees on.

    What is no number stays as it was, until the others are reached.
    """
    mixed: dict[str, float] = {}
    for name, a, kind in _fields(low):
        b = getattr(high, name)
        same = a == b or not (_is_number(a) and _is_number(b))
        mixed[name] = a if same else float(f"{_on_the_way(a, b, kind, share, way):.10g}")
    return low._replace(**mixed)


def _on_the_way(
    a: float, b: float, kind: str, share: float, way: Callable[[float, float, float], float]
) -> float:
    match kind:
        case "share kept":
            return 1 - way(1 - a, 1 - b, share)
        case "softness":
            weight = way(_neighbor(a), _neighbor(b), share)
            if weight > 0:
                return 1 / math.sqrt(-2 * math.log(weight))
    return way(a, b, share)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _by_factors(a: float, b: float, share: float) -> float:
    way: float = a ** (1 - share) * b**share if a > 0 and b > 0 else _by_steps(a, b, share)
    return way


def _by_steps(a: float, b: float, share: float) -> float:
    return a + (b - a) * share


def _neighbor(softness: float) -> float:
    """The weight of the next pixel against that of the middle; 0 if it shows in no 8-bit value."""
    weight = math.exp(-1 / (2 * softness**2))
    return weight if weight > 1e-3 else 0.0


def settled(params: Any, side: int) -> Any:
    """Published constants of a size as the whole things that they stand for there."""
    return between(snapped(params, side), side, snapped(params, side + 1), side + 1, side)


@lru_cache(maxsize=1024, typed=True)
def snapped(params: Any, side: int) -> Any:
    """Published constants with each number that stands for a whole thing at its own size as that thing."""
    return params._replace(**{name: _snapped(value, kind, side) for name, value, kind in _fields(params)})


def parts(params: Any, side: int, smooth: type | None = None) -> tuple[Rendering, ...]:
    """What is rendered for fitted constants, and with which weight; one part if all of them are whole.

    Where several constants have fractions, those with the larger ones are rounded up in more of the parts:
    2.3 and 1.6 are 3 and 2 with weight 0.3, 2 and 2 with weight 0.3, 2 and 1 with weight 0.4.

    Args:
        params: the constants.
        side: what they were fitted to.
        smooth: the class of constants that asks a render for its smooth geometry, if it has one.
    """
    steps = {name: step for name, value, kind in _fields(params) if (step := _step(value, kind, side))}
    cuts = sorted({0.0, 1.0, *(step.share for step in steps.values())})
    found = []
    for since, upto in pairwise(cuts):
        values = {name: step.up if step.share >= upto else step.down for name, step in steps.items()}
        whole = params._replace(**values)
        found.append(Rendering(upto - since, smooth(*whole) if smooth else whole))
    return tuple(found)


def ends(side: int) -> tuple[int, int, float]:
    """The published sizes for photos around a side, and how far it is on the way from one to the other.

    >>> ends(48), ends(20), ends(1000)
    ((32, 64, 0.5), (32, 32, 0.0), (299, 299, 0.0))
    """
    sizes = [at for scale, at in SCALES.items() if scale != "mnist"]
    low = max((at for at in sizes if at <= side), default=sizes[0])
    high = min((at for at in sizes if at >= side), default=sizes[-1])
    return low, high, (side - low) / (high - low) if high > low else 0.0


def nearness(side: int) -> float:
    """1 at a published size for photos, 0 from 6 pixels away on."""
    low, high, _ = ends(side)
    return max(0.0, 1 - min(abs(side - low), abs(side - high)) / _RAMP)


class _Step(NamedTuple):
    """The two values a recipe can take, and the share of the upper one."""

    down: float
    up: float
    share: float


def _step(value: float, kind: str, side: int) -> _Step | None:
    """None for a constant that may have any value."""
    match kind:
        case "whole" | "whole pixels":
            whole = math.floor(value)
            return _Step(whole, whole + 1, weight_of(value - whole))
        case "share of the side":
            cells = value * side
            whole = math.floor(cells * _ABOVE)
            return _Step(whole / side * _ABOVE, (whole + 1) / side * _ABOVE, weight_of(cells - whole))
        case "enlargement" if 1 < value < _ENLARGED:
            return _Step(1, _ENLARGED, weight_of((value - 1) / (_ENLARGED - 1)))
        case "disk radius" if value < _RADII[-1]:
            at = bisect.bisect_right(_RADII, value * _ABOVE)
            inner, outer = _RADII[at - 1], _RADII[at]
            return _Step(inner * _ABOVE, outer * _ABOVE, weight_of((value - inner) / (outer - inner)))
    return None


def weight_of(share: float) -> float:
    """The share of one of two images that are mixed."""
    return round(max(share, 0) * _STEPS) / _STEPS


def _snapped(value: float, kind: str, side: int) -> float:
    """A published constant as the whole thing that it stands for at its own size."""
    match kind:
        case "1/pixels":
            return int(value * side) / side
        case "share of the side":
            return round(value * side) / side
        case "disk radius" if value < _RADII[-1]:
            return _RADII[bisect.bisect_right(_RADII, value) - 1]
    return value


def _fields(params: Any) -> list[tuple[str, float, str]]:
    """Name, value and kind of each constant."""
    return [(name, getattr(params, name), kind) for name, kind in _kinds(params.__class__)]


@lru_cache(maxsize=64)
def _kinds(of: Any) -> list[tuple[str, str]]:
    hints = get_type_hints(of, include_extras=True)
    kinds = []
    for name, hint in hints.items():
        if get_origin(hint) is Annotated:
            kinds.append((name, str(hint.__metadata__[0])))
        else:
            kinds.append((name, "whole" if hint is int else "any"))
    return kinds


def warn_size(side: int) -> None:
    """Warn of images with a short side of so many pixels; only the first call in a process does."""
    if next(_given) == 0:  # one step of a counter, so that of several threads one is first
        warnings.warn(
            f"the images have a short side of {side} pixels, far from the published sizes of 32 to 299: "
            "scale 'auto' uses the constants for 299 pixels, and a blur of a few pixels hardly shows here; "
            "scale='relative' lets them grow with the image",
            SizeWarning,
            stacklevel=3,
        )
