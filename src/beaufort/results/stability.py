"""How steady answers are over sequences of frames: what each image adds to flips and to top-5 distances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from beaufort.corruptions.sequences import sequences
from beaufort.metrics import flips, top5_distances
from beaufort.metrics.stability import Against
from beaufort.results.answers import Answers
from beaufort.results.linear import Linear
from beaufort.results.statistics import FEWEST, Divisor, Errors, ratio_form
from beaufort.suites import Suite
from beaufort.suites.frames import kind_of_frames

FARTHEST = 15
"""The largest top-5 distance: the five best classes of one frame are none of another's."""

KINDS = ("flip_probability", "top5_distance")
"""What is measured of each sequence."""

RATES = {"flip_probability": "mfr", "top5_distance": "mt5d"}
"""What each is called when it is divided by a baseline's."""

_TOP = 5


@dataclass(frozen=True, eq=False)
class Movement:
    """One model's movement over each sequence, `(images, sequences)` of values from 0 to 1."""

    shares: Mapping[str, Errors]
    """By kind: flips as the share of frames, distances as a share of the largest; none where a model has
    fewer than five classes."""


def movement(answers: Answers, suite: Suite) -> Movement:
    """How often and how far a model's answers move, image by image, over each sequence of a suite."""
    found: dict[str, list[Errors]] = {}
    for name in suite.sequences:
        top = np.ascontiguousarray(answers.top[answers.rows[kind_of_frames(name)]].swapaxes(0, 1))
        against: Against = "first" if sequences[name][0].noise else "previous"
        found.setdefault("flip_probability", []).append(flips(top[..., 0], against=against))
        if top.shape[-1] == _TOP:
            far = top5_distances(top, against=against)
            found.setdefault("top5_distance", []).append(far / FARTHEST)
    return Movement({kind: np.stack(some, axis=1) for kind, some in found.items()})


def divisors(
    suite: Suite,
    name: str,
    stored: Movement | None,
    values: Mapping[str, Mapping[str, float]],
) -> dict[str, Divisor]:
    """What a baseline divides by, for each kind that it has.

    Args:
        suite: whose sequences.
        name: of the baseline.
        stored: what a model of the store does; None for values that were given.
        values: given ones by kind and sequence.
    """
    if stored is None:
        scale = {"flip_probability": 1.0, "top5_distance": float(FARTHEST)}
        given = {kind: np.array([some[one] for one in suite.sequences]) for kind, some in values.items()}
        return {kind: Divisor(name, means / scale[kind], None, {}) for kind, means in given.items()}
    return {
        kind: Divisor(name, shares.mean(axis=0), shares, _unable(suite, kind, shares))
        for kind, shares in stored.shares.items()
    }


def _unable(suite: Suite, kind: str, shares: Errors) -> dict[str, str]:
    """Why a model of the store cannot divide: over what is nearly zero no interval holds."""
    moved = (shares > 0).sum(axis=0)
    least = int(moved.argmin())
    if moved[least] >= FEWEST:
        return {}
    reason = (
        f"not enough images: the baseline's answers move on {moved[least]} of {len(shares):,} images over "
        f"the frames of {suite.sequences[least]}, and at least {FEWEST} are needed to divide by"
    )
    return {RATES[kind]: reason}


def movement_forms(suite: Suite, model: str, own: Movement, base: Mapping[str, Divisor]) -> dict[str, Linear]:
    """The means over all sequences, then those relative to a baseline."""
    every = range(len(suite.sequences))
    plain = {kind: _mean(model, kind, shares, every) for kind, shares in own.shares.items()}
    rates = {
        RATES[kind]: ratio_form(model, shares, base[kind], every, suite.sequences, relative=False)
        for kind, shares in own.shares.items()
        if kind in base and not base[kind].unable
    }
    return {**plain, **rates}


def sequence_forms(suite: Suite, model: str, own: Movement, kind: str) -> dict[str, Linear]:
    """The same for each sequence by itself, not divided; empty if there is none of the kind."""
    if kind not in own.shares:
        return {}
    return {name: _mean(model, kind, own.shares[kind], [i]) for i, name in enumerate(suite.sequences)}


def _mean(model: str, kind: str, shares: Errors, places: range | list[int]) -> Linear:
    weights = np.zeros(shares.shape[1])
    weights[list(places)] = (FARTHEST if kind == "top5_distance" else 1) / len(places)
    return Linear.of(0.0, {model: (shares, weights)})
