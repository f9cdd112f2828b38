"""Stripe: both flanks of the digit inverted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import FractionOfSide, Images, Ops, corruption


class Params(NamedTuple):
    """Position of the stripe."""

    flank: FractionOfSide
    """Fraction of the columns on each side that is inverted."""


@corruption("digits", levels={"mnist": [Params(0.25)]})
def stripe(images: Images, p: Params, ops: Ops) -> Images:
    """Invert the columns at both sides.

    The paper describes an inverted stripe in the middle, but its code inverts the sides.
    """
    width = images.shape[2]
    columns = round(width * p.flank)
    middle = np.s_[:, :, columns : width - columns]
    out = 255 - images
    out[middle] = images[middle]  # type: ignore[assignment]
    return out
