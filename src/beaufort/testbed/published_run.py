"""A model on every published test set below a directory, and where it stands among those of a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.registry import unknown_message
from beaufort.evaluation import LazyModel, Progress
from beaufort.models import Model
from beaufort.results import evaluate
from beaufort.testbed.grid import Grid
from beaufort.testbed.load import load_grid
from beaufort.testbed.placement import Placement, place
from beaufort.testbed.published_sets import PUBLISHED_SETS, VALIDATION, FoundSets, find_published_sets
from beaufort.testbed.stored_accuracies import grid_of_scores
from beaufort.testbed.union import renamed, unite


@dataclass(frozen=True)
class PublishedRun:
    """The result of `run_published`."""

    model: str
    found: FoundSets
    failures: tuple[tuple[str, str], ...]
    """Suites that could not be evaluated, with the reason."""
    problems: tuple[str, ...]
    """Images that could not be read."""
    notes: tuple[str, ...]
    placement: Placement
    grid: Grid
    """The reference models, and those of the store."""


def run_published(
    model: str | Model | LazyModel,
    root: Path | str,
    store: Path | str = "results",
    *,
    grid: Grid | str = "paper",
    only: Sequence[str] = (),
    limit: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> PublishedRun:
    """Evaluate a model on the published sets below a directory, with their clean counterparts, and place it.

    Stored predictions are reused, so that an interrupted run can be continued.

    Args:
        model: the model, as for `evaluate`.
        root: a directory; `find_published_sets` describes what is found.
        store: folder or URL that keeps the predictions.
        grid: the reference models, as for `load_grid`.
        only: sets, of `PUBLISHED_SETS`; all by default.
        limit: number of images of each set.
        progress: called after every batch.
        **options: options of `place`.
    """
    loaded = grid if isinstance(grid, Grid) else load_grid(grid)
    found = check_found(find_published_sets(root), only)
    lazy = LazyModel.of(model)
    failures, problems, notes = [], [], list[str]()
    for suite, data in found.runs(latest=loaded.base.name == "latest").items():
        try:
            run = evaluate([lazy], suite, data, store, limit=limit, progress=progress)
        except BeaufortError as error:  # an incomplete download; the others are evaluated
            failures.append((suite, str(error)))
            continue
        problems += [f"{problem.id}: {problem.message}" for problem in run.problems]
        notes += [f"{suite}: {note}" for note in run.notes]
    if failures and len(failures) == len(found.runs()):
        raise OptionError(f"no published set could be evaluated; {failures[0][0]}: {failures[0][1]}")
    placement = place(store, loaded, model=lazy.spec.name, **options)
    distinct = tuple(dict.fromkeys(notes))
    united = unite([loaded, renamed(grid_of_scores(store, loaded), loaded)])
    return PublishedRun(lazy.spec.name, found, tuple(failures), tuple(problems), distinct, placement, united)


def check_found(found: FoundSets, only: Sequence[str]) -> FoundSets:
    """Return the named sets, of which at least one and the validation images must have been found."""
    for name in only:
        if name not in PUBLISHED_SETS:
            raise OptionError(unknown_message("published set", name, PUBLISHED_SETS))
        if name not in found.places:
            one = PUBLISHED_SETS[name]
            raise OptionError(
                f"{name} not found below {found.root}; it has {one.layout}; source: {one.source}"
            )
    wanted = {VALIDATION, *(only or PUBLISHED_SETS)}
    chosen = {name: path for name, path in found.places.items() if name in wanted}
    if VALIDATION not in chosen or len(chosen) < 2:
        lacking = VALIDATION if VALIDATION not in chosen else "a set with a distribution shift"
        one = PUBLISHED_SETS[VALIDATION]
        about = f" ({one.layout}; source: {one.source})" if lacking == VALIDATION else ""
        raise OptionError(
            f"{lacking} not found below {found.root}{about}; the validation set and a shift are required"
        )
    return FoundSets(found.root, chosen, found.notes)
