"""Shifts that exist as published images only: the 3D common corruptions of ImageNet-3DCC.

They were rendered with predicted depth and video encoders. A run reads the published files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.corruptions.rng import Id
from beaufort.suites.shifts import register_shift

CORRUPTIONS_3D = (
    *("near_focus", "far_focus", "bit_error", "color_quant", "flash", "fog_3d", "h265_abr", "h265_crf"),
    *("iso_noise", "low_light", "xy_motion_blur", "z_motion_blur"),
)
"""Directories of ImageNet-3DCC."""
_PREFIX = "3dcc-"


@dataclass(frozen=True)
class PublishedShift:
    """One corruption of a published set at one severity."""

    suite: str
    """The suite, which is also the kind of dataset."""
    corruption: str
    """Its directory."""
    severity: int

    def facts(self, *, seed: int) -> dict[str, Any]:  # noqa: ARG002  of the protocol
        """Return what identifies the published images."""
        return {"version": 1, "published": self.suite}

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:  # noqa: ARG002  of the protocol
        """Raise an error: the images cannot be made."""
        raise OptionError(
            f"{self.corruption} of {self.suite} cannot be computed; pass the published images as "
            f"{self.suite}:FOLDER"
        )


def _open(level: str, corruption: str) -> PublishedShift:
    if level not in ("1", "2", "3", "4", "5"):
        raise OptionError(f"the severity of {_PREFIX}{corruption} must be from 1 to 5, got {level!r:.20}")
    return PublishedShift("imagenet-3dcc", corruption, int(level))


for _name in CORRUPTIONS_3D:
    register_shift(f"{_PREFIX}{_name}")(partial(_open, corruption=_name))
