"""A notice, once, that images are far larger than those the published constants were chosen for."""

from __future__ import annotations

import warnings
from itertools import count

from beaufort._core.errors import SizeWarning
from beaufort.corruptions._sizes import SCALES

FAR = 3 * SCALES["inception"]
"""From this short side on, constants for 299 pixels show so little that a notice is due."""

_given = count()


def notice_size(side: int) -> None:
    """Warn of images with a short side of so many pixels; only the first call in a process does."""
    if next(_given) == 0:  # one step of a counter, so that of several threads one is first
        warnings.warn(
            f"the images have a short side of {side} pixels, far from the published sizes of 32 to 299: "
            "scale 'auto' uses the constants for 299 pixels, and a blur of a few pixels hardly shows here; "
            "scale='relative' lets them grow with the image",
            SizeWarning,
            stacklevel=3,
        )
