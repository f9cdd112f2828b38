"""Constants for images of any size and any severity, interpolated between published ones.

`between` interpolates between two published sizes, `grown` scales constants with the image, and
`between_severities` interpolates between two published severities. The results may be fractions where a
recipe needs integers, such as 2.5 sweeps or 88.7 cells; `parts` returns the integers to render and the
weights of the results, so that images change continuously with size and severity.
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
"""The published scales and the short side, in pixels, that their constants were chosen for."""

Pixels = Annotated[float, "pixels"]
"""A constant in pixels, which grows with the image at scale `relative`."""
WholePixels = Annotated[int, "whole pixels"]
"""As `Pixels`, an integer of at least 1."""
DiskRadius = Annotated[float, "disk radius"]
"""As `Pixels`; a disk consists of whole pixels, so it grows in steps."""
Area = Annotated[float, "pixels²"]
"""A constant that grows with the square of the side."""
PerPixel = Annotated[float, "1/pixels"]
"""A constant inversely proportional to the side; times the side it is a number of cells, truncated."""
FractionOfSide = Annotated[float, "fraction of the side"]
"""A fraction that does not depend on the size; multiplied by the side it is rounded to an integer."""
FractionKept = Annotated[float, "fraction kept"]
"""Fraction of the image that is kept; the damage is 1 minus this."""
Enlargement = Annotated[float, "enlargement"]
"""As `Pixels`: enlargement of noise, at least 1. Noise that is not enlarged is not smoothed."""
Softness = Annotated[float, "softness"]
"""As `Pixels`: the standard deviation of a Gaussian of three pixels."""

_STEPS = 256
"""Weights of parts are multiples of 1/256, because smaller differences do not show in 8-bit values."""

_RAMP = 6
"""Distance in pixels from a published size at which its own geometry has no more weight."""

_ENLARGED = 1.25
"""The smallest published enlargement above 1."""

_RADII = sorted({math.hypot(x, y) for x in range(9) for y in range(9) if x * x + y * y <= 64})
"""Radii up to 8 at which a disk of whole pixels grows. Larger disks grow by a few percent per step."""

_ABOVE = 1 + 1e-9
"""Factor that compensates rounding in products that should be integers."""

FAR = 3 * SCALES["inception"]
"""Short side from which constants for 299 pixels have so little effect that a warning is issued."""

_given = count()


class Rendering(NamedTuple):
    """One of several renderings that are averaged."""

    weight: float
    params: Any


@lru_cache(maxsize=1024, typed=True)  # constants of two corruptions may be equal
def grown(params: Any, side: int, base: int) -> Any:
    """Return constants that affect an image of side `side` as `params` affect one of side `base`.

    Published constants must be `snapped` first.
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
    """Return the constants for a side between two published ones.

    Constants are interpolated geometrically, or linearly if one of them is zero, which keeps the relative
    change from one size to the next small. Published constants must be `snapped` first.
    """
    return _mixed(low, high, (side - low_side) / (high_side - low_side), _by_factors)


@lru_cache(maxsize=4096, typed=True)
def between_severities(low: Any, high: Any, position: float, side: int) -> Any:
    """Return the constants for a severity between two integers, interpolated linearly.

    Integers are rounded to the nearest, halves toward the higher severity. The result is already `snapped`.

    Constants may have a method `leads_to(higher)`. If it returns False, they cannot be interpolated, and
    those of the lower severity are used.

    >>> class Params(NamedTuple):
    ...     sigma: float
    ...     sweeps: int
    >>> between_severities(Params(0.1, 1), Params(0.2, 4), 0.5, 224)
    Params(sigma=0.15, sweeps=3)

    Args:
        low: the constants of the lower severity.
        high: those of the next one.
        position: position between the two, 0 to 1.
        side: short side that both were published for.
    """
    if not getattr(low, "leads_to", lambda _: True)(high):
        return low
    low, high = snapped(low, side), snapped(high, side)
    mixed = _mixed(low, high, position, _by_steps)
    whole = {
        name: _rounded(value, getattr(high, name) - getattr(low, name))
        for name, value, kind in _fields(mixed)
        if kind in ("whole", "whole pixels")
    }
    return mixed._replace(**whole)


def _rounded(value: float, toward: float) -> int:
    """Return the nearest integer; halves are rounded in the direction of `toward`."""
    return math.floor(value + 0.5) if toward > 0 else math.ceil(value - 0.5)


def _mixed(low: Any, high: Any, position: float, way: Callable[[float, float, float], float]) -> Any:
    """Interpolate constants, rounded to ten digits, which are equal on every machine.

    Constants that are not numbers keep the lower value.
    """
    mixed: dict[str, float] = {}
    for name, a, kind in _fields(low):
        b = getattr(high, name)
        same = a == b or not (_is_number(a) and _is_number(b))
        mixed[name] = a if same else float(f"{_on_the_way(a, b, kind, position, way):.10g}")
    return low._replace(**mixed)


