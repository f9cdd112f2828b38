"""Rendering of templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from beaufort._core.pages.assets import as_script, asset, bundle, content_policy

if TYPE_CHECKING:
    from jinja2 import Environment


def render(
    template: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
    framed: Sequence[str] = (),
    served: bool = False,
    **values: Any,
) -> str:
    """Return the text of a page whose template extends `pages/base.html`; equal input gives equal bytes.

    Args:
        template: such as `report/page.html` for `report/templates/page.html`.
        styles: assets that follow the shared style.
        scripts: assets, in their order.
        data: data for the scripts.
        framed: scripts of framed pages, which the policy of this page must allow; it has none of its own.
        served: whether a server sends the page, with `served_policy` in a header.
        values: values of the template; all are escaped.
    """
    script = bundle(*map(asset, scripts)) if scripts else ""
    return (
        _environment()
        .get_template(template)
        .render(
            policy="" if served else content_policy(bundle(*map(asset, framed)) if framed else script),
            style="".join(map(asset, ("_core/pages/base.css", *styles))),
            script=script,
            data=None if data is None else as_script(data),
            **values,
        )
    )


def render_table(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """Return a table as an HTML fragment for a notebook."""
    return render_fragment("_core/pages/table.html", caption=caption, header=header, rows=rows, notes=notes)


def render_fragment(template: str, **values: Any) -> str:
    """Return an HTML fragment."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["tight"] = _tight
    environment.filters["pct"] = _percent
    return environment


def _source(name: str) -> str | None:
    """Return the text of a template; None if it does not exist."""
    part, _, file = name.rpartition("/")
    found = files("beaufort") / part / "templates" / file
    return found.read_text(encoding="utf-8") if found.is_file() else None


def _tight(text: str) -> str:
    """Return a sentence with non-breaking spaces between a number and its unit."""
    return text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")


def _percent(fraction: float, digits: int = 1) -> str:
    """Return a fraction in percent, without the sign."""
    return f"{100 * fraction:.{digits}f}"
