"""How often models fail, by nuisance: a table and a section of a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from beaufort.metrics.stats import Estimate
from beaufort.mining._page import PageCell, PageSection, share_cell
from beaufort.mining._tables import estimate_columns, estimate_values, marked_name, role, write_table
from beaufort.mining.transfer import NuisanceFailures


def write_nuisances(path: Path, found: Sequence[NuisanceFailures], surrogates: Sequence[str]) -> None:
    """Write `nuisances.csv`."""
    write_table(
        path,
        ["kind", "nuisance", "model", "role", *estimate_columns("failures")],
        [
            [one.kind, one.nuisance, one.model, role(one.model, surrogates), *estimate_values(one.failures)]
            for one in found
        ],
    )


def nuisance_section(
    found: Sequence[NuisanceFailures], surrogates: Sequence[str], *, title: str, text: str
) -> PageSection:
    """A row for each nuisance, and a column for each model."""
    models = tuple(dict.fromkeys(one.model for one in found))
    rows: dict[tuple[str, str], dict[str, Estimate]] = {}
    for one in found:
        rows.setdefault((one.kind, one.nuisance), {})[one.model] = one.failures
    return PageSection(
        "nuisances",
        title,
        text,
        ("Nuisance", "images", *(marked_name(model, surrogates) for model in models)),
        tuple(
            (
                PageCell(nuisance or f"every {kind or 'image'}", kind if nuisance else ""),
                PageCell(f"{next(iter(row.values())).n:,}"),
                *(share_cell(row[model], heat=True) for model in models),
            )
            for (kind, nuisance), row in rows.items()
        ),
    )
