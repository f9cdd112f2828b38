"""What a perturbation is: a sequence of frames made of one picture, with constants for each scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from beaufort._core.arrays import Images, checked_pixels
from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort.corruptions._kernels import cpu_ops, torch_ops
from beaufort.corruptions.rng import (
    STREAMS,
    Id,
    Key,
    Keyed,
    Random,
    ReferenceStream,
    check_ids,
    checked_seed,
    id_words,
)
from beaufort.corruptions.sequences._frames import View

SIDES = {"imagenet": 224, "tiny": 64, "cifar": 32}
"""The scales and the side of their frames."""

FRAMES = 31
"""Of most sequences."""

VERSION = 1
"""Goes up when an unchanged call gives other pixels."""

Render = Callable[[View, Any, Random], Iterator[Images]]


class Perturbation:
    """A named way to make a sequence of frames of a picture."""

    def __init__(
        self,
        name: str,
        doc: str,
        levels: Mapping[str, Sequence[Any]],
        render: Render,
        *,
        random: bool = False,
        lengths: Mapping[str, int] | None = None,
    ) -> None:
        self.name = name
        self.__doc__ = doc
        self.levels = levels
        """By scale, the constants of each difficulty."""
        self.random = random
        """Whether something is drawn."""
        self._render = render
        self._lengths = lengths or {}

    def __repr__(self) -> str:
        return f"<Perturbation {self.name}>"

    @property
    def noise(self) -> bool:
        """Whether frames are noise anew each, and are compared with the first one."""
        return self.name.endswith("noise")

    def length(self, scale: str) -> int:
        """How many frames there are at a scale."""
        return self._lengths.get(scale, FRAMES)

    def frames(
        self,
        images: Images,
        *,
        scale: str,
        ids: Sequence[Id] | None = None,
        seed: int = 0,
        difficulty: int = 1,
        stream: str = "keyed",
    ) -> Iterator[Images]:
        """The frames of a batch, one after the other, `(n, side, side, c)`.

        Args:
            images: a uint8 batch `(n, h, w, 1|3)`, an array or a tensor, no smaller than a frame.
                Geometry sees all of it, and frames show its middle: for `imagenet` give pictures of a short
                side of 256.
            scale: `imagenet`, `tiny` or `cifar`.
            ids: one identity an image; its place in the batch if not given.
            seed: any integer.
            difficulty: 1, or of noise also 2 and 3. (Of others a difficulty is a stride of the metric.)
            stream: `keyed`, or `reference` for the draws of the published programs, one image at a time.
        """
        if not isinstance(scale, str) or scale not in self.levels:
            raise OptionError(f"scale must be one of {', '.join(self.levels)}, got {scale!r}")
        levels, side = self.levels[scale], SIDES[scale]
        whole = isinstance(difficulty, int | np.integer) and not isinstance(difficulty, bool)
        if not whole or difficulty not in range(1, len(levels) + 1):
            only = "1" if len(levels) == 1 else f"an integer from 1 to {len(levels)}"
            raise OptionError(f"difficulty must be {only}, got {difficulty!r}")
        if stream not in STREAMS:
            raise OptionError(f"stream must be one of {', '.join(STREAMS)}, got {stream!r}")
        images = checked_pixels(images, "frames are made before values are scaled")
        if min(images.shape[1:3]) < side:
            raise OptionError(f"images must have sides of at least {side}, got {tuple(images.shape[1:3])}")
        check_ids(ids, len(images))
        ops = cpu_ops() if isinstance(images, np.ndarray) else torch_ops()
        every = range(len(images)) if ids is None else ids
        random = self._random(images, every, checked_seed(seed), difficulty, stream)
        return self._render(View(images, side, ops), levels[difficulty - 1], random)

    def _random(self, images: Images, ids: Sequence[Id], seed: int, difficulty: int, stream: str) -> Random:
        if stream == "reference":
            if len(images) != 1 or not isinstance(images, np.ndarray):
                given = f"{len(images)} in {'an array' if isinstance(images, np.ndarray) else 'a tensor'}"
                raise OptionError(f"the reference stream needs one image in an array, got {given}")
            return ReferenceStream(seed)
        key, words = Key.of(seed, f"{self.name}-sequence", VERSION, difficulty), id_words(ids)
        if isinstance(images, np.ndarray):
            return Keyed(key, words, cpu_ops())
        from beaufort._core.device import upload

        there = upload(words.view(np.int64), images.device)
        return Keyed(key, there, torch_ops(), lambda fields: Keyed(key, words, cpu_ops(), fields=fields))


perturbations: Registry[Perturbation] = Registry("perturbation")
"""Every perturbation by its name."""


def perturbation(
    levels: Mapping[str, Sequence[Any]], *, random: bool = False, lengths: Mapping[str, int] | None = None
) -> Callable[[Render], Perturbation]:
    """Register a generator of frames under its name.

    Args:
        levels: by scale, the constants of each difficulty.
        random: whether something is drawn.
        lengths: by scale, the number of frames where that is not `FRAMES`.
    """

    def register(render: Render) -> Perturbation:
        name, doc = render.__name__, render.__doc__ or ""
        made = Perturbation(name, doc, levels, render, random=random, lengths=lengths)
        perturbations.register(made.name, made)
        return made

    return register
