"""What is known about a value that was left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats import Estimate, mean_interval, newcombe


@dataclass(frozen=True)
class ValueScore:
    """How models that never saw a value do on its images."""

    value: str
    trained_on: int
    """Images of other values that each network was trained on."""
    accuracy: Estimate
    """On the images of the value; the mean over seeds, with an interval over images."""
    seen: Estimate | None
    """On images of other values that were not trained on; None if none were kept back."""
    drop: Estimate | None
    """What is lost: `seen` less `accuracy`."""
    by_seed: tuple[float, ...]
    """The accuracy on the images of the value, of each seed."""
    cap: float
    """The highest accuracy without luck: less than 1 if a class has images of this value alone. A network
    that was fine-tuned may know such a class from before."""
    unread: int
    """Images of the value that could not be read, and do not count."""


def value_score(
    value: str,
    trained_on: int,
    held_out: NDArray[np.bool_],
    seen: NDArray[np.bool_] | None,
    *,
    cap: float,
    unread: int,
) -> ValueScore:
    """The score of right and wrong answers, `(seeds, images)`."""
    accuracy = mean_interval(held_out.mean(axis=0))
    other = None if seen is None else mean_interval(seen.mean(axis=0))
    drop = None if other is None else newcombe(other, accuracy)
    by_seed = tuple(map(float, held_out.mean(axis=1)))
    return ValueScore(value, trained_on, accuracy, other, drop, by_seed, cap, unread)
