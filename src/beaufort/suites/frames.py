"""Frames of sequences as conditions: `imagenet-val/rotate_frames@imagenet/7` is the eighth frame of a turn.

A sequence has the name of its published folder: `rotate`, or `gaussian_noise_2` for the second difficulty.
Its frames are a kind of shift, whose level is the scale and the number of the frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from beaufort._core.arrays import Bytes, Images
from beaufort._core.errors import OptionError
from beaufort.corruptions.rng import Id
from beaufort.corruptions.sequences import SIDES, VERSION, Perturbation, sequences
from beaufort.suites.shifts import register_shift

_LEVEL = re.compile(r"([a-z]+)/(0|[1-9][0-9]?)")


@dataclass(frozen=True)
class Frame:
    """One frame of a sequence, which is made after those before it."""

    sequence: str
    scale: str
    number: int
    """From 0."""

    @property
    def perturbation(self) -> Perturbation:
        """What makes it."""
        return sequences[self.sequence][0]

    @property
    def least_side(self) -> int:
        """Pixels that both sides of an image must have at least."""
        return SIDES[self.scale]

    @property
    def group(self) -> tuple[str, str]:
        """The same for all frames that are made one after the other."""
        return self.sequence, self.scale

    def facts(self, *, seed: int) -> dict[str, Any]:
        """All that decides the pixels, ready for JSON."""
        perturbation, difficulty = sequences[self.sequence]
        facts = {
            "version": VERSION,
            "scale": self.scale,
            "params": _plain(perturbation.levels[self.scale][difficulty - 1]),
        }
        return {**facts, "seed": seed} if perturbation.random else facts

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:
        """The frame of each image; those before it are made, too."""
        return np.asarray(next(self.frames(images, [self.number], ids=ids, seed=seed)))

    def frames(
        self, images: Images, numbers: Sequence[int], *, ids: Sequence[Id], seed: int
    ) -> Iterator[Images]:
        """Some frames of the same sequence, in their order.

        Args:
            images: a uint8 batch `(n, h, w, c)`, an array or a tensor, with what context there is.
            numbers: which frames, rising.
            ids: one an image.
            seed: of what is random.
        """
        perturbation, difficulty = sequences[self.sequence]
        film = perturbation.frames(images, scale=self.scale, ids=ids, seed=seed, difficulty=difficulty)
        wanted = set(numbers)
        for number, frame in enumerate(islice(film, max(wanted, default=-1) + 1)):
            if number in wanted:
                yield frame

    def cut(self, strips: Images) -> Images:
        """The frame of stored strips, in which frames lie below each other, `(n, frames · h, w, c)`."""
        height = strips.shape[1] // self.perturbation.length(self.scale)
        frame = strips[:, self.number * height : (self.number + 1) * height]
        return np.ascontiguousarray(frame) if isinstance(frame, np.ndarray) else frame.contiguous()


def frames_shift_name(sequence: str) -> str:
    """What the frames of a sequence are called in a condition.

    >>> frames_shift_name("rotate")
    'rotate_frames'
    """
    return f"{sequence}_frames"


def frame_shifts(sequence: str, scale: str) -> list[str]:
    """All frames of a sequence in their order, as they stand behind a data set.

    >>> frame_shifts("rotate", "cifar")[-1]
    'rotate_frames@cifar/30'
    """
    count = sequences[sequence][0].length(scale)
    return [f"{frames_shift_name(sequence)}@{scale}/{number}" for number in range(count)]


def _frame(sequence: str, level: str) -> Frame:
    match = _LEVEL.fullmatch(level)
    known = match is not None and match[1] in SIDES
    count = sequences[sequence][0].length(match[1]) if match and known else 0
    if match is None or not known or int(match[2]) >= count:
        raise OptionError(
            f"the level of {frames_shift_name(sequence)} must be a scale ({', '.join(SIDES)}) and the number "
            f"of a frame from 0{f' to {count - 1}' if known else ''}, as 'imagenet/7', got {level!r:.60}"
        )
    return Frame(sequence, match[1], int(match[2]))


def _plain(params: Any) -> Any:
    """Constants, ready for JSON."""
    if hasattr(params, "_asdict"):
        return {name: _plain(value) for name, value in params._asdict().items()}
    if isinstance(params, dict):
        return {str(name): value for name, value in params.items()}
    return list(params) if isinstance(params, list | tuple) else params


for _name in sequences:
    register_shift(frames_shift_name(_name))(partial(_frame, _name))
