"""HTML pages: one base template and one style for the report, the testbed, the gallery and the review.

A page is one file that needs nothing else. Templates are Jinja's and escape what they are given; only this
package marks text as safe. Jinja is imported with the first page, so that nothing else needs it.
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
