"""Stylization as a shift, such as `stylize@3`: texture and colors are replaced, in five severities.

The network is loaded when the first images are stylized.
"""

from __future__ import annotations

from beaufort.training.stylization.patterns import STYLES, style_image
from beaufort.training.stylization.shift import Stylize, StylizerError

__all__ = ["STYLES", "Stylize", "StylizerError", "style_image"]
