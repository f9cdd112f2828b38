"""The report page: one self-contained HTML file.

The templates write what must be readable without scripts: the headline, the ranking, the table of errors and
the provenance. `data/*.js` draws the figures from one block of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from beaufort._core.pages import render
from beaufort._core.text import counted
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate, Ranked
from beaufort.report.abstention import selective_table, set_table
from beaufort.report.examples import MISTAKES, Examples
from beaufort.report.figure_numbers import MOST_COMPARED, baseline_errors, find_worst_classes, has_curves
from beaufort.report.headline import Headline, about, headline
from beaufort.report.page_data import page_data
from beaufort.report.provenance import provenance_facts
from beaufort.report.summary_tables import Table, baseline_words, error_of, optional_tables
from beaufort.report.wording import default_title, families, shown, units, words
from beaufort.results import ModelScores, Scores

STYLES = ("report/report.css",)
SCRIPTS = (
    "_core/pages/base.js",
    "report/tables.js",
    "report/charts.js",
    "report/compare.js",
    "report/calibration.js",
    "report/examples.js",
    "_core/pages/theme.js",
    "report/page.js",
)


_DEEP = 0.62
"""Fraction from which cells have light text; `tables.js` has the same value."""

_ALIGNED = 12
"""Largest number of tie groups that have a column each."""


def to_html(
    scores: Scores, *, examples: Examples | None = None, title: str | None = None, home: str | None = None
) -> str:
    """Return the page; equal input gives equal bytes, because all times come from the store.

    Args:
        scores: from `score`.
        examples: from `examples_of_data` or `examples_of_images`; the page has no images if None.
        title: title of the page; derived from the models and the suite if None.
        home: address of the page that this one belongs to.
    """
    worst, tables = find_worst_classes(scores), _tables(scores)
    first = headline(scores, scores.models[0])
    two = {"start": {"model": 0, "compare": 1}} if len(scores.models) == 2 else {}
    return render(
        "report/page.html",
        styles=STYLES,
        scripts=SCRIPTS,
        data=page_data(scores, worst, examples) | two,
        title=default_title(scores) if title is None else title,
        eyebrow=scores.suite.title,
        home=home,
        first=first,
        gauge=_gauge(scores, first),
        about=f"{about(scores)} {baseline_words(scores).replace('`', '')}",
        notes=scores.notes,
        navigation=_navigation(scores, tables, images=examples is not None or home is None),
        models=[model.model for model in scores.models],
        ranking=ranking_table(scores),
        parts=list(tables.values()),
        examples=examples,
        most_mistakes=MISTAKES,
        worst_note=worst.note,
        facts=provenance_facts(scores),
        **figure_sections(scores),
    )


def _navigation(scores: Scores, tables: Mapping[str, Table], *, images: bool) -> dict[str, str]:
    """Return the titles of the sections by id; those of images, or of how to add them, if asked for."""
    several = len(scores.models) > 1
    titles = {"ranking": "Ranking", "comparison": "Comparison"} if several else {"ranking": "Metrics"}
    titles["heatmap"] = "Heat map"
    if has_curves(scores):
        titles["curves"] = "Curves"
    titles["bars"] = "CE" if _against(scores) else "Errors"
    if scores.models[0].calibration:
        titles["calibration"] = "Calibration"
    if parts := " and ".join(tables):
        titles["parts"] = parts[0].upper() + parts[1:]
    if images:
        titles |= {"examples": "Examples", "mistakes": "Mistakes"}
    return titles | {"classes": "Classes", "made": "Provenance"}


def _tables(scores: Scores) -> dict[str, Table]:
    """Return the tables of the section after the figures, by their subject."""
    tables = optional_tables(scores)
    more = {"abstention": selective_table(scores), "prediction sets": set_table(scores)}
    return tables | {subject: table for subject, table in more.items() if table is not None}


def _against(scores: Scores) -> str:
    """Return the baseline that errors under single corruptions are divided by, or an empty string."""
    return scores.baseline.short_name if scores.baseline is not None and scores.models[0].ce else ""


def _gauge(scores: Scores, first: Headline) -> dict[str, Any]:
    """Return the headline number on a scale; positions in percent of its length."""
    value, ratio = first.estimate, metrics[scores.headline].unit == "ratio"
    highest = max(model.headline.high for model in scores.models)
    top = max(1.25, round(highest * 1.1, 2)) if ratio else 1.0
    number, _, bounds = shown(value).partition(" [")
    return {
        "top": top,
        "mark": 100 / top if ratio else None,
        "left": 100 * value.low / top,
        "width": 100 * (value.high - value.low) / top,
        "dot": 100 * value.value / top,
        "number": number,
        "bounds": f"[{bounds}",
    }


def ranking_table(scores: Scores) -> dict[str, Any]:
    """Return the table of models."""
    low = min(model.headline.low for model in scores.models)
    high = max(model.headline.high for model in scores.models)
    letters = sorted({letter for one in scores.ranking for letter in one.groups}, key=lambda x: (len(x), x))
    lacking = sorted(scores.results.incomplete.items())
    return {
        "words": _ranking_words(scores),
        "exact": _ranking_exact(scores),
        "heads": [
            {"title": scores.metric_title(name), "better": metrics[name].better}
            for name in scores.models[0].metrics
        ],
        "low": low,
        "high": high,
        "aligned": len(letters) <= _ALIGNED,
        "rows": [
            _ranking_row(number, model, ranked, letters, (low, high))
            for number, (model, ranked) in enumerate(zip(scores.models, scores.ranking, strict=True))
        ],
        "lacking": ", ".join(f"{name} lacks {counted(n, 'condition')}" for name, n in lacking),
    }


def _ranking_row(
    number: int, model: ModelScores, ranked: Ranked, letters: list[str], ends: tuple[float, float]
) -> dict[str, Any]:
    mine = ranked.groups
    aligned = [letter if letter in mine else "" for letter in letters]
    return {
        "number": number,
        "name": model.model,
        "place": ranked.place,
        "order": ranked.best + ranked.worst / 1000,
        "letter": mine[0],
        "letters": aligned if len(letters) <= _ALIGNED else mine,
        "metrics": list(model.metrics.values()),
        "bar": _bar(model.headline, *ends),
        "clean": model.clean,
    }


def _bar(estimate: Estimate, low: float, high: float) -> dict[str, float]:
    """Return the position of an interval on a scale, in percent."""
    span = (high - low) or 1.0
    return {
        "left": 100 * (estimate.low - low) / span,
        "width": 100 * (estimate.high - estimate.low) / span,
        "dot": 100 * (estimate.value - low) / span,
    }


def _ranking_words(scores: Scores) -> str:
    """Return how to read the table."""
    ties = (
        " Models that share a letter do not differ significantly; a place such as 2–4 is the range of places "
        "that are compatible with the data."
    )
    return (
        f"In percent, with {100 * scores.level:g} % intervals.{ties * (len(scores.models) > 1)} Arrows show "
        "the direction of better values."
    )


def _ranking_exact(scores: Scores) -> str:
    """Return the statistical details of the table."""
    n = f"n = {counted(scores.images, 'image')}"
    if len(scores.models) == 1:
        return f"{100 * scores.level:g} % intervals; {n}."
    return (
        f"{100 * scores.level:g} % intervals; {n}, the same for all models. Two models share a letter "
        "exactly if the interval of their difference contains zero. These intervals are adjusted within "
        f"{families(scores)} (single-step max-T)."
    )


def _comparison_exact(scores: Scores) -> str:
    """Return what the intervals of the comparison are."""
    models = len(scores.models)
    pairs = models * (models - 1) // 2
    paired = "Differences are paired by image."
    if models > MOST_COMPARED:
        return f"{paired} Pages with more than {MOST_COMPARED} models show no intervals of differences."
    corruptions = counted(pairs * len(scores.suite.corruptions), "difference")
    return (
        f"{paired} A difference is significant if its {100 * scores.level:g} % interval excludes zero. "
        f"Intervals of headline metrics are adjusted within {families(scores)} (single-step max-T); those of "
        f"errors under single corruptions for {corruptions} (Bonferroni)."
    )


def _heatmap(scores: Scores) -> dict[str, Any]:
    """Return the table of all errors, which is readable without scripts."""
    several, published = len(scores.models) > 1, scores.suite.severities == "published"
    heads: list[dict[str, Any]] = [{"title": "clean", "column": None}] if scores.models[0].clean else []
    heads += [{"title": words(name), "column": i} for i, name in enumerate(scores.suite.families)]
    title = "All models, mean over severities" if several else "Mean over severities"
    if published:
        title = "All models" if several else "All corruptions"
    errors = {model.model: _errors(model) for model in scores.models}
    return {
        "title": title,
        "always": several or published,
        "heads": heads,
        "widest": max(error.half_width for row in errors.values() for error in row),
        "rows": [
            {"number": number, "name": name, "errors": [error.value for error in row]}
            for number, (name, row) in enumerate(errors.items())
        ],
    }


def _errors(model: ModelScores) -> list[Estimate]:
    clean = [] if model.clean is None else [error_of(model.clean)]
    return [*clean, *model.corruptions.values()]


def figure_sections(scores: Scores) -> dict[str, Any]:
    """Return the values of the sections with figures, for the page and for single figures."""
    severities = scores.suite.severities
    return {
        "several": len(scores.models) > 1,
        "level": f"{100 * scores.level:g}",
        "units": units(scores),
        "images": counted(scores.images, "image"),
        "severities": () if severities == "published" else severities,
        "base": "" if scores.baseline is None else scores.baseline.short_name,
        "dotted": bool(baseline_errors(scores)),
        "against": _against(scores),
        "clean": scores.suite.clean,
        "deep": _DEEP,
        "heatmap": _heatmap(scores),
        "comparison_exact": _comparison_exact(scores),
    }
