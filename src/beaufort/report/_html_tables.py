"""The tables that a reader without scripts sees too, as HTML."""

from __future__ import annotations

from html import escape

from beaufort.metrics import metrics
from beaufort.report._text import counted, metric_title
from beaufort.results import ModelScores, Scores
from beaufort.stats import Estimate

__all__ = ["DEEP", "heatmap", "ranking"]

DEEP = 0.62
"""Shares from here on have a color that asks for the other ink; `tables.js` has the same."""


def ranking(scores: Scores) -> str:
    """The table of models."""
    several = len(scores.models) > 1
    named = list(scores.models[0].metrics)
    low = min(model.headline.low for model in scores.models)
    high = max(model.headline.high for model in scores.models)
    heads = [_sorter(metric_title(name, scores.reference), metrics[name].better) for name in named]
    letters = sorted({letter for one in scores.ranking for letter in one.groups}, key=lambda x: (len(x), x))
    ranked = {one.name: one for one in scores.ranking}
    rows = []
    for i, model in enumerate(scores.models):
        one = ranked[model.model]
        cells = [_number(model.metrics[name]) for name in named]
        plot = _forest(model.headline, low, high) if several else ""
        where = (
            f'<td data-v="{one.best + one.worst / 1000}">{one.place}</td>'
            f'<td class="letters" data-v="{escape(one.groups[0])}">{_letters(one.groups, letters)}</td>'
            if several
            else ""
        )
        rows.append(
            f'<tr data-m="{i}">{where}<th scope="row">{_pick(i, model, several)}</th>{cells[0]}{plot}'
            f"{''.join(cells[1:])}{_number(model.clean)}</tr>"
        )
    places = (_sorter("Place", "lower", arrow=False) + _sorter("Ties", None)) if several else ""
    axis = (
        f'<th class="forest" scope="col"><span>{100 * low:.0f}</span><span>{100 * high:.0f} %</span></th>'
        if several
        else ""
    )
    return f"""<h2>{"Ranking" if several else "The numbers"}</h2>
<p class="lead">{_ranking_words(scores)}</p>
{_model_filter() if several else ""}
<div class="scroll" tabindex="0" role="region" aria-label="Ranking, scrolls sideways">
<table class="sortable" id="ranking-table"><thead><tr>{places}{_sorter("Model", None)}{heads[0]}{axis}
{"".join(heads[1:])}{_sorter("Clean accuracy", "higher")}</tr></thead>
<tbody>{"".join(rows)}</tbody></table></div>
{_left_out(scores)}"""


def _model_filter() -> str:
    return """<p class="tools"><label class="search">Models <input type="search" id="model-filter"
autocomplete="off" spellcheck="false" placeholder="all"></label>
<span id="model-count" aria-live="polite" class="faint"></span></p>"""


def _ranking_words(scores: Scores) -> str:
    n = counted(scores.images, "image")
    if len(scores.models) == 1:
        return f"In percent, with intervals; n = {n}. Arrows show which way is good."
    return (
        f"In percent, with intervals; n = {n}, the same for all. A place such as 2–4 is what the data allow. "
        "Two models share a letter exactly if they are not told apart: if the interval of their "
        f"difference contains zero. The intervals are adjusted for all "
        f"{counted(scores.pairs.size, 'difference')} of these models and metrics (Bonferroni)."
    )


def _left_out(scores: Scores) -> str:
    lacking = scores.results.incomplete
    if not lacking:
        return ""
    told = ", ".join(f"{escape(name)} lacks {counted(n, 'condition')}" for name, n in sorted(lacking.items()))
    return f'<p class="faint">Not ranked, as their answers are not complete: {told}.</p>'


def heatmap(scores: Scores) -> str:
    """Where the model breaks; with the table of all models, which needs no script."""
    several = len(scores.models) > 1
    with_clean = scores.models[0].clean is not None
    heads = [
        *(["clean"] if with_clean else []),
        *(name.replace("_", " ") for name in scores.suite.families),
    ]
    rows = "".join(
        f'<tr data-m="{i}"><th scope="row">{_pick(i, model, several)}</th>'
        + "".join(_heat(error) for error in _errors(model))
        + "</tr>"
        for i, model in enumerate(scores.models)
    )
    skip = int(with_clean)
    columns = "".join(
        _sorter(head, "lower", column=None if i < skip else i - skip, arrow=False)
        for i, head in enumerate(heads)
    )
    widest = max(error.half_width for model in scores.models for error in _errors(model))
    title = "All models, the mean over severities" if several else "The mean over severities"
    published = scores.suite.severities == "published"
    if published:
        title = "All models" if several else "All corruptions"
    return f"""<h2>Where it breaks</h2>
<p class="lead">Share of wrong answers under each corruption. Point at a cell, or move with the arrow keys,
for its interval. n = {counted(scores.images, "image")} a cell.</p>
<div id="heatmap-figure" class="needs-script"></div>
<div{"" if several or published else ' class="without-script"'}>
<h3>{title}</h3>
<p class="faint">Errors in percent; no interval is wider than ±{100 * widest:.1f} points.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Errors of all models, scrolls sideways">
<table class="sortable heat-table" id="all-table">
<thead><tr>{_sorter("Model", None)}{columns}</tr></thead><tbody>{rows}</tbody></table></div></div>"""


def _errors(model: ModelScores) -> list[Estimate]:
    clean = model.clean
    first = (
        []
        if clean is None
        else [Estimate(1 - clean.value, 1 - clean.high, 1 - clean.low, clean.n, clean.level)]
    )
    return [*first, *model.corruptions.values()]


def _heat(error: Estimate) -> str:
    deep = " deep" if error.value >= DEEP else ""
    value = f"{error.value:.4f}"
    return f'<td class="heat{deep}" style="--v:{value}" data-v="{value}">{100 * error.value:.0f}</td>'


def _sorter(title: str, better: str | None, *, column: int | None = None, arrow: bool = True) -> str:
    """A head of a column that sorts when pressed; the best comes first."""
    sign = {"lower": " ↓", "higher": " ↑"}.get(better or "", "") if arrow else ""
    filtered = "" if column is None else f' data-c="{column}"'
    kind = ' class="num"' if better and arrow else ""
    first = "descending" if better == "higher" else "ascending"
    return (
        f'<th scope="col" aria-sort="none"{kind}{filtered}><button type="button" data-first="{first}">'
        f"{escape(title)}{sign}</button></th>"
    )


def _number(estimate: Estimate | None) -> str:
    if estimate is None:
        return '<td data-v="-1">–</td>'
    bounds = f"<small>[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]</small>"
    shown = f"{100 * estimate.value:.1f} {'' if estimate.exact else bounds}"
    return f'<td class="num" data-v="{estimate.value:.6f}">{shown}</td>'


def _forest(estimate: Estimate, low: float, high: float) -> str:
    span = (high - low) or 1.0
    left, width = 100 * (estimate.low - low) / span, 100 * (estimate.high - estimate.low) / span
    dot = 100 * (estimate.value - low) / span
    return (
        f'<td class="forest" aria-hidden="true"><i><b style="left:{left:.1f}%;width:{width:.1f}%"></b>'
        f'<u style="left:{dot:.1f}%"></u></i></td>'
    )


def _letters(mine: tuple[str, ...], every: list[str]) -> str:
    if len(every) > 12:
        return escape(" ".join(mine))
    return "".join(f"<i>{escape(letter) if letter in mine else ''}</i>" for letter in every)


def _pick(place_: int, model: ModelScores, several: bool) -> str:
    name = escape(model.model)
    return f'<button type="button" class="pick" data-pick="{place_}">{name}</button>' if several else name
