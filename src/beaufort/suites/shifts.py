"""Shifts: changes of images beside the corruptions, such as attacks or your own transforms.

A condition names a registered kind of shift and its level: `imagenet-val/pgd-linf@0.5/255`. A kind is a
function from the text of the level to a shift.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, Images
from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort.corruptions import corruptions, members_of
from beaufort.corruptions.rng import Id

if TYPE_CHECKING:
    from beaufort.data.labels import LabelSpace
    from beaufort.models import Model
    from beaufort.models.spec import Logits

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@runtime_checkable
class ImageShift(Protocol):
    """A change of images that is the same for every model."""

    def facts(self, *, seed: int) -> dict[str, Any]:
        """Return all that determines the pixels, ready for JSON; the seed only if something is random."""

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:
        """Return changed images, uint8 `(n, h, w, c)`, which do not depend on the rest of the batch."""


@runtime_checkable
class ModelShift(Protocol):
    """A change of images that depends on the model: an attack."""

    def facts(self, *, seed: int) -> dict[str, Any]:
        """Return all that determines the predictions beside the model, ready for JSON."""

    def predict(
        self,
        model: Model,
        images: Images,
        *,
        ids: Sequence[Id],
        labels: NDArray[np.int64],
        space: LabelSpace,
        seed: int,
    ) -> Logits:
        """Return the logits of the changed images, which need not be 8-bit.

        Args:
            model: the model.
            images: clean images, uint8 `(n, h, w, c)`, an array or a tensor on the model's device.
            ids: one id per image; ids and seed determine everything random.
            labels: correct columns of `space.apply(logits)`: `(n,)`, or `(n, k)` padded with -1 for label
                sets.
            space: which outputs count as which class.
            seed: any integer.
        """


@runtime_checkable
class Demanding(Protocol):
    """Optional members of a `ModelShift`, used before a run."""

    @property
    def passes(self) -> int:
        """Approximate maximum cost, in predictions."""

    def check(self, model: Model) -> None:
        """Raise an error if the model is not suitable."""


Shift: TypeAlias = ImageShift | ModelShift

Kind: TypeAlias = Callable[[str], Shift]
"""Function from a level, the text after `@` (empty if there is none), to a shift."""

shifts: Registry[Kind] = Registry("shift", group="beaufort.shifts")
"""Kinds of shift by name."""


def register_shift(name: str) -> Callable[[Kind], Kind]:
    """Register a kind of shift under a name.

    >>> @register_shift("upside-down")
    ... class UpsideDown:
    ...     def __init__(self, level): ...
    ...     def facts(self, *, seed):
    ...         return {"version": 1}
    ...     def apply(self, images, *, ids, seed):
    ...         return images[:, ::-1]
    >>> shifts["upside-down"]("").apply(np.arange(6).reshape(1, 2, 3, 1), ids=["a"], seed=0)[0, 0, :, 0]
    array([3, 4, 5])
    """
    if not _NAME.fullmatch(name) or members_of(name):
        raise OptionError(
            "the name of a shift must consist of lower-case letters, digits, '-' and '_' and differ from "
            f"corruptions and their subsets, got {name!r:.60}"
        )

    def register(kind: Kind) -> Kind:
        shifts.register(name, kind)
        _reserve(name)
        return kind

    return register


def _reserve(name: str) -> None:
    use = f"write {name}@LEVEL under 'shifts' of a suite, or the condition DATA/{name}@LEVEL"
    corruptions.reserve([name], "a shift", use)


for _name in shifts:  # of entry points
    _reserve(_name)
