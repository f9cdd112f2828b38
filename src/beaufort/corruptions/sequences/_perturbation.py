"""The class of perturbations: sequences of frames made of one image, with constants for each scale."""

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
from beaufort.corruptions._corruption import validate_option
from beaufort.corruptions._kernels import Ops, ops_of
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
"""The scales and the side of their frames, in pixels."""

FRAMES = 31
"""Number of frames of most sequences."""

VERSION = 1
"""Increases when the pixels of an unchanged call change."""


@dataclass(frozen=True)
class View:
    """A batch of images, larger than the frames if they have a margin."""

    whole: Images
    """`(n, h, w, c)`."""
    side: int
    """Side of a frame."""
    ops: Ops

    @property
    def middle(self) -> Images:
        """The part of the images that a frame shows."""
        cropped = self.crop(self.whole)
        return np.ascontiguousarray(cropped) if isinstance(cropped, np.ndarray) else cropped.contiguous()

    def crop(self, images: Any, columns: slice | None = None) -> Any:
        """Crop the middle of images of the whole size, or other columns; half pixels round to even."""
        top, left = (round((length - self.side) / 2) for length in images.shape[1:3])
        across = slice(left, left + self.side) if columns is None else columns
        return images[:, top : top + self.side, across]

    def affine(self, matrix: NDArray[np.float64], about: tuple[float, float]) -> Images:
        """Crop under the map (x, y) ← matrix · (x, y) about a point; black outside, truncated."""
        return self.ops.affine_frame(self.whole, matrix, about, self.side)

    def perspective(self, inverse: NDArray[np.float64]) -> Images:
        """Crop under a perspective map, given from the frame to the image; rounded."""
        return self.ops.perspective_frame(self.whole, inverse, self.side)


Render = Callable[[View, Any, Random], Iterator[Images]]


class Perturbation:
    """A named way to make a sequence of frames from an image."""

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
        """The constants of each difficulty, by scale."""
        self.random = random
        """Whether random numbers are drawn."""
        self._render = render
        self._lengths = lengths or {}

    def __repr__(self) -> str:
        return f"<Perturbation {self.name}>"

    @property
    def noise(self) -> bool:
        """Whether each frame has new noise and is compared with the first one."""
        return self.name.endswith("noise")

    def length(self, scale: str) -> int:
        """Return the number of frames at a scale."""
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
        """Yield the frames of a batch one after the other, `(n, side, side, c)`.

        Args:
            images: a uint8 batch `(n, h, w, 1|3)`, an array or a tensor, no smaller than a frame.
                Geometry uses the whole image, and frames show its middle: for `imagenet` pass images with a
                short side of 256.
            scale: `imagenet`, `tiny` or `cifar`.
            ids: one id per image; by default its position in the batch.
            seed: any integer.
            difficulty: 1; for noise also 2 and 3. (For others, difficulty is a stride of the metric.)
            stream: `keyed`, or `reference` for the draws of the published programs, one image at a time.
        """
        validate_option("scale", scale, tuple(self.levels))
        levels, side = self.levels[scale], SIDES[scale]
        validate_integer("difficulty", difficulty, 1, len(levels))
        validate_option("stream", stream, STREAMS)
        images = checked_pixels(images, "frames are made before values are scaled")
        if min(images.shape[1:3]) < side:
            raise OptionError(f"images must have sides of at least {side}, got {tuple(images.shape[1:3])}")
        validate_ids(ids, len(images))
        every = range(len(images)) if ids is None else ids
        random = self._random(images, every, validate_seed(seed), difficulty, stream)
        return self._render(View(images, side, ops_of(images)), levels[difficulty - 1], random)

    def _random(self, images: Images, ids: Sequence[Id], seed: int, difficulty: int, stream: str) -> Random:
        on_host = isinstance(images, np.ndarray)
        if stream == "reference":
            if len(images) != 1 or not on_host:
                given = f"{len(images)} in {'an array' if on_host else 'a tensor'}"
                raise OptionError(f"stream 'reference' requires one image in an array, got {given}")
            return ReferenceStream(seed)
        key, words = Key.of(seed, f"{self.name}-sequence", VERSION, difficulty), id_words(ids)
        if isinstance(images, np.ndarray):
            return Keyed(key, words, ops_of(images))
        from beaufort._core.device import upload

        return Keyed(key, upload(words.view(np.int64), images.device), ops_of(images), lambda: words)


perturbations: Registry[Perturbation] = Registry("perturbation")
"""All perturbations by name."""


def perturbation(
    levels: Mapping[str, Sequence[Any]], *, random: bool = False, lengths: Mapping[str, int] | None = None
) -> Callable[[Render], Perturbation]:
    """Register a generator of frames under its name.

    Args:
        levels: the constants of each difficulty, by scale.
        random: whether random numbers are drawn.
        lengths: the number of frames, by scale, if it is not `FRAMES`.
    """

    def register(render: Render) -> Perturbation:
        name, doc = render.__name__, render.__doc__ or ""
        made = Perturbation(name, doc, levels, render, random=random, lengths=lengths)
        perturbations.register(made.name, made)
        return made

    return register
