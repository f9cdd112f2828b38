"""icons-open: a dataset like Icons-50 that anyone can make, from artwork under open licenses.

The same 50 classes, their subtypes, styles and renditions, in the same layout; so `icons-50:FOLDER` opens it.
"""

from __future__ import annotations

from beaufort.data.writers.icons_open.build import make_icons_open

__all__ = ["make_icons_open"]
