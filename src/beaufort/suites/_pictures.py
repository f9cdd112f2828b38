"""The pictures of a data set, made ready as a suite says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from beaufort.arrays import Bytes
from beaufort.datasets import Dataset, Problem
from beaufort.datasets._dataset import read_several
from beaufort.errors import BeaufortError
from beaufort.suites._step import Step

__all__ = ["Pictures"]


@dataclass(frozen=True)
class Pictures:
    """Pictures by their place, brought to the size and the channels that are corrupted."""

    dataset: Dataset
    steps: tuple[Step, ...]
    grey: bool
    """Whether grey pictures stay grey."""

    def __call__(self, place: int) -> Bytes | Problem:
        """One picture, or what is wrong with it; the first wrong one of a strict data set is an error."""
        try:
            return self.ready(self.dataset[place].image)
        except BeaufortError as error:
            if self.dataset.strict:
                raise
            return Problem(self.dataset.ids[place], str(error))

    def several(self, places: range) -> Iterator[Bytes | Problem]:
        """As for one place after the other, where pictures of one file are read together."""
        some, done = map(self.ready, read_several(self.dataset.pixels, places)), 0
        try:
            while done < len(places):
                yield next(some)
                done += 1
        except BeaufortError:  # which of them it was, and what the next ones are like, is seen one by one
            yield from map(self, places[done:])

    def ready(self, pixels: Bytes) -> Bytes:
        """A decoded picture, made ready, `(h, w, c)`."""
        from PIL import Image

        if pixels.shape[-1] == 1 and not self.grey:
            pixels = np.repeat(pixels, 3, axis=-1)
        if not self.steps:
            return pixels
        picture = Image.fromarray(pixels if pixels.shape[-1] == 3 else pixels[..., 0])
        for step in self.steps:
            picture = step.apply(picture)
        return np.ascontiguousarray(np.asarray(picture)).reshape(picture.height, picture.width, -1)
