"""From a template and values to the text of a page."""

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
    """The text of a page whose template extends `pages/base.html`; equal input gives equal bytes.

    Args:
        template: `report/page.html` for the file `page.html` in the templates of the report.
        styles: names of assets that follow the style all pages share.
        scripts: names of assets, in their order.
        data: what the scripts read.
        framed: scripts of pages that are framed in this one, which has none: its policy covers them.
        served: whether a server shows the page, which sends its policy in a header, `served_policy`.
        values: what the template shows; all of it is escaped.
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
    """A table as a piece of HTML for a notebook, which has a style of its own."""
    return render_fragment("_core/pages/table.html", caption=caption, header=header, rows=rows, notes=notes)


def render_fragment(template: str, **values: Any) -> str:
    """A piece of HTML that is no page."""
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
    """A template's text; None if there is none of that name."""
    part, _, file = name.rpartition("/")
    found = files("beaufort") / part / "templates" / file
    return found.read_text(encoding="utf-8") if found.is_file() else None


def _tight(text: str) -> str:
    """A sentence that does not break between a number and what it counts."""
    return text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")


def _percent(share: float, digits: int = 1) -> str:
    """A share in percent, without the sign."""
    return f"{100 * share:.{digits}f}"
