"""What can be done to images beside the corruptions: attacks on a model, a transform of one's own.

A condition names it behind the data set, `imagenet-val/pgd-linf@0.5/255`: a kind of shift that is registered
here, and a level, a text whose meaning is the kind's own. A kind is a function from that text to a shift, and
a shift is one of two small protocols.
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
        """All that decides the pixels, ready for JSON; the seed only if something is random."""

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:
        """Changed images, uint8 `(n, h, w, c)`; an image comes out the same alone and in a batch."""


@runtime_checkable
class ModelShift(Protocol):
    """A change of images that is made for the model that sees them: an attack."""

    def facts(self, *, seed: int) -> dict[str, Any]:
        """All that decides the predictions, ready for JSON; the model has facts of its own."""

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
        """The logits of images that were changed for the model.

        Logits, not images: those need not be 8-bit.

        Args:
            model: the model itself.
            images: clean ones, uint8 `(n, h, w, c)`, an array or a tensor on the model's device.
            ids: one an image; with the seed they decide everything that is random.
            labels: what is right for each image, as columns of `space.apply(logits)`: `(n,)`, or `(n, most)`
                filled up with -1 where an image has a set of labels.
            space: which outputs count as which class.
            seed: any whole number.
        """


@runtime_checkable
class Demanding(Protocol):
    """What a `ModelShift` may also say, before anything is run."""

    @property
    def passes(self) -> int:
        """About how many times as long as a plain prediction it takes, at most."""

    def check(self, model: Model) -> None:
        """Raise an error if the model will not do."""


Shift: TypeAlias = ImageShift | ModelShift

Kind: TypeAlias = Callable[[str], Shift]
"""From a level, the text behind `@` (empty if there is none), to a shift; an `OptionError` if it is wrong."""

shifts: Registry[Kind] = Registry("shift", group="beaufort.shifts")
"""Every kind by its name."""


def register_shift(name: str) -> Callable[[Kind], Kind]:
    """Take a name for a kind of shift.

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
            "the name of a shift must be lower-case letters, digits, '-' and '_', and not that of a "
            f"corruption or a list of them, got {name!r:.60}"
        )

    def register(kind: Kind) -> Kind:
        shifts.register(name, kind)
        _reserve(name)
        return kind

    return register


def _reserve(name: str) -> None:
    use = f"write {name}@LEVEL under 'shifts' of a suite, or the condition DATA/{name}@LEVEL"
    corruptions.reserve([name], "a shift", use)


for _name in shifts:  # of entry points; those that are registered later are reserved then
    _reserve(_name)
