"""Frames of sequences as conditions: `imagenet-val/rotate_frames@imagenet/7` is frame 7 of a rotation.

A sequence has the name of its published directory: `rotate`, or `gaussian_noise_2` for the second difficulty.
Its frames are a shift whose level is the scale and the number of the frame.
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
    """One frame of a sequence."""

    sequence: str
    scale: str
    number: int
    """From 0."""

    @property
    def perturbation(self) -> Perturbation:
        """The perturbation of the sequence."""
        return sequences[self.sequence][0]

    @property
    def least_side(self) -> int:
        """Minimum side of an image in pixels."""
        return SIDES[self.scale]

    @property
    def group(self) -> tuple[str, str]:
        """Key shared by the frames that are made in one pass."""
        return self.sequence, self.scale

    def facts(self, *, seed: int) -> dict[str, Any]:
        """Return all that determines the pixels, ready for JSON."""
        perturbation, difficulty = sequences[self.sequence]
        facts = {
            "version": VERSION,
            "scale": self.scale,
            "params": _plain(perturbation.levels[self.scale][difficulty - 1]),
        }
        return {**facts, "seed": seed} if perturbation.random else facts

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:
        """Return the frame of each image."""
        return np.asarray(next(self.frames(images, [self.number], ids=ids, seed=seed)))

    def frames(
        self, images: Images, numbers: Sequence[int], *, ids: Sequence[Id], seed: int
    ) -> Iterator[Images]:
        """Yield some frames of the same sequence, in order.

        Args:
            images: uint8 batch `(n, h, w, c)`, an array or a tensor, uncropped.
            numbers: increasing frame numbers.
            ids: one id per image.
            seed: any integer.
        """
        perturbation, difficulty = sequences[self.sequence]
        every = perturbation.frames(images, scale=self.scale, ids=ids, seed=seed, difficulty=difficulty)
        wanted = set(numbers)
        for number, frame in enumerate(islice(every, max(wanted, default=-1) + 1)):
            if number in wanted:
                yield frame

    def cut(self, strips: Images) -> Images:
        """Return the frame from stored strips, which stack all frames: `(n, frames · h, w, c)`."""
        height = strips.shape[1] // self.perturbation.length(self.scale)
        frame = strips[:, self.number * height : (self.number + 1) * height]
        return np.ascontiguousarray(frame) if isinstance(frame, np.ndarray) else frame.contiguous()


def frames_shift_name(sequence: str) -> str:
    """Return the name of the frames of a sequence in a condition.

    >>> frames_shift_name("rotate")
    'rotate_frames'
    """
    return f"{sequence}_frames"


def frame_shifts(sequence: str, scale: str) -> list[str]:
    """Return the texts of all frames of a sequence, as in a condition.

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
            f"the level of {frames_shift_name(sequence)} must be a scale ({', '.join(SIDES)}) and a frame "
            f"number from 0{f' to {count - 1}' if known else ''}, such as 'imagenet/7', got {level!r:.60}"
        )
    return Frame(sequence, match[1], int(match[2]))


def _plain(params: Any) -> Any:
    if hasattr(params, "_asdict"):
        return {name: _plain(value) for name, value in params._asdict().items()}
    if isinstance(params, dict):
        return {str(name): value for name, value in params.items()}
    return list(params) if isinstance(params, list | tuple) else params


for _name in sequences:
    register_shift(frames_shift_name(_name))(partial(_frame, _name))
