"""The files of the study: CSV tables, a Markdown page and an HTML page, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort.studies.answers import machine_facts
from beaufort.studies.failed import TrainingsLooked, ending_facts, look_at_trainings
from beaufort.studies.icons_50.claims import claims
from beaufort.studies.icons_50.effects import effects
from beaufort.studies.icons_50.examples import example_sheet
from beaufort.studies.icons_50.markdown import markdown_page
from beaufort.studies.icons_50.page import html_page
from beaufort.studies.icons_50.settings import SPLITS, VARIANTS
from beaufort.studies.icons_50.sheets import cells_csv, confusions_csv, effects_csv, groups_csv
from beaufort.studies.icons_50.story import GroupTable, IconStory
from beaufort.studies.icons_50.tables import (
    IconResults,
    accuracy_table,
    arms_table,
    by_group,
    confusions,
    load_results,
    styles_table,
)
from beaufort.studies.record import run_facts

_MOST = 20
"""Confusions of each network and split in the CSV file; the pages show the first few."""
_SHOWN = 3


def study_files(
    folder: Path, *, rehearse: bool, examples_from: Path | None = None
) -> Iterator[tuple[str, bytes]]:
    """Every file that the answers suffice for: its name and its content.

    Args:
        folder: of the study.
        rehearse: whether it is a rehearsal.
        examples_from: the folder of the set `icons-open`, for examples on the page; none without.
    """
    results = load_results(folder)
    if not results.answers:
        raise OptionError(f"{folder} has no answers yet; run the study first")
    tables = [
        one for one in (accuracy_table(results), arms_table(results), styles_table(results)) if one.rows
    ]
    for table in tables:
        across = "network" if table.name == "styles" else "held out"
        yield f"{table.name}.csv", cells_csv(table, across).encode()
    compared, groups = effects(results), _groups(results)
    if compared:
        yield "shake-effects.csv", effects_csv(compared).encode()
    for group in groups:
        yield f"{group.name}.csv", groups_csv(group).encode()
    mixed = confusions(results, most=_MOST)
    yield "confusions.csv", confusions_csv(mixed).encode()
    examples = example_sheet(examples_from) if examples_from is not None else None
    if examples:
        yield "examples.png", examples.png
    trainings = _trainings(results)
    story = IconStory(
        tables=tables,
        claims=claims(results, compared),
        effects=compared,
        groups=groups,
        confusions=confusions(results, most=_SHOWN),
        trainings=trainings,
        facts=_facts(folder, results, trainings),
        examples=examples,
        rehearsal=rehearse,
    )
    yield "README.md", markdown_page(story).encode()
    yield "index.html", html_page(story).encode()


def _groups(results: IconResults) -> list[GroupTable]:
    found = []
    for name, title, split, column in (
        ("classes", "Classes in Microsoft's style (percent right)", "style", "class"),
        ("subtypes", "Held-out subtypes (percent right)", "subtype", "subtype"),
        ("subtype-styles", "Held-out subtypes by style (percent right)", "subtype", "style"),
    ):
        columns, rows = by_group(results, split, column)
        if rows:
            found.append(GroupTable(name, title, column, columns, rows))
    return found


def _trainings(results: IconResults) -> TrainingsLooked:
    """What the losses of all trainings say, and which numbers each is part of."""
    found = []
    for (name, split), some in results.answers.items():
        title, held_out = VARIANTS[name].title, SPLITS.get(split) or f"{split.removeprefix('style-')}'s style"
        inside = f"all numbers of {title} on {held_out}"
        found += [(f"{title} without {held_out}", inside, ending_facts(one)) for one in some]
    return look_at_trainings(found)


def _facts(folder: Path, results: IconResults, trainings: TrainingsLooked) -> dict[str, str]:
    """The hardware, the trainings and the time."""
    every = [one for some in results.answers.values() for one in some]
    return {
        **machine_facts(every),
        "trainings": f"{len(every)}: {_seeds(results)}",
        "no sign of learning": trainings.text,
        "training time": f"{sum(one.facts['seconds'] for one in every) / 60:.1f} minutes, added up",
        **run_facts(folder),
    }


def _seeds(results: IconResults) -> str:
    """How many trainings there are of each network and split; they differ in their seed alone."""
    counts: dict[str, set[int]] = {}
    for (name, _), some in results.answers.items():
        counts.setdefault(VARIANTS[name].title, set()).add(len(some))
    titles: dict[str, list[str]] = {}
    for title, found in sorted(counts.items()):
        few, many = min(found), max(found)
        titles.setdefault(str(few) if few == many else f"{few} to {many}", []).append(title)
    if len(titles) == 1:
        return f"{next(iter(titles))} for each network and what was held out"
    return "; ".join(f"{count} for {', '.join(some)}" for count, some in sorted(titles.items(), reverse=True))
