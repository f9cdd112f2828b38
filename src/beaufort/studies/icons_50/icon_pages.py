"""The files of the study: CSV tables, and pages with our numbers beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort._core.text import csv_text
from beaufort.studies.engine import definition, run_facts
from beaufort.studies.failed_runs import CheckedRuns, check_runs, ending_facts
from beaufort.studies.icons_50.icon_examples import example_sheet
from beaufort.studies.icons_50.icon_runs import SPLITS, VARIANTS, held_out_title
from beaufort.studies.icons_50.icon_tables import (
    Confusion,
    Effect,
    GroupTable,
    IconResults,
    accuracy_table,
    arms_table,
    claims,
    confusions,
    effects,
    group_tables,
    load_results,
    styles_table,
)
from beaufort.studies.paper_tables import ReproducedTable, percent
from beaufort.studies.predictions import machine_facts
from beaufort.studies.study_page import PageSection, StudyPage, claims_section, table_section

_MENU = {"shake": "Shake-Shake", "subtype-styles": "Subtypes by style"}


def study_files(
    folder: Path, *, rehearse: bool, examples_from: Path | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file that the existing predictions allow.

    Args:
        folder: directory of the study.
        rehearse: whether it is a rehearsal.
        examples_from: directory of the set `icons-open`, for a sheet of examples.
    """
    results, texts = load_results(folder), definition("icons-50")
    if not results.predictions:
        raise OptionError(f"{folder} has no predictions yet; run the study first")
    compared, groups = effects(results), group_tables(results)
    sections, images = [], {}
    if found := list(claims(results, compared)):
        sections.append(claims_section(found))
    for table in (accuracy_table(results), arms_table(results), styles_table(results)):
        if table.rows:
            yield f"{table.name}.csv", cells_csv(table).encode()
            remark = _shake_text(compared) if table.name == "shake" else ""
            sections.append(table_section(table, menu=_MENU.get(table.name, ""), remark=remark))
    if compared:
        yield "shake-effects.csv", effects_csv(compared).encode()
    for group in groups:
        yield f"{group.name}.csv", groups_csv(group).encode()
        sections.append(_group_section(group))
    yield "confusions.csv", confusions_csv(confusions(results, most=20)).encode()
    if frequent := confusions(results, most=3):
        head = ("network", "held out", "class", "predicted", "icons", "of the class")
        text = texts["confusions_text"]
        rows = [
            (
                *(VARIANTS[one.network].title, SPLITS[one.split], one.label, one.predicted),
                *(f"{one.icons:.3g}", f"{one.fraction:.0%}"),
            )
            for one in frequent
        ]
        sections.append(PageSection(id="confusions", title="Confusions", text=text, head=head, rows=rows))
    if examples_from is not None:
        sheet = example_sheet(examples_from)
        images["examples.png"] = sheet.png
        sections.append(
            PageSection(
                id="examples",
                title="Examples by style",
                menu="Examples",
                text=sheet.about,
                figures={"examples.png": "icons by style"},
                notes=sheet.credits,
            )
        )
    yield from images.items()
    runs, every = _check(results), [one for some in results.predictions.values() for one in some]
    facts = {
        **machine_facts(every),
        "training runs": f"{len(every)}: {_run_counts(results)}",
        "no sign of learning": runs.text,
        "training time": f"{sum(one.facts['seconds'] for one in every) / 60:.1f} minutes in total",
        **run_facts(folder),
    }
    page = StudyPage(
        title=texts["title"],
        facts=facts,
        rule=texts["rule"],
        sections=sections,
        runs=runs,
        rehearse=rehearse,
        unit=texts["unit"],
    )
    yield from page.files(images)


def _check(results: IconResults) -> CheckedRuns:
    every = []
    for (name, split), some in results.predictions.items():
        title, held_out = VARIANTS[name].title, held_out_title(split)
        inside = f"all numbers of {title} on {held_out}"
        every += [(f"{title} without {held_out}", inside, ending_facts(one)) for one in some]
    return check_runs(every)


def _run_counts(results: IconResults) -> str:
    """Return how many training runs, which differ only in their seed, there are of each network and split."""
    counts: dict[str, set[int]] = {}
    for (name, _), some in results.predictions.items():
        counts.setdefault(VARIANTS[name].title, set()).add(len(some))
    titles: dict[str, list[str]] = {}
    for title, found in sorted(counts.items()):
        few, many = min(found), max(found)
        titles.setdefault(str(few) if few == many else f"{few} to {many}", []).append(title)
    if len(titles) == 1:
        return f"{next(iter(titles))} for each network and split"
    return "; ".join(f"{count} for {', '.join(some)}" for count, some in sorted(titles.items(), reverse=True))


def _shake_text(compared: Sequence[Effect]) -> str:
    texts = definition("icons-50")
    names = [name for name, _, _ in texts["compared"][: texts["summarized"]]]
    words = {"confirmed": "an improvement", "refuted": "a loss", "undecided": "undecided"}
    lines = [
        f"{one.name}, on {one.split}: {one.points}, {words[one.verdict]}"
        for one in compared
        if one.name in names
    ]
    return "; ".join(lines) + "." if lines else ""


def _group_section(group: GroupTable) -> PageSection:
    most = 10
    return PageSection(
        id=group.name,
        title=group.title,
        menu=_MENU.get(group.name, group.name.capitalize()),
        text=definition("icons-50")["groups_text"],
        head=(group.corner, "icons", *group.columns),
        rows=[
            (name, f"{icons:.0f}", *(f"{100 * one:.0f}" for one in fractions))
            for name, (icons, *fractions) in group.rows.items()
        ],
        most=most,
        remark=f"`{group.name}.csv` has all {len(group.rows)}." if len(group.rows) > most else "",
    )


def cells_csv(table: ReproducedTable) -> str:
    """Return a row for each cell: value, interval over icons, spread over runs, the paper's value."""
    across = "network" if table.name == "styles" else "held out"
    rows = [
        [row, column, *map(percent, (one.value, one.low, one.high, one.spread, one.printed))]
        for row, cells in table.rows.items()
        for column, one in cells.items()
    ]
    return csv_text([table.corner, across, "accuracy", "low", "high", "sd over seeds", "paper"], rows)


def effects_csv(effects: Sequence[Effect]) -> str:
    """Return a row for each comparison, in points."""
    head = ["comparison", "held out", "first", "second", "difference", "low", "high"]
    rows = [
        [one.name, one.split, one.first, one.second, *map(percent, (one.value, one.low, one.high)), *one.runs]
        for one in effects
    ]
    return csv_text([*head, "runs of first", "runs of second"], rows)


def groups_csv(table: GroupTable) -> str:
    """Return a row for each class, subtype or style."""
    rows = [
        [name, f"{icons:.0f}", *map(percent, fractions)] for name, (icons, *fractions) in table.rows.items()
    ]
    return csv_text([table.corner, "icons", *table.columns], rows)


def confusions_csv(confusions: Sequence[Confusion]) -> str:
    """Return a row for each confusion."""
    rows = [
        (
            *(VARIANTS[one.network].title, SPLITS[one.split], one.label, one.predicted),
            *(f"{one.icons:.2f}", percent(one.fraction)),
        )
        for one in confusions
    ]
    return csv_text(["network", "held out", "class", "predicted", "icons", "percent of the class"], rows)
