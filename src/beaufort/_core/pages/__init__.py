"""HTML pages: one base template and style for the report, the testbed, the gallery and the review.

A page is one self-contained file. Jinja templates escape all values; only this package marks text as safe.
Jinja is imported with the first page.
"""

from __future__ import annotations

from beaufort._core.pages.assets import as_script, asset, bundle, content_policy, served_policy
from beaufort._core.pages.rendering import render, render_fragment, render_table

__all__ = [
    "as_script",
    "asset",
    "bundle",
    "content_policy",
    "render",
    "render_fragment",
    "render_table",
    "served_policy",
]
