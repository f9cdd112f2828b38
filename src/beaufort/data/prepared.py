"""The pictures of a data set, made ready as a suite says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, ImageFileError
from beaufort.data import Dataset, Problem
from beaufort.data._dataset import best_at_once, read_several, strict_error
from beaufort.data.steps import Step, prepare


@dataclass(frozen=True)
class Pictures:
    """Pictures by their place, brought to the size and the channels that are corrupted."""

    dataset: Dataset
    steps: tuple[Step, ...]
    grey: bool
    """Whether grey pictures stay grey."""
    least_side: int = 0
    """Pixels that both sides must have at least, when a picture is made ready."""

    @property
    def at_once(self) -> int:
        """How many pictures one thread best makes ready in a row."""
        return best_at_once(self.dataset.pixels)

    def __call__(self, place: int) -> Bytes | Problem:
        """One picture, or what is wrong with it; the first wrong one of a strict data set is an error."""
        try:
            return self.ready(self.dataset[place].image)
        except BeaufortError as error:
            problem = Problem(self.dataset.ids[place], str(error))
            if self.dataset.strict:
                raise strict_error(problem) from error
            return problem

    def several(self, places: range) -> Iterator[Bytes | Problem]:
        """As for one place after the other, where pictures of one file are read together."""
        done = 0
        try:
            for pixels in read_several(self.dataset.pixels, places):
                yield self.ready(pixels)
                done += 1
        except BeaufortError:  # which of them it was, and what the next ones are like, is seen one by one
            yield from map(self, places[done:])

    def ready(self, pixels: Bytes) -> Bytes:
        """A decoded picture, made ready, `(h, w, c)`."""
        ready = prepare(pixels, self.steps)
        if min(ready.shape[:2]) < self.least_side:
            raise ImageFileError(
                f"both sides of a picture must be at least {self.least_side} pixels to be corrupted, got "
                f"{ready.shape[1]} × {ready.shape[0]}; enlarge it first"
            )
        return ready if self.grey or ready.shape[-1] == 3 else np.repeat(ready, 3, axis=-1)
