"""Stripe: the middle of the digit as it was, the flanks inverted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import FractionOfSide, Images, Ops, corruption


class Params(NamedTuple):
    """Where the stripe is."""

    flank: FractionOfSide
    """Share of the columns on each side that is inverted."""


@corruption("digits", levels={"mnist": [Params(0.25)]})
def stripe(images: Images, p: Params, ops: Ops) -> Images:
    """Invert the columns of the two flanks.

    The paper speaks of an inverted stripe in the middle; its code inverts the flanks.
    """
    width = images.shape[2]
    columns = round(width * p.flank)
    middle = np.s_[:, :, columns : width - columns]
    out = 255 - images
    out[middle] = images[middle]  # type: ignore[assignment]  # both are of one kind
    return out
