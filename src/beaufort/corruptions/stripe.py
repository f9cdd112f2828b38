"""Stripe: the middle of the digit as it was, the flanks inverted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.arrays import Bytes
from beaufort.corruptions._corruption import corruption
from beaufort.ops import Ops


class Params(NamedTuple):
    """Where the stripe is."""

    flank: float
    """Share of the columns on each side that is inverted."""


@corruption("digits", levels={"mnist": [Params(0.25)]})
def stripe(images: Bytes, p: Params, ops: Ops) -> Bytes:
    """Invert the columns of the two flanks.

    The paper speaks of an inverted stripe in the middle; its code inverts the flanks.
    """
    out = images.copy()
    columns = round(images.shape[2] * p.flank)
    for flank in (np.s_[:, :, :columns], np.s_[:, :, -columns:]):
        out[flank] = 255 - images[flank]
    return out
