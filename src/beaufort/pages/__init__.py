"""HTML pages: one base template, one style, one policy, for the report, the testbed and the gallery.

A page is one file that needs nothing else. Templates are Jinja's and escape what they are given; only this
package marks text as safe. Jinja is imported with the first page, so that nothing else needs it.
"""

from __future__ import annotations

from beaufort.pages.assets import as_script, asset, bundle, content_policy
from beaufort.pages.rendering import render, render_fragment, render_table

__all__ = ["as_script", "asset", "bundle", "content_policy", "render", "render_fragment", "render_table"]
