"""The answer that a placement gives for one model: a sentence, and a table with a row for each shift."""

from __future__ import annotations

from collections.abc import Sequence

from beaufort.testbed.correlation import natural_shifts
from beaufort.testbed.figures import title
from beaufort.testbed.grid import Grid
from beaufort.testbed.placement import Placement, Standing

HEADER = ("shift", "accuracy", "clean accuracy", "expected", "rho [interval]", "percentile", "scatter")
"""Columns of `summary_rows`."""
_MOST_NAMED = 4


def shown_standings(placement: Placement, grid: Grid) -> list[Standing]:
    """Return the natural shifts, then the others, with means in place of the members that they cover."""
    placed = {one.y for one in placement.standings}
    means = placed & set(grid.aggregates)
    covered = {name for mean in means for name in grid.aggregates[mean].members}
    order = {name: place for place, name in enumerate(natural_shifts(grid))}
    natural = [one for one in placement.standings if grid.setting(one.y).kind == "natural"]
    natural.sort(key=lambda one: order.get(one.y, len(order)))
    others = [one for one in placement.standings if one not in natural]
    rest = [one for one in others if one.y not in covered]
    return natural + rest + [one for one in others if one.y in covered & means]


def summary_rows(standings: Sequence[Standing]) -> list[tuple[str, ...]]:
    """Return a row of texts for each shift, with the columns of `HEADER`."""
    rows: list[tuple[str, ...]] = []
    for one in standings:
        own = one.robustness
        ends = f" [{own.interval.low:+z.2f}, {own.interval.high:+z.2f}]" if own.interval else ""
        rows.append(
            (
                title(one.y),
                f"{own.shifted:.2f} %{_size(own.images[1])}",
                f"{own.clean:.2f} %{_size(own.images[0])}",
                "undefined" if own.expected is None else f"{own.expected:.2f} %",
                "undefined" if own.rho is None else f"{own.rho:+z.2f}{ends}",
                "" if own.percentile is None else f"{min(max(own.percentile, 0.1), 99.9):.1f}",
                one.verdict,
            )
        )
    return rows


def _size(images: float | None) -> str:
    return f" (n {images:,.0f})" if images else " (n unknown)"


def headline(placement: Placement, grid: Grid, model: str) -> tuple[str, str]:
    """Say whether a model is more robust than its clean accuracy predicts, and on which shifts."""
    studied = set(natural_shifts(grid))
    natural = [one for one in placement.standings if one.y in studied]
    standings = natural or shown_standings(placement, grid)
    kind = "natural shift" if natural else "shift"
    by_verdict = {
        verdict: [one for one in standings if one.verdict == verdict]
        for verdict in ("above", "below", "within", "unknown")
    }
    above, below, within, unknown = by_verdict.values()
    decided = len(standings) - len(unknown)
    if not decided:
        why = f"the number of images or the clean accuracy is missing for every {kind}"
        return f"No verdict for {model}: {why}.", ""
    whole = f"all {decided} {kind}s" if decided > 1 else f"the one {kind}"
    if len(above) == decided:
        text = f"{model} is more robust than its clean accuracy predicts, on {whole}"
    elif above:
        text = f"{model} is more robust than its clean accuracy predicts on {len(above)} of {decided} {kind}s"
    elif len(below) == decided:
        text = f"{model} is less robust than its clean accuracy predicts, on {whole}"
    elif below:
        text = (
            f"{model} is nowhere more robust than its clean accuracy predicts, and less on {len(below)} of "
            f"{decided} {kind}s"
        )
    else:
        text = f"{model} is as robust as its clean accuracy predicts, on {whole}"
    parts = [
        f"{verdict} what standard models reach: {_listed(some)}"
        for verdict, some in (("above", above), ("below", below))
        if some
    ]
    if within and (above or below):
        parts.append(f"within their scatter: {_listed(within)}")
    details = "; ".join(parts)
    return f"{text}.", f"{details[0].upper()}{details[1:]}." if parts else ""


def _listed(standings: Sequence[Standing]) -> str:
    ordered = sorted(standings, key=lambda one: -abs(one.robustness.rho or 0))
    names = [f"{title(one.y)} ({one.robustness.rho or 0:+z.1f} points)" for one in ordered[:_MOST_NAMED]]
    more = len(ordered) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
