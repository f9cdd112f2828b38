"""Stylized images as conditions, `imagenet-val/stylize@3`: texture and colors replaced, in five severities.

The name is known without torch; a network is read when the first images are stylized.
"""

from __future__ import annotations

from beaufort.training.stylization.pictures import STYLES, style_picture
from beaufort.training.stylization.shift import Stylize, StylizerError

__all__ = ["STYLES", "Stylize", "StylizerError", "style_picture"]
