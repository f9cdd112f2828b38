"""What a reader of results should know about the images that were shown, and about who saw them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from beaufort._core.errors import BeaufortError
from beaufort._core.text import counted
from beaufort.evaluation.planning import Plan, Setup
from beaufort.models.filtered import missing_filter_note

_LOOKED_AT = 9
"""Pictures whose size is looked at."""


def notes_on(plan: Plan) -> tuple[str, ...]:
    """Which images were taken, if not all, what was left out, what is done to small ones, and image filters.

    A model that was trained behind an image filter is told of if it is not behind it here.
    """
    notes = (note for setup in plan.setups for note in _notes(setup))
    filters = (note for work in plan.works if (note := missing_filter_note(work.model.spec)))
    return tuple(dict.fromkeys([*notes, *_no_clean(plan), *_circular(plan), *filters]))


def _notes(setup: Setup) -> Iterator[str]:
    dataset = setup.dataset
    if dataset.spread:
        yield (
            f"{setup.count:,} of {len(dataset):,} images, taken from the classes in turns, with the seed "
            f"{dataset.order}; `first` (--first) takes the first ones instead"
        )
    if dataset.left_out:
        first = dataset.left_out[0]
        many = counted(len(dataset.left_out), "file")
        yield f"{many} of {dataset.name} left out, the first: {first.id}: {first.message}"
    yield from _enlarged(setup)


def _enlarged(setup: Setup) -> Iterator[str]:
    """A note if every picture that is looked at is smaller than the first step makes it."""
    if not setup.prepare or setup.prepare[0].action == "crop":
        return
    sizes = list(_sizes(setup))
    side = setup.prepare[0].side
    if not sizes or max(min(size) for size in sizes) >= side:
        return
    shown = ", ".join(f"{width} × {height}" for height, width in dict.fromkeys(sizes[:3]))
    name = setup.suite.name if setup.suite else "the preparation"
    yield (
        f"pictures are enlarged before they are corrupted: {name} makes their short side {side} pixels "
        f"({', '.join(map(str, setup.prepare))}), and all that were looked at are smaller ({shown}). If they "
        "are made ready already, `prepare='none'` (--prepare none) takes them as they are"
    )


def _sizes(setup: Setup) -> Iterator[tuple[int, int]]:
    """Height and width of a few pictures, evenly spread; those that cannot be read are passed over."""
    for place in np.unique(np.linspace(0, setup.count - 1, _LOOKED_AT).astype(int)):
        try:
            height, width = setup.dataset[int(place)].image.shape[:2]
        except BeaufortError:
            continue
        yield height, width


def _circular(planned: Plan) -> Iterator[str]:
    """That a model is asked about images which features of its own kind helped to make."""
    for work in planned.works:
        features = str(getattr(work.condition.shift, "features", ""))
        kind = re.match("[a-z]*", features.lower())
        if kind and kind[0] and kind[0] in work.model.spec.name.lower():
            yield (
                f"{work.model.spec.name} is scored on images that a network made which learned from "
                f"{features}; its numbers under {work.condition.corruption} compare with no others"
            )


def _no_clean(planned: Plan) -> Iterator[str]:
    """That clean images of the suite were not there."""
    suite = planned.suite
    if suite is None or suite.parts or not suite.clean or any(work.condition.clean for work in planned.works):
        return
    yield (
        "the stored pictures come without clean ones, so there is no clean accuracy; `clean` (--clean) gives "
        f"those of {suite.dataset}"
    )
