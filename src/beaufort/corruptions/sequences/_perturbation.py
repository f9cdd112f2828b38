"""What a perturbation is: a sequence of frames made of one picture, with constants for each scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Images, checked_pixels
from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort._core.validation import validate_integer
from beaufort.corruptions._kernels import Ops, cpu_ops, ops_of, torch_ops
from beaufort.corruptions.rng import (
    STREAMS,
    Id,
    Key,
    Keyed,
    Random,
    ReferenceStream,
    id_words,
    validate_ids,
    validate_seed,
)

SIDES = {"imagenet": 224, "tiny": 64, "cifar": 32}
"""The scales and the side of their frames."""

FRAMES = 31
"""Of most sequences."""

VERSION = 1
"""Goes up when an unchanged call gives other pixels."""


@dataclass(frozen=True)
class View:
    """A batch of pictures, larger than the frames if there is context."""

    whole: Images
    """`(n, h, w, c)`."""
    side: int
    """Of a frame."""
    ops: Ops

    @property
    def middle(self) -> Images:
        """The part that a frame shows."""
        cropped = self.crop(self.whole)
        return np.ascontiguousarray(cropped) if isinstance(cropped, np.ndarray) else cropped.contiguous()

    def crop(self, images: Any, columns: slice | None = None) -> Any:
        """The middle of pictures of the whole size, or other columns; half pixels go to even ones."""
        top, left = (round((length - self.side) / 2) for length in images.shape[1:3])
        across = slice(left, left + self.side) if columns is None else columns
        return images[:, top : top + self.side, across]

    def affine(self, matrix: NDArray[np.float64], about: tuple[float, float]) -> Images:
        """The crop under a map (x, y) ← matrix · (x, y) about a point; black outside, cut off."""
        return self.ops.affine_frame(self.whole, matrix, about, self.side)

    def perspective(self, inverse: NDArray[np.float64]) -> Images:
        """The crop of the picture under a perspective map, given from the frame to the picture; rounded."""
        return self.ops.perspective_frame(self.whole, inverse, self.side)


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
        if scale not in self.levels:
            raise OptionError(f"scale must be one of {', '.join(self.levels)}, got {scale!r}")
        levels, side = self.levels[scale], SIDES[scale]
        validate_integer("difficulty", difficulty, 1, len(levels))
        if stream not in STREAMS:
            raise OptionError(f"stream must be one of {', '.join(STREAMS)}, got {stream!r}")
        images = checked_pixels(images, "frames are made before values are scaled")
        if min(images.shape[1:3]) < side:
            raise OptionError(f"images must have sides of at least {side}, got {tuple(images.shape[1:3])}")
        validate_ids(ids, len(images))
        every = range(len(images)) if ids is None else ids
        random = self._random(images, every, validate_seed(seed), difficulty, stream)
        return self._render(View(images, side, ops_of(images)), levels[difficulty - 1], random)

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
