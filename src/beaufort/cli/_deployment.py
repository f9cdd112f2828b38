"""Output of `beaufort compare --deployment`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from beaufort._core.text import counted, printable
from beaufort.cli._console import table

if TYPE_CHECKING:
    from beaufort.results import ConditionFlips, Deployment, Results

_IMAGES = 10
"""Number of images that are printed; `--json` lists all."""

_NUMBERS = ("first", "second", "flips", "broken", "fixed", "changed")


def deployment_lines(found: Deployment, results: Results, every: bool) -> Iterator[str]:
    """Yield flips by condition, gaps, flipped images and calibration; `every` for all of each."""
    first, second = printable(found.first), printable(found.second)
    yield (
        f"{second} instead of {first}, {printable(results.suite)} on {printable(results.dataset)}, "
        f"{counted(found.count, 'image')}; {100 * found.level:g} % intervals, not adjusted for conditions"
    )
    yield f"agreement, mean over {counted(len(found.conditions), 'condition')}: {found.agreement:.2%}"
    most = found.most_flips
    where = f" under {printable(most.condition)}" if most.flips.value else ""
    yield f"most flips: {most.flips:.2%}{where}"
    yield ""
    yield from _condition_lines(found)
    yield ""
    opening = [printable(one.condition) for one in found.opening]
    yield (
        "significantly more accuracy lost than on clean images (Holm, 5 %): "
        f"{', '.join(opening) if opening else 'under no condition'}"
    )
    yield from _image_lines(found, every)
    if every:
        rows = [(_group(one.group), printable(one)) for one in found.calibration]
        head = ("images", "difference in calibration (intervals are not adjusted)")
        yield from ("", table([head, *rows]))
    else:
        yield from (
            f"{_group(one.group)}: {printable(one)}" for one in found.calibration if one.metric == "ece"
        )


def _group(name: str) -> str:
    return name if name in ("clean", "corrupted") else f"severity {name}"


def _condition_lines(found: Deployment) -> Iterator[str]:
    head = ("condition", "flips", "right → wrong", "wrong → right", "wrong → other wrong", "accuracy lost")
    rows = [
        (
            printable(one.condition),
            *(f"{part:.1%}" for part in (one.flips, one.broken, one.fixed, one.changed)),
            _lost(one),
        )
        for one in found.conditions
    ]
    yield table([head, *rows])


def _lost(one: ConditionFlips) -> str:
    """Return the loss in points, and by how much it differs from that on clean images."""
    lost = f"{100 * (one.first.value - one.second.value):z.1f}"
    if one.gap is None:
        return lost
    bounds = f"[{100 * one.gap.low:z.1f}, {100 * one.gap.high:z.1f}]"
    return f"{lost} ({100 * one.gap.value:+z.1f} {bounds} against clean)"


def _image_lines(found: Deployment, every: bool) -> Iterator[str]:
    shown = found.images if every else found.images[:_IMAGES]
    yield f"images with a flip: {len(found.images):,} of {found.count:,}"
    for image in shown:
        names = ", ".join(
            f"{one.condition.done or 'clean'} {one.first} → {one.second}"
            for one in image.flips[: None if every else 3]
        )
        more = len(image.flips) - (len(image.flips) if every else 3)
        rest = f" and {more} more" if more > 0 else ""
        yield f"  {printable(image.id)} (label {image.label}): {printable(names)}{rest}"
    if len(found.images) > len(shown):
        yield f"  {len(found.images) - len(shown):,} more images: --all or --json"


def deployment_dict(found: Deployment, results: Results) -> dict[str, Any]:
    """Return a mapping for JSON; fractions, not percent."""
    return {
        "suite": str(results.suite),
        "dataset": results.dataset,
        "first": found.first,
        "second": found.second,
        "images": found.count,
        "level": found.level,
        "agreement": vars(found.agreement),
        "conditions": [
            {
                "condition": str(one.condition),
                **{name: vars(getattr(one, name)) for name in _NUMBERS},
                "gap": None if one.gap is None else vars(one.gap),
                "p_gap": one.p_gap,
                "opens": one.opens,
            }
            for one in found.conditions
        ],
        "flipped_images": [
            {
                "id": image.id,
                "label": image.label,
                "flips": [
                    {
                        "condition": str(one.condition),
                        "first": one.first,
                        "second": one.second,
                        "kind": one.kind,
                    }
                    for one in image.flips
                ],
            }
            for image in found.images
        ],
        "calibration": [{**vars(one), "difference": vars(one.difference)} for one in found.calibration],
    }
