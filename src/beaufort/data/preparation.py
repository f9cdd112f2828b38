"""Resizing and cropping of images before they are corrupted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from beaufort._core.arrays import MIN_SIDE, Bytes
from beaufort._core.errors import BeaufortError, ImageFileError, OptionError
from beaufort._core.validation import validate_integer
from beaufort.data._dataset import (
    Dataset,
    Problem,
    TransformedPixels,
    best_chunk_size,
    read_several,
    strict_error,
)
from beaufort.data.images import MAX_SIDE, center_box, crop_box, resize_crop, short_side_size

_TEXT = re.compile(r"(resize|stretch|crop) ([1-9][0-9]{1,4})")


class Step(NamedTuple):
    """One step: `resize 256` (the short side), `stretch 64` (both sides), `crop 224` (the center)."""

    action: str
    side: int
    """In pixels."""

    @classmethod
    def parse(cls, text: str) -> Step:
        """Parse a step.

        >>> Step.parse("resize 256")
        Step(action='resize', side=256)
        """
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None or int(match[2]) < MIN_SIDE:
            raise OptionError(
                "a step must have a form such as 'resize 256' (the short side), 'stretch 64' (both sides) or "
                f"'crop 224' (the center), with at least {MIN_SIDE} pixels, got {text!r:.60}"
            )
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.action} {self.side}"


def prepare(pixels: Bytes, steps: Sequence[Step]) -> Bytes:
    """Return an image `(h, w, c)` after some steps, with bilinear interpolation bit-identical to Pillow's.

    Pixels that a crop removes are not computed.
    """
    rest = list(steps)
    while rest:
        action, side = rest.pop(0)
        height, width = pixels.shape[:2]
        if action == "crop":
            pixels = crop_box(pixels, center_box(width, height, side))
            continue
        size = short_side_size(width, height, side) if action == "resize" else (side, side)
        cropped = rest and rest[0].action == "crop"
        pixels = resize_crop(pixels, size, center_box(*size, rest.pop(0).side) if cropped else None)
    return pixels


@dataclass(frozen=True)
class PreparedImages:
    """Images by index, with the size and the channels that are corrupted."""

    dataset: Dataset
    steps: tuple[Step, ...]
    gray: bool
    """Whether images with one channel keep one."""
    least_side: int = 0
    """Minimum of both sides after the steps, in pixels."""

    @property
    def chunk_size(self) -> int:
        """The number of images that a thread should prepare in a row."""
        return best_chunk_size(self.dataset.pixels)

    def __call__(self, index: int) -> Bytes | Problem:
        """Return an image, or a problem; a strict dataset raises an error instead."""
        try:
            return self.prepare(self.dataset[index].image)
        except BeaufortError as error:
            problem = Problem(self.dataset.ids[index], str(error))
            if self.dataset.strict:
                raise strict_error(problem) from error
            return problem

    def read_many(self, indices: range) -> Iterator[Bytes | Problem]:
        """Yield images or problems; images of one file are read together."""
        done = 0
        try:
            for pixels in read_several(self.dataset.pixels, indices):
                yield self.prepare(pixels)
                done += 1
        except BeaufortError:  # read the others one by one
            yield from map(self, indices[done:])

    def prepare(self, pixels: Bytes) -> Bytes:
        """Prepare a decoded image, `(h, w, c)`."""
        ready = prepare(pixels, self.steps)
        if min(ready.shape[:2]) < self.least_side:
            raise ImageFileError(
                f"both sides of an image to corrupt must be at least {self.least_side} pixels, got "
                f"{ready.shape[1]} × {ready.shape[0]}"
            )
        return ready if self.gray or ready.shape[-1] == 3 else np.repeat(ready, 3, axis=-1)


def resized(dataset: Dataset, side: int) -> Dataset:
    """Return a dataset with images resized to RGB squares of `side` pixels, ignoring the aspect ratio."""
    validate_integer("side", side, 1, MAX_SIDE)
    return replace(
        dataset, pixels=TransformedPixels(dataset.pixels, partial(_resized, side=side), f"resized to {side}")
    )


def _resized(image: Bytes, side: int) -> Bytes:
    color = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
    return resize_crop(color, (side, side))