def _on_the_way(
    a: float, b: float, kind: str, position: float, way: Callable[[float, float, float], float]
) -> float:
    match kind:
        case "fraction kept":
            return 1 - way(1 - a, 1 - b, position)
        case "softness":
            weight = way(_neighbor(a), _neighbor(b), position)
            if weight > 0:
                return 1 / math.sqrt(-2 * math.log(weight))
    return way(a, b, position)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _by_factors(a: float, b: float, position: float) -> float:
    way: float = a ** (1 - position) * b**position if a > 0 and b > 0 else _by_steps(a, b, position)
    return way


def _by_steps(a: float, b: float, position: float) -> float:
    return a + (b - a) * position


def _neighbor(softness: float) -> float:
    """Return the weight of the next pixel relative to the middle; 0 if it does not show in 8-bit values."""
    weight = math.exp(-1 / (2 * softness**2))
    return weight if weight > 1e-3 else 0.0


def settled(params: Any, side: int) -> Any:
    """Return published constants of a size as they take effect there."""
    return between(snapped(params, side), side, snapped(params, side + 1), side + 1, side)


@lru_cache(maxsize=1024, typed=True)
def snapped(params: Any, side: int) -> Any:
    """Return published constants rounded as they take effect at their own size."""
    return params._replace(**{name: _snapped(value, kind, side) for name, value, kind in _fields(params)})


def parts(params: Any, side: int, smooth: type | None = None) -> tuple[Rendering, ...]:
    """Return the constants to render for fitted constants, with weights; a single part if all are integers.

    If several constants have fractional parts, those with larger ones are rounded up in more of the parts:
    2.3 and 1.6 are 3 and 2 with weight 0.3, 2 and 2 with weight 0.3, 2 and 1 with weight 0.4.

    Args:
        params: the constants.
        side: short side that they were fitted to.
        smooth: class of constants that selects the smooth geometry of a render, if it has one.
    """
    steps = {name: step for name, value, kind in _fields(params) if (step := _step(value, kind, side))}
    cuts = sorted({0.0, 1.0, *(step.weight for step in steps.values())})
    found = []
    for since, upto in pairwise(cuts):
        values = {name: step.up if step.weight >= upto else step.down for name, step in steps.items()}
        whole = params._replace(**values)
        found.append(Rendering(upto - since, smooth(*whole) if smooth else whole))
    return tuple(found)


def ends(side: int) -> tuple[int, int, float]:
    """Return the published sizes for photos around a side, and its position between them.

    >>> ends(48), ends(20), ends(1000)
    ((32, 64, 0.5), (32, 32, 0.0), (299, 299, 0.0))
    """
    sizes = [at for scale, at in SCALES.items() if scale != "mnist"]
    low = max((at for at in sizes if at <= side), default=sizes[0])
    high = min((at for at in sizes if at >= side), default=sizes[-1])
    return low, high, (side - low) / (high - low) if high > low else 0.0


def nearness(side: int) -> float:
    """Return 1 at a published size for photos, falling to 0 at a distance of 6 pixels."""
    low, high, _ = ends(side)
    return max(0.0, 1 - min(abs(side - low), abs(side - high)) / _RAMP)


class _Step(NamedTuple):
    """The two values that a recipe can use, and the weight of the upper one."""

    down: float
    up: float
    weight: float


def _step(value: float, kind: str, side: int) -> _Step | None:
    """Return the steps around a constant; None if it may have any value."""
    match kind:
        case "whole" | "whole pixels":
            whole = math.floor(value)
            return _Step(whole, whole + 1, weight_of(value - whole))
        case "fraction of the side":
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


def weight_of(fraction: float) -> float:
    """Return a fraction rounded to a multiple of 1/256."""
    return round(max(fraction, 0) * _STEPS) / _STEPS


def _snapped(value: float, kind: str, side: int) -> float:
    """Return a published constant rounded as it takes effect at its own size."""
    match kind:
        case "1/pixels":
            return int(value * side) / side
        case "fraction of the side":
            return round(value * side) / side
        case "disk radius" if value < _RADII[-1]:
            return _RADII[bisect.bisect_right(_RADII, value) - 1]
    return value


def _fields(params: Any) -> list[tuple[str, float, str]]:
    """Return name, value and kind of each constant."""
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
    """Warn of images with this short side; only once per process."""
    if next(_given) == 0:  # atomic, so that only one of several threads warns
        warnings.warn(
            f"the images have a short side of {side} pixels, far from the published sizes of 32 to 299: "
            "scale 'auto' uses the constants for 299 pixels, which have little effect; pass "
            "scale='relative' to let them grow with the image",
            SizeWarning,
            stacklevel=3,
        )
