"""Generate the tables of the documentation that follow from the code.

    python tools/doc_tables.py [TABLE …]

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->` on its page.
`tests/corruptions/test_tables.py` compares the pages with the generated tables.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from golden_data import Count, from_pack, read_gate
from numpy.typing import NDArray
from size_steps import resized

from beaufort.corruptions import (
    SCALES,
    SEVERITIES,
    SUBSETS,
    Area,
    DiskRadius,
    Enlargement,
    PerPixel,
    Pixels,
    Softness,
    WholePixels,
    corruptions,
)
from beaufort.corruptions.sequences import SIDES, perturbations

__all__ = ["TABLES", "digits", "placed"]

DOCS = Path(__file__).resolve().parent.parent / "docs"

GROWTH: dict[Any, str] = {
    **dict.fromkeys((Pixels, WholePixels, DiskRadius, Softness, Enlargement), "· k"),
    Area: "· k²",
    PerPixel: "/ k",
}
"""How constants of a type follow the size of the image."""

DRAWS = 16
"""Random draws per image in the table of severities."""


def catalog() -> Iterator[str]:
    """Every corruption with its group, scales and description."""
    names = {frozenset(SCALES): "all", **{frozenset([scale]): scale for scale in SCALES}}
    yield "| name | group | random | scales | description |"
    yield "|---|---|---|---|---|"
    order = dict.fromkeys([*SUBSETS["all"], *SUBSETS["mnist-c-all"], *corruptions])
    for name, one in ((name, corruptions[name]) for name in order):
        scales = names.get(frozenset(one.recipes), ", ".join(one.recipes))
        yield f"| `{name}` | {one.group} | {'yes' if one.random else 'no'} | {scales} | {one.summary} |"


def sequences() -> Iterator[str]:
    """Every sequence of ImageNet-P with its numbers of frames."""
    yield f"| sequence | {' | '.join(f'`{scale}`' for scale in SIDES)} | description |"
    yield f"|---|{'---:|' * len(SIDES)}---|"
    for name, one in perturbations.items():
        lengths = " | ".join(str(one.length(scale)) for scale in SIDES)
        yield f"| `{name}` | {lengths} | {(one.__doc__ or '').partition(chr(10))[0]} |"


def growth() -> Iterator[str]:
    """The constants that follow the size of an image at scale `relative`."""
    yield "| corruption | constants |"
    yield "|---|---|"
    for name, one in corruptions.items():
        hints = get_type_hints(type(one.recipes[one.relative_to].levels[0]), include_extras=True)
        if grows := [f"`{field}` {GROWTH[hint]}" for field, hint in hints.items() if hint in GROWTH]:
            yield f"| `{name}` | {', '.join(grows)} |"


def fidelity() -> Iterator[str]:
    """Fraction of values that differ from the published programs, by corruption and scale."""
    scales = ("imagenet", "tiny", "cifar", "mnist")
    gate = {key: count for (key, data), count in read_gate().items() if data == "full"}
    yield "| corruption | 224 | 64 | 32 | 28 |"
    yield "|---|---:|---:|---:|---:|"
    for name in ("**all**", *corruptions):
        counts = [_total(gate, scale, None if name == "**all**" else name) for scale in scales]
        if any(count.differ for count in counts):
            yield f"| {name} | {' | '.join(map(_fraction, counts))} |"


def _total(gate: dict[str, Count], scale: str, name: str | None) -> Count:
    start = f"{scale}/{name}/" if name else f"{scale}/"
    found = [count for key, count in gate.items() if key.startswith(start)]
    values, differ = sum(count.values for count in found), sum(count.differ for count in found)
    return Count(values, differ, max((count.largest for count in found), default=0))


def _fraction(count: Count) -> str:
    if not count.values:
        return "–"
    return f"{100 * count.differ / count.values:.2g} %" if count.differ else "0"


def severities() -> Iterator[str]:
    """Steps up in severity at which the mean squared difference does not rise; C-bar is left out."""
    columns = [*SCALES.items(), ("relative", 32)]
    yield f"| corruption | {' | '.join(f'`{scale}`, {side}' for scale, side in columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for name in (name for name, one in corruptions.items() if one.group != "unseen"):
        cells = [_not_rising(name, scale, side) for scale, side in columns]
        if any(cell not in ("rises", "–") for cell in cells):
            yield f"| `{name}` | {' | '.join(cells)} |"


def _not_rising(name: str, scale: str, side: int) -> str:
    corruption = corruptions[name]
    published = corruption.relative_to if scale == "relative" else scale
    if published not in corruption.recipes or len(corruption.recipes[published].levels) == 1:
        return "–"
    found = [_damage(name, severity, scale, side) for severity in SEVERITIES]
    if not any(found):
        return "unchanged"
    falls = [f"{s} → {s + 1}" for s in SEVERITIES[:-1] if found[s] <= found[s - 1] and found[s - 1] > 0]
    falls += ["**5 ≤ 1**"] * (found[4] <= found[0])
    return ", ".join(falls) or "rises"


def _damage(name: str, severity: int, scale: str, side: int) -> float:
    clean = digits() if scale == "mnist" else resized(side)
    corruption = corruptions[name]
    total = 0.0
    rounds = DRAWS if corruption.random else 1
    for seed in range(rounds):
        made = corruption(clean, severity, scale=scale, seed=seed, ids=range(len(clean)))
        total += float(((made.astype(np.float64) - clean) ** 2).mean())
    return total / rounds


@cache
def digits() -> NDArray[np.uint8]:
    """The digits of the golden data."""
    return next(entry.images for entry in from_pack() if entry.scale == "mnist")


CORRUPTIONS = DOCS / "reference" / "corruptions.md"

TABLES: dict[str, tuple[Callable[[], Iterator[str]], Path]] = {
    "corruptions": (catalog, CORRUPTIONS),
    "severities": (severities, CORRUPTIONS),
    "growth": (growth, CORRUPTIONS),
    "sequences": (sequences, CORRUPTIONS),
    "fidelity": (fidelity, DOCS / "explanation" / "reproducibility.md"),
}


def generated(name: str) -> str:
    """The text of a table."""
    return "\n".join(TABLES[name][0]())


def placed(name: str) -> re.Match[str]:
    """The table on its page; group 2 is its text."""
    page = TABLES[name][1]
    found = re.search(
        rf"(<!-- table: {name} -->\n\n)(.*?)(\n\n<!-- end of table -->)", page.read_text(), re.DOTALL
    )
    if found is None:
        raise SystemExit(f"{page} has no markers for the table {name}")
    return found


def main(names: list[str]) -> None:
    """Write the tables of these names, or all of them."""
    for name in names or TABLES:
        page, text, now = TABLES[name][1], generated(name), placed(name)
        whole = page.read_text()
        page.write_text(whole[: now.start(2)] + text + whole[now.end(2) :])


if __name__ == "__main__":
    main(sys.argv[1:])
