"""Notes on the images and models of a run."""

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
"""Number of images whose size is read."""


def notes_on(plan: Plan) -> tuple[str, ...]:
    """Return notes on selected, omitted and enlarged images, and on models that may be used incorrectly."""
    images = (note for source in plan.sources for note in _notes(source.base or source))
    filters = (note for cell in plan.cells if (note := missing_filter_note(cell.model.spec)))
    notes = (*plan.warnings, *images, *_fewer_classes(plan), *_no_clean(plan), *_circular(plan), *filters)
    return tuple(dict.fromkeys(notes))


def _fewer_classes(plan: Plan) -> Iterator[str]:
    """Yield notes about datasets whose class names match a part of the outputs of a model."""
    if plan.options.convention is not None:
        return
    for cell in plan.cells:
        space, suite, dataset = cell.space, cell.source.suite, cell.source.dataset
        chosen = suite is not None and (suite.labels is not None or suite.classes is not None)
        if chosen or not dataset.by_name or space.outputs is None or space.convention == "all":
            continue
        classes, count = len(space.outputs), space.class_outputs
        if classes < count and max(map(len, space.outputs)) == 1:
            yield (
                f"accuracies on {dataset.name} are {classes:,}-way: of the {count:,} outputs of "
                f"{cell.model.spec.name}, only those of its classes compete; --labels convention=all "
                "(RunOptions(convention='all')) lets all outputs compete"
            )


def _notes(source: ImageSource) -> Iterator[str]:
    dataset = source.dataset
    if dataset.is_balanced:
        yield (
            f"{source.count:,} of {len(dataset):,} images, balanced over the classes with seed "
            f"{dataset.shuffle_seed}; --config first=N uses the first images instead"
        )
    yield from dataset.notes
    if dataset.ignored:
        first = dataset.ignored[0]
        many = counted(len(dataset.ignored), "file")
        yield f"{many} of {dataset.name} ignored; the first: {first.id}: {first.message}"
    yield from _enlarged(source)


def _enlarged(source: ImageSource) -> Iterator[str]:
    """Yield a note if all sampled images are smaller than the first step makes them."""
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
        f"images are enlarged before they are corrupted: {name} resizes their short side to {side} pixels "
        f"({', '.join(map(str, source.prepare))}), and all sampled images are smaller ({shown}). If they are "
        "prepared already, pass --config prepare=none"
    )


def _sizes(source: ImageSource) -> Iterator[tuple[int, int]]:
    """Yield the height and width of a few evenly spaced images that can be read."""
    for place in np.unique(np.linspace(0, source.count - 1, _LOOKED_AT).astype(int)):
        try:
            yield source.original_size(int(place))
        except BeaufortError:
            continue


def _circular(planned: Plan) -> Iterator[str]:
    """Yield a note on models evaluated on images made with features of the same architecture."""
    for cell in planned.cells:
        features = str(getattr(cell.condition.shift, "features", ""))
        kind = re.match("[a-z]*", features.lower())
        if kind and kind[0] and kind[0] in cell.model.spec.name.lower():
            yield (
                f"{cell.model.spec.name} is evaluated on images of a network that was trained with features "
                f"of {features}; its results under {cell.condition.corruption} are not comparable"
            )


def _no_clean(planned: Plan) -> Iterator[str]:
    """Yield a note if the clean images of the suite are missing."""
    suite = planned.suite
    if suite is None or suite.parts or not suite.clean or any(cell.condition.clean for cell in planned.cells):
        return
    yield (
        "the stored images have no clean versions, so there is no clean accuracy; pass those of "
        f"{suite.dataset} as --config clean=PATH"
    )
