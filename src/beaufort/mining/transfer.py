"""Whether failures carry over: to models that did not choose the images, and from one model to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats import Estimate, clopper_pearson
from beaufort.mining.selection import MinedSelection
from beaufort.mining.verdicts import Verdicts


@dataclass(frozen=True)
class ModelHardness:
    """One model on all images, and on those that were kept."""

    model: str
    surrogate: bool
    unfiltered: Estimate
    kept: Estimate | None
    """None if nothing was kept. Of a surrogate it is low by choice, and says nothing about the model."""


@dataclass(frozen=True)
class TransferCell:
    """The failures of one model that another one shares."""

    source: str
    target: str
    share: Estimate | None
    """None if the source fails on no image."""


@dataclass(frozen=True)
class NuisanceFailures:
    """How often one model fails with one nuisance."""

    kind: str
    nuisance: str
    """Empty for all of its kind."""
    model: str
    failures: Estimate


def hardness(selection: MinedSelection) -> tuple[ModelHardness, ...]:
    """Every model on the unfiltered and on the kept images; surrogates are marked, and come last."""
    verdicts, kept = selection.verdicts, selection.kept
    found = []
    for name in (*selection.others, *selection.surrogates):
        right = ~verdicts.failed[verdicts.row(name)]
        found.append(
            ModelHardness(
                name, name in selection.surrogates, _share(right), _share(right[kept]) if kept.any() else None
            )
        )
    return tuple(found)


def transfer_matrix(selection: MinedSelection) -> tuple[TransferCell, ...]:
    """For every two models the share of the first one's failures, among all images, that the second has."""
    verdicts = selection.verdicts
    cells = []
    for source in verdicts.models:
        own = verdicts.failed[verdicts.row(source)]
        for target in verdicts.models:
            if target != source:
                shared = verdicts.failed[verdicts.row(target)][own]
                cells.append(TransferCell(source, target, _share(shared) if own.any() else None))
    return tuple(cells)


def nuisance_failures(
    verdicts: Verdicts, nuisances: Sequence[tuple[str, str]]
) -> tuple[NuisanceFailures, ...]:
    """How often each model fails, for each kind and each nuisance.

    Args:
        verdicts: what models said.
        nuisances: the kind and the nuisance of each image; empty where it is not known.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, (kind, nuisance) in enumerate(nuisances):
        groups.setdefault((kind, ""), []).append(place)
        if nuisance:
            groups.setdefault((kind, nuisance), []).append(place)
    return tuple(
        NuisanceFailures(kind, nuisance, model, _share(verdicts.failed[verdicts.row(model)][places]))
        for (kind, nuisance), places in sorted(groups.items())
        for model in verdicts.models
    )


def _share(yes: NDArray[np.bool_]) -> Estimate:
    return clopper_pearson(int(yes.sum()), len(yes))
