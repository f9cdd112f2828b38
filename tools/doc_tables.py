"""Write the tables of the documentation that are made by code, in their places.

    python tools/doc_tables.py

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->`. `tests/corruptions/test_tables.py`
compares what stands there with what this makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from golden_data import Count, from_pack, read_gate
from numpy.typing import NDArray
from size_steps import resized

from beaufort.corruptions import SCALES, SEVERITIES, corruptions

__all__ = ["PLACES", "TABLES", "digits", "placed"]

DOCS = Path(__file__).resolve().parent.parent / "docs"

DRAWS = 16
"""Of each photo or digit, where something is random."""

SMALL = (28, 32, 64)
"""Sides at which the scale `relative` is listed."""


def fidelity() -> Iterator[str]:
    """Share of values that differ from the published programs', by corruption and scale."""
    scales = ("imagenet", "tiny", "cifar", "mnist")
    gate = {key: count for (key, data), count in read_gate().items() if data == "full"}
    yield "| corruption | 224 | 64 | 32 | 28 | largest difference |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name in ("**all**", *corruptions):
        counts = [_total(gate, scale, None if name == "**all**" else name) for scale in scales]
        largest = max(count.largest for count in counts if count.values)
        yield f"| {name} | {' | '.join(map(_share, counts))} | {largest} |"


def _total(gate: dict[str, Count], scale: str, name: str | None) -> Count:
    start = f"{scale}/{name}/" if name else f"{scale}/"
    found = [count for key, count in gate.items() if key.startswith(start)]
    values, differ = sum(count.values for count in found), sum(count.differ for count in found)
    return Count(values, differ, max((count.largest for count in found), default=0))


def _share(count: Count) -> str:
    if not count.values:
        return "–"
    return f"{100 * count.differ / count.values:.2g} %" if count.differ else "0"


def severities() -> Iterator[str]:
    """Steps up in severity at which the mean squared difference does not rise; C-bar is left out."""
    columns = [*((scale, side) for scale, side in SCALES.items()), *(("relative", side) for side in SMALL)]
    yield f"| corruption | {' | '.join(f'`{scale}`, {side}' for scale, side in columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for name in (name for name, one in corruptions.items() if one.group != "unseen"):
        cells = [_not_rising(name, scale, side) for scale, side in columns]
        if any(cell not in ("rises", "–") for cell in cells):
            yield f"| `{name}` | {' | '.join(cells)} |"


def _not_rising(name: str, scale: str, side: int) -> str:
    """Where the damage of one corruption does not grow, in words."""
    corruption = corruptions[name]
    published = corruption.relative_to if scale == "relative" else scale
    if published not in corruption.recipes or len(corruption.recipes[published].levels) == 1:
        return "–"
    if published == "mnist" and scale == "relative" and side == SCALES["mnist"]:
        return "–"  # the same as at scale mnist
    found = [_damage(name, severity, scale, side) for severity in SEVERITIES]
    same = [str(severity) for severity, damage in zip(SEVERITIES, found, strict=True) if damage == 0]
    falls = [f"{s} → {s + 1}" for s in SEVERITIES[:-1] if found[s] <= found[s - 1] and found[s - 1] > 0]
    told = [f"unchanged at {', '.join(same)}"] * bool(same) + [", ".join(falls)] * bool(falls)
    told += ["**5 ≤ 1**"] * (found[4] <= found[0])
    return "; ".join(told) or "rises"


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
    """The digits of the pack."""
    return next(entry.images for entry in from_pack() if entry.scale == "mnist")


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "fidelity": fidelity,
    "severities": severities,
}
PLACES = {
    "fidelity": DOCS / "explanation" / "reproducibility.md",
    "severities": DOCS / "reference" / "corruptions.md",
}


def placed(name: str) -> re.Match[str]:
    """What stands in the documentation now."""
    text = PLACES[name].read_text()
    found = re.search(rf"(<!-- table: {name} -->\n\n)(.*?)(\n\n<!-- end of table -->)", text, re.DOTALL)
    if found is None:
        raise SystemExit(f"{PLACES[name]} has no place for the table {name}")
    return found


def main() -> None:
    """Write all of them."""
    for name, lines in TABLES.items():
        made, now = "\n".join(lines()), placed(name)
        text = PLACES[name].read_text()
        PLACES[name].write_text(text[: now.start(2)] + made + text[now.end(2) :])


if __name__ == "__main__":
    main()
