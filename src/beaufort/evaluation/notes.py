"""What a reader of results should know about the images that were shown, and about who saw them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from beaufort._core.errors import BeaufortError
from beaufort._core.text import counted
from beaufort.evaluation.planning import Plan
from beaufort.evaluation.sources import ImageSource
from beaufort.models.filtered import missing_filter_note

_LOOKED_AT = 9
"""Images whose size is looked at."""


def notes_on(plan: Plan) -> tuple[str, ...]:
    """Which images were taken, if not all, what was left out, what is done to small ones, and image filters.

    A model that was trained with an image filter gets a note if it is not behind it here.
    """
    notes = (note for source in plan.sources for note in _notes(source))
    filters = (note for cell in plan.cells if (note := missing_filter_note(cell.model.spec)))
    return tuple(dict.fromkeys([*plan.warnings, *notes, *_no_clean(plan), *_circular(plan), *filters]))


def _notes(source: ImageSource) -> Iterator[str]:
    dataset = source.dataset
    if dataset.is_balanced:
        yield (
            f"{source.count:,} of {len(dataset):,} images, taken from the classes in turns, with the seed "
            f"{dataset.shuffle_seed}; the option first (--config first=N) takes the first ones instead"
        )
    if dataset.ignored:
        first = dataset.ignored[0]
        many = counted(len(dataset.ignored), "file")
        yield f"{many} of {dataset.name} left out, the first: {first.id}: {first.message}"
    yield from _enlarged(source)


def _enlarged(source: ImageSource) -> Iterator[str]:
    """A note if every image that is looked at is smaller than the first step makes it."""
    if not source.prepare or source.prepare[0].action == "crop":
        return
    side = source.prepare[0].side
    sizes: dict[tuple[int, int], None] = {}
    for height, width in _sizes(source):
        if min(height, width) >= side:
            return
        sizes[height, width] = None
    if not sizes:
        return
    shown = ", ".join(f"{width} × {height}" for height, width in list(sizes)[:3])
    name = source.suite.name if source.suite else "the preparation"
    yield (
        f"images are enlarged before they are corrupted: {name} makes their short side {side} pixels "
        f"({', '.join(map(str, source.prepare))}), and all that were looked at are smaller ({shown}). If "
        "they are prepared already, the option prepare='none' (--config prepare=none) keeps them as they are"
    )


def _sizes(source: ImageSource) -> Iterator[tuple[int, int]]:
    """Height and width of a few images, evenly spread; those that cannot be read are skipped."""
    for place in np.unique(np.linspace(0, source.count - 1, _LOOKED_AT).astype(int)):
        try:
            yield source.original_size(int(place))
        except BeaufortError:
            continue


def _circular(planned: Plan) -> Iterator[str]:
    """That a model is asked about images which features of its own kind helped to make."""
    for cell in planned.cells:
        features = str(getattr(cell.condition.shift, "features", ""))
        kind = re.match("[a-z]*", features.lower())
        if kind and kind[0] and kind[0] in cell.model.spec.name.lower():
            yield (
                f"{cell.model.spec.name} is scored on images that a network made which learned from "
                f"{features}; its numbers under {cell.condition.corruption} compare with no others"
            )


def _no_clean(planned: Plan) -> Iterator[str]:
    """That clean images of the suite were not there."""
    suite = planned.suite
    if suite is None or suite.parts or not suite.clean or any(cell.condition.clean for cell in planned.cells):
        return
    yield (
        "the stored images come without clean ones, so there is no clean accuracy; the option clean "
        f"(--config clean=…) adds those of {suite.dataset}"
    )
