"""Training on corrupted images, corrupted anew in each epoch on the device of the images."""

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
        training: context of the training run; its seed selects the corruption of each image and epoch.
        names: corruptions, groups such as `mnist-c` or `noise`, or chains such as `fog@2+snow@3`; one is
            chosen for each image.
        but: corruptions and whole chains of `names` to leave out.
        severity: a severity, or a list from which one is chosen for each image; by default 1, or the
            published one at the scale `mnist`. Chains have their own severities.
        weights: relative frequency of each name, as for `Corrupt`; not with `but`.
        clean: fraction of images that stay unchanged.
        scale: scale of the constants.
    """
    validate_number("clean", clean, 0, 1)
    chosen: str | Sequence[str] = names
    if but:
        if weights is not None:
            raise OptionError("the options 'weights' and 'but' cannot be used together")
        chosen = _without(_expanded(names), _expanded(but))
    corrupt = Corrupt(chosen, severity, training.seed, p=1 - clean, scale=scale, weights=weights)

    def prepare(block: TrainingBlock, epoch: int) -> Tensor:
        made: Tensor = corrupt.for_epoch(epoch)(block.images, image_id=block.places)
        return made

    return Intervention(prepare=prepare, constant=1)


def _expanded(names: str | Sequence[str]) -> tuple[str, ...]:
    return weigh_names([names] if isinstance(names, str) else names, None).names


def _without(names: tuple[str, ...], but: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in but if name not in names]:
        raise OptionError(f"the option 'but' must contain corruptions of 'names', got {unknown[0]!r}")
    if set(names) <= set(but):
        raise OptionError("the option 'but' must not contain all corruptions of 'names'")
    return tuple(name for name in names if name not in but)
