"""The page's head and foot, as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from beaufort.metrics import metrics
from beaufort.report._html_parts import parts_title
from beaufort.report._text import base_name, shown, units
from beaufort.report.headline import Headline, Tile, about
from beaufort.report.provenance import Fact
from beaufort.report.tables import baseline_words
from beaufort.results import Scores

__all__ = ["controls", "foot", "head", "navigation"]


def head(scores: Scores, first: Headline, title: str) -> str:
    """Title, sentence, number, tiles."""
    value = first.estimate
    top = _gauge_top(scores)
    ratio = metrics[scores.headline].unit == "ratio"
    at = f"{100 / top:.2f}%"
    label = f'<b style="transform:translateX(-{at})">{escape(_base(scores))}</b>'
    mark = f'<i class="mark" style="left:{at}">{label}</i>' if ratio else ""
    width = value.high - value.low
    number, _, bounds = shown(value).partition(" [")
    return f"""<p class="eyebrow">Beaufort · {escape(scores.suite.title)}</p>
<h1>{escape(title)}</h1>
<div class="front">
<p class="sentence" id="sentence" aria-live="polite">{escape(first.sentence)}</p>
<div class="number">
<p class="figure"><span class="metric">{escape(first.metric)}</span>
<strong id="value">{escape(number)}</strong> <span id="bounds" class="bounds">[{escape(bounds)}</span></p>
<div class="gauge" id="gauge" data-top="{top:g}" aria-hidden="true">{mark}
<i class="band" style="left:{100 * value.low / top:.2f}%;width:{100 * width / top:.2f}%"></i>
<i class="dot" style="left:{100 * value.value / top:.2f}%"></i></div>
<p class="meaning"><span id="meaning">{escape(first.meaning)}</span>
<span id="standing">{escape(first.standing)}</span></p>
</div></div>
<dl class="tiles" id="tiles">{"".join(map(_tile, first.tiles))}</dl>
<p class="about">{escape(about(scores))} {escape(baseline_words(scores).replace("`", ""))}
In brackets {100 * scores.level:g} % intervals: they cover the choice of {units(scores)}, and nothing
else.</p>
{"".join(f'<p class="about note">{escape(note)}</p>' for note in scores.notes)}"""


def _tile(tile: Tile) -> str:
    value = f"{escape(tile.value)} <small>{escape(tile.note)}</small>"
    return f'<div class="tile"><dt>{escape(tile.title)}</dt><dd>{value}</dd></div>'


def _base(scores: Scores) -> str:
    return base_name(scores.baseline) if scores.baseline else ""


def _gauge_top(scores: Scores) -> float:
    """The right end of the scale that the headline number is drawn on."""
    if metrics[scores.headline].unit != "ratio":
        return 1.0
    highest = max(model.headline.high for model in scores.models)
    return max(1.25, round(highest * 1.1, 2))


def controls(scores: Scores) -> str:
    """What is chosen for the whole page."""
    options = "".join(
        f'<option value="{i}">{escape(model.model)}</option>' for i, model in enumerate(scores.models)
    )
    several = len(scores.models) > 1
    compare = (
        '<label>Compare with <select id="compare"><option value="-1">nothing</option>'
        f"{options}</select></label>"
        if several
        else ""
    )
    choose = f'<label>Model <select id="model">{options}</select></label>' if several else ""
    return f"""{choose}{compare}
<label class="search">Corruptions <input type="search" id="filter" placeholder="all; try blur or fog"
autocomplete="off" spellcheck="false"></label>
<button type="button" id="theme" aria-label="Change between light and dark">Dark</button>"""


def navigation(scores: Scores) -> str:
    """Links to the sections."""
    titles = {"ranking": "Ranking" if len(scores.models) > 1 else "Numbers", "heatmap": "Heat map"}
    if scores.suite.severities != "published":
        titles["curves"] = "Curves"
    titles |= {"bars": "CE" if scores.baseline else "Errors", "calibration": "Calibration"}
    if any(model.groups for model in scores.models) or scores.seeds:
        titles["parts"] = parts_title(scores)
    titles |= {
        "examples": "Examples",
        "mistakes": "Mistakes",
        "classes": "Classes",
        "made": "How it was made",
    }
    return "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title in titles.items())


def foot(facts: Iterable[Fact]) -> str:
    """How the numbers were made."""
    listed = "".join(
        f"<dt>{escape(fact.name)}</dt><dd>{''.join(f'<p>{escape(value)}</p>' for value in fact.values)}</dd>"
        for fact in facts
    )
    return f'<dl class="made">{listed}</dl>'
