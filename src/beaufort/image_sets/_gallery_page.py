"""The gallery as one HTML file that needs nothing else."""

from __future__ import annotations

from base64 import b64encode
from html import escape

from PIL import Image

from beaufort.image_sets._exhibit import Exhibit, ExhibitRow
from beaufort.images import FORMATS, encode

__all__ = ["page"]

_QUALITY = 88

_STYLE = """
:root { color-scheme: light dark; --paper: #fafaf8; --card: #fff; --ink: #1c2026; --faint: #666d76;
  --line: #e2e2dd; --accent: #b4470f; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171b; --card: #1c2026; --ink: #e8eaed; --faint: #9aa3ad; --line: #30363d;
    --accent: #ff9d66; }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body { margin: 0 auto; padding: 2rem clamp(1rem, 4vw, 3rem) 4rem; max-width: 1500px; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -.02em; }
h2 { margin: 3rem 0 1rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line);
  text-transform: capitalize; }
h3 { display: inline; margin: 0; font-size: 1.15rem; }
h3 a { color: inherit; text-decoration: none; }
h3 a:hover, h3 a:focus-visible { color: var(--accent); }
p { margin: .25rem 0 0; max-width: 75ch; }
.faint, figcaption { color: var(--faint); font-size: .875rem; }
nav { display: flex; flex-wrap: wrap; gap: .4rem; margin-top: 1.25rem; }
nav a { padding: .15rem .7rem; border: 1px solid var(--line); border-radius: 99px; background: var(--card);
  color: var(--ink); font-size: .875rem; text-decoration: none; }
nav a:hover, nav a:focus-visible { border-color: var(--accent); color: var(--accent); }
article { margin: 0 0 1.5rem; padding: 1rem; border: 1px solid var(--line); border-radius: .75rem;
  background: var(--card); }
article:target { border-color: var(--accent); }
.kind { margin-left: .5rem; padding: .05rem .5rem; border-radius: 99px; border: 1px solid var(--line);
  color: var(--faint); font-size: .75rem; white-space: nowrap; }
.strip { display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: .6rem; margin-top: .8rem; }
figure { margin: 0; }
img { display: block; width: 100%; height: auto; border-radius: .35rem; }
.pixelated img { image-rendering: pixelated; }
figcaption { margin-top: .25rem; text-align: center; }
.published img { outline: 3px solid var(--accent); outline-offset: 1px; }
.published figcaption { color: var(--accent); }
details { margin-top: .6rem; font-size: .875rem; }
summary { color: var(--faint); cursor: pointer; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: .4rem 0 0; }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 900px) { .strip { grid-template-columns: repeat(3, minmax(0, 1fr)); } }
@media print { article { break-inside: avoid; } nav { display: none; } }
"""


def page(exhibit: Exhibit) -> str:
    """The page's text."""
    links = "\n".join(f'<a href="#{escape(row.name)}">{_words(row)}</a>' for row in exhibit.rows)
    groups = "\n".join(_group(group, rows, exhibit) for group, rows in exhibit.groups.items())
    kind = ' class="pixelated"' if exhibit.pixelated else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Beaufort: the corruptions</title>
<style>{_STYLE}</style>
</head>
<body{kind}>
<header>
<h1>Beaufort: the corruptions</h1>
<p class="faint">{_told(exhibit)}</p>
<nav aria-label="Corruptions">
{links}
</nav>
</header>
<main>
{groups}
</main>
</body>
</html>
"""


def _told(exhibit: Exhibit) -> str:
    picture = "a painted picture" if exhibit.origin == "painted" else exhibit.origin
    many = f"{len(exhibit.rows)} corruption{'s' * (len(exhibit.rows) != 1)}"
    marked = (
        " The severity that was published is marked." if any(row.published for row in exhibit.rows) else ""
    )
    told = f"{many} of {picture}; constants of the scale {exhibit.scale}, seed {exhibit.seed}.{marked}"
    return escape(told)


def _group(group: str, rows: list[ExhibitRow], exhibit: Exhibit) -> str:
    articles = "\n".join(_article(row, exhibit) for row in rows)
    return f'<section>\n<h2 id="group-{escape(group)}">{escape(group)}</h2>\n{articles}\n</section>'


def _article(row: ExhibitRow, exhibit: Exhibit) -> str:
    name = escape(row.name)
    figures = [_figure(exhibit.clean, "clean", f"the clean picture, before {_words(row)}")]
    for severity, picture in row.pictures.items():
        told = f"severity {severity}" if len(row.pictures) > 1 else "one strength"
        marked = severity == row.published and len(row.pictures) > 1
        figures.append(_figure(picture, told, f"{_words(row)}, {told}", marked=marked))
    details = f"\n<p>{escape(row.details)}</p>" if row.details else ""
    kind = "random" if row.random else "not random"
    return f"""<article id="{name}">
<h3><a href="#{name}">{_words(row)}</a></h3><span class="kind">{kind}</span>
<p>{escape(row.summary)}</p>{details}
<div class="strip">
{chr(10).join(figures)}
</div>{_constants(row)}
</article>"""


def _figure(picture: Image.Image, caption: str, alt: str, *, marked: bool = False) -> str:
    kind = ' class="published"' if marked else ""
    width, height = picture.size
    return (
        f'<figure{kind}><img src="{_data(picture)}" width="{width}" height="{height}" alt="{alt}" '
        f'loading="lazy"><figcaption>{caption}{", published" if marked else ""}</figcaption></figure>'
    )


def _constants(row: ExhibitRow) -> str:
    listed = "".join(
        f"<dt>{severity}</dt><dd>{escape(constants)}</dd>"
        for severity, constants in row.constants.items()
        if constants
    )
    return f"\n<details><summary>Constants by severity</summary><dl>{listed}</dl></details>" if listed else ""


def _words(row: ExhibitRow) -> str:
    return escape(row.name.replace("_", " "))


def _data(picture: Image.Image) -> str:
    """A picture as an address that holds it: a small one without loss, a photo as JPEG."""
    kind = "png" if picture.mode == "L" else "jpeg"
    content = b64encode(encode(picture, FORMATS[kind], _QUALITY)).decode()
    return f"data:image/{kind};base64,{content}"
