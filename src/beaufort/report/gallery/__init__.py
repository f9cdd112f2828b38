"""The gallery: every corruption at every severity on one page."""

from __future__ import annotations

from beaufort.report.gallery.gallery import make_gallery

__all__ = ["make_gallery"]
