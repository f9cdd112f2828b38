"""The files of the study: CSV tables, a Markdown page and an HTML page, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort._core.text import csv_text
from beaufort.studies.engine import run_facts
from beaufort.studies.failed_runs import CheckedRuns, check_runs, ending_facts
from beaufort.studies.icons_50.icon_claims import Effect, claims, effects
from beaufort.studies.icons_50.icon_examples import ExampleSheet, example_sheet
from beaufort.studies.icons_50.icon_networks import SPLITS, VARIANTS, held_out_title
from beaufort.studies.icons_50.icon_tables import (
    Confusion,
    GroupTable,
    IconResults,
    accuracy_table,
    arms_table,
    confusions,
    group_tables,
    load_results,
    styles_table,
)
from beaufort.studies.paper_tables import (
    Claim,
    ReproducedTable,
    claims_markdown,
    percent_text,
    table_markdown,
)
from beaufort.studies.predictions import machine_facts
from beaufort.studies.study_page import StudyPage, data_url

_RULE = (
    "The paper's number, which is of one training, has a star if it lies outside the 95 % intervals of all "
    "our trainings. As far as can be told, it was measured under the rules of the released program, so it "
    "stands beside these. For subtypes that program holds out an icon if a name is anywhere in the path, so "
    "two classes vanish from training, and no network can get their icons right. A statement is decided by "
    "two trainings or more of each side: with one, how far another would come out is not known."
)
_FEW = (
    "The hardest first, by the mean over networks. Where icons are few, a percentage says little: 5 right of "
    "10 could be anything from 19 to 81 %."
)
_CONFUSIONS = (
    "The most frequent wrong answers of each network, among icons whose class is in training; a percentage "
    "is of the held-out icons of the class."
)
_REHEARSAL = "A rehearsal with few icons and tiny trainings: its numbers mean nothing."

_MOST, _SHOWN = 20, 3
"""Confusions of each network and split in the CSV file, and on the pages."""
_HARDEST = 10
"""Groups that the Markdown page shows."""
_NAVIGATION = {"shake": "Shake-Shake", "subtype-styles": "Subtypes by style"}
"""What a section is called in the navigation, where its name is too short."""


@dataclass(frozen=True)
class _Findings:
    """What both pages show."""

    claims: Sequence[Claim]
    tables: Sequence[ReproducedTable]
    shaking: str
    groups: Sequence[GroupTable]
    confusions: Sequence[Confusion]
    examples: ExampleSheet | None


def study_files(
    folder: Path, *, rehearse: bool, examples_from: Path | None = None
) -> Iterator[tuple[str, bytes]]:
    """Make every file that the predictions suffice for: its name and its content.

    Args:
        folder: of the study.
        rehearse: whether it is a rehearsal.
        examples_from: the folder of the set `icons-open`, for examples on the page; none without.
    """
    results = load_results(folder)
    if not results.predictions:
        raise OptionError(f"{folder} has no answers yet; run the study first")
    every = (accuracy_table(results), arms_table(results), styles_table(results))
    tables = [one for one in every if one.rows]
    for table in tables:
        across = "network" if table.name == "styles" else "held out"
        yield f"{table.name}.csv", cells_csv(table, across).encode()
    compared, groups = effects(results), group_tables(results)
    if compared:
        yield "shake-effects.csv", effects_csv(compared).encode()
    for group in groups:
        yield f"{group.name}.csv", groups_csv(group).encode()
    yield "confusions.csv", confusions_csv(confusions(results, most=_MOST)).encode()
    examples = example_sheet(examples_from) if examples_from is not None else None
    if examples:
        yield "examples.png", examples.png
    runs = _runs(results)
    page = StudyPage(
        "icons-50",
        "Icons-50, reproduced",
        _facts(folder, results, runs),
        _RULE,
        runs,
        _REHEARSAL if rehearse else "",
        "icons",
    )
    found = _Findings(
        claims(results, compared),
        tables,
        _about_shaking(compared),
        groups,
        confusions(results, most=_SHOWN),
        examples,
    )
    yield "README.md", _markdown(page, found).encode()
    yield "index.html", _html(page, found).encode()


def _runs(results: IconResults) -> CheckedRuns:
    """Check the losses of all training runs, and name the numbers that each is part of."""
    found = []
    for (name, split), some in results.predictions.items():
        title, held_out = VARIANTS[name].title, held_out_title(split)
        inside = f"all numbers of {title} on {held_out}"
        found += [(f"{title} without {held_out}", inside, ending_facts(one)) for one in some]
    return check_runs(found)


def _facts(folder: Path, results: IconResults, runs: CheckedRuns) -> dict[str, str]:
    """The hardware, the trainings and the time."""
    every = [one for some in results.predictions.values() for one in some]
    return {
        **machine_facts(every),
        "trainings": f"{len(every)}: {_seeds(results)}",
        "no sign of learning": runs.text,
        "training time": f"{sum(one.facts['seconds'] for one in every) / 60:.1f} minutes, added up",
        **run_facts(folder),
    }


def _seeds(results: IconResults) -> str:
    """How many trainings there are of each network and split; they differ in their seed alone."""
    counts: dict[str, set[int]] = {}
    for (name, _), some in results.predictions.items():
        counts.setdefault(VARIANTS[name].title, set()).add(len(some))
    titles: dict[str, list[str]] = {}
    for title, found in sorted(counts.items()):
        few, many = min(found), max(found)
        titles.setdefault(str(few) if few == many else f"{few} to {many}", []).append(title)
    if len(titles) == 1:
        return f"{next(iter(titles))} for each network and what was held out"
    return "; ".join(f"{count} for {', '.join(some)}" for count, some in sorted(titles.items(), reverse=True))


def _about_shaking(effects: Sequence[Effect]) -> str:
    """Return what the arms say about Shake-Shake, in a sentence; empty without them."""
    wanted = {
        "Shake-Shake's network not shaken, 50 epochs",
        "shaking, 50 epochs",
        "shaking, 200 epochs",
        "200 epochs for 50, not shaken",
    }
    words = {True: "it helps", False: "it hurts", None: "undecided"}
    told = [
        f"{one.name}, on {one.split}: {one.points}, {words[one.decided]}"
        for one in effects
        if one.name in wanted
    ]
    return "; ".join(told) + "." if told else ""


def _markdown(page: StudyPage, found: _Findings) -> str:
    lines = [*page.markdown_head(), *(claims_markdown(found.claims) if found.claims else [])]
    for table in found.tables:
        lines += table_markdown(table, table.title)
        lines += ["", found.shaking] if table.name == "shake" and found.shaking else []
    for group in found.groups:
        lines += _group_markdown(group)
    if found.confusions:
        lines += ["", "## Confusions", "", _CONFUSIONS, ""]
        lines += ["| network | held out | class | answer | icons | of the class |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [
            f"| {VARIANTS[one.network].title} | {SPLITS[one.split]} | {one.label} | {one.predicted} | "
            f"{one.icons:.3g} | {one.fraction:.0%} |"
            for one in found.confusions
        ]
    if found.examples:
        lines += ["", "## Examples by style", "", "![icons by style](examples.png)", ""]
        lines += [found.examples.about, "", *(f"- {credit}" for credit in found.examples.credits)]
    return "\n".join(lines) + "\n"


def _group_markdown(group: GroupTable) -> list[str]:
    lines = ["", f"## {group.title}", "", _FEW]
    lines += [f"`{group.name}.csv` has all {len(group.rows)}.", ""] if len(group.rows) > _HARDEST else [""]
    lines += [f"| {group.corner} | icons | {' | '.join(group.columns)} |"]
    lines.append("|---" * (len(group.columns) + 2) + "|")
    for name, (icons, *fractions) in list(group.rows.items())[:_HARDEST]:
        lines.append(f"| {name} | {icons:.0f} | {' | '.join(f'{100 * one:.0f}' for one in fractions)} |")
    return lines


def _html(page: StudyPage, found: _Findings) -> str:
    """Return the HTML page; it has no icon but those of the examples."""
    navigation = {"conclusions": "Conclusions"} if found.claims else {}
    named = [*(one.name for one in found.tables), *(one.name for one in found.groups)]
    navigation |= {name: _NAVIGATION.get(name, name.capitalize()) for name in named}
    navigation |= {"confusions": "Confusions"} if found.confusions else {}
    navigation |= {"examples": "Examples"} if found.examples else {}
    return page.html(
        navigation,
        **vars(found),
        remarks={"shake": found.shaking},
        networks={name: variant.title for name, variant in VARIANTS.items()},
        splits=SPLITS,
        few=_FEW,
        told_of_confusions=_CONFUSIONS,
        picture=data_url("examples.png", found.examples.png) if found.examples else "",
    )


def cells_csv(table: ReproducedTable, across: str) -> str:
    """A row for each cell: value, interval over icons, spread over trainings, the paper's value.

    Args:
        table: with any rows and columns.
        across: what its columns are; `table.corner` says what its rows are.
    """
    rows = [
        [row, column, *map(percent_text, (one.value, one.low, one.high, one.spread, one.printed))]
        for row, cells in table.rows.items()
        for column, one in cells.items()
    ]
    return csv_text([table.corner, across, "accuracy", "low", "high", "sd over seeds", "paper"], rows)


def effects_csv(effects: Sequence[Effect]) -> str:
    """A row for each comparison, in points."""
    rows = [
        [one.name, one.split, one.first, one.second, *map(percent_text, (one.value, one.low, one.high))]
        + [str(count) for count in one.trainings]
        for one in effects
    ]
    head = ["comparison", "held out", "first", "second", "difference", "low", "high"]
    return csv_text([*head, "trainings of first", "trainings of second"], rows)


def groups_csv(table: GroupTable) -> str:
    """A row for each class, subtype or style."""
    rows = [
        [name, f"{icons:.0f}", *map(percent_text, shares)] for name, (icons, *shares) in table.rows.items()
    ]
    return csv_text([table.corner, "icons", *table.columns], rows)


def confusions_csv(confusions: Sequence[Confusion]) -> str:
    """A row for each confusion."""
    rows = [
        (VARIANTS[network].title, SPLITS[split], of, answered, f"{icons:.2f}", percent_text(share))
        for network, split, of, answered, icons, share in confusions
    ]
    return csv_text(["network", "held out", "class", "answer", "icons", "percent of the class"], rows)
