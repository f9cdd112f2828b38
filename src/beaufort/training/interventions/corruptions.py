"""Corruptions on the fly: every image is corrupted anew in every epoch, where the images are."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_number
from beaufort.corruptions import Corrupt, weigh_names
from beaufort.training.data import TrainingBlock
from beaufort.training.interventions.base import Intervention, TrainingContext


def make(
    training: TrainingContext,
    *,
    names: str | Sequence[str],
    but: str | Sequence[str] = (),
    severity: float | Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
    clean: float = 0.0,
    scale: str = "auto",
) -> Intervention:
    """Train on corrupted images.

    Args:
        training: what it is part of. Which corruption an image gets in an epoch depends on its seed; on a
            CUDA device the corruptions are made there.
        names: corruptions, lists such as `mnist-c` or `noise`, or chains such as `fog@2+snow@3`; one of them
            is chosen for each image.
        but: those of `names` that are left out; a chain is left out by its whole name.
        severity: one, or a list of which one is chosen for each image. None is 1, and the published one at
            the scale of digits; a chain has severities of its own.
        weights: how often each name is chosen, as for `Corrupt`; not with `but`.
        clean: the share of images that stay as they are.
        scale: whose constants.
    """
    validate_number("clean", clean, 0, 1)
    if not names:
        raise OptionError(f"names must be at least one corruption, got {names!r:.60}")
    chosen: str | Sequence[str] = names
    if but:
        if weights is not None:
            raise OptionError(f"weights must be left out where `but` is given, got {weights!r:.60}")
        chosen = _without(_expanded(names), _expanded(but))
    rough = Corrupt(chosen, severity, training.seed, p=1 - clean, scale=scale, weights=weights)

    def prepare(block: TrainingBlock, epoch: int) -> Tensor:
        made: Tensor = rough.for_epoch(epoch)(block.images, image_id=block.places)
        return made

    return Intervention(prepare=prepare, constant=1)


def _expanded(names: str | Sequence[str]) -> tuple[str, ...]:
    return weigh_names([names] if isinstance(names, str) else names, None).names


def _without(names: tuple[str, ...], but: tuple[str, ...]) -> tuple[str, ...]:
    for name in but:
        if name not in names:
            raise OptionError(f"but must name some of the corruptions that are trained on, got {name!r}")
    left = tuple(name for name in names if name not in but)
    if not left:
        raise OptionError("names must leave at least one corruption, got none beside those of but")
    return left
