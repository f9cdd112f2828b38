"""Inverse: black on white instead of white on black."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Images, Ops, corruption


class Params(NamedTuple):
    """No constants."""


@corruption("digits", levels={"mnist": [Params()]})
def inverse(images: Images, p: Params, ops: Ops) -> Images:
    """Replace every value v by 255 - v."""
    return ops.look_up(images, np.arange(255, -1, -1, dtype=np.uint8))
