"""icons-open: a dataset like Icons-50, made from artwork under open licenses.

It has the same 50 classes and the same layout, so `icons-50:FOLDER` opens it.
"""

from __future__ import annotations

from beaufort.data.writers.icons_open.build import make_icons_open

__all__ = ["make_icons_open"]
