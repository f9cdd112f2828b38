"""What the page's templates show: names, numbers and places, ready to be put into HTML."""

from __future__ import annotations

from typing import Any

from beaufort.metrics import metrics
from beaufort.report._text import base_name, counted, metric_title, shown, words
from beaufort.report.headline import Headline
from beaufort.report.optional_tables import group_table, seeds_table
from beaufort.report.tables import Table, error_of
from beaufort.results import ModelScores, Scores
from beaufort.stats import Estimate

__all__ = ["base_title", "gauge", "heatmap", "navigation", "part_tables", "ranking"]

_ALIGNED = 12
"""Tie letters up to which each has a column of its own."""


def navigation(scores: Scores) -> dict[str, str]:
    """The sections' titles by id."""
    titles = {"ranking": "Ranking" if len(scores.models) > 1 else "Numbers", "heatmap": "Heat map"}
    if scores.suite.severities != "published":
        titles["curves"] = "Curves"
    titles |= {"bars": "CE" if scores.baseline else "Errors", "calibration": "Calibration"}
    if any(model.groups for model in scores.models) or scores.seeds:
        titles["parts"] = _parts_title(scores)
    return titles | {
        "examples": "Examples",
        "mistakes": "Mistakes",
        "classes": "Classes",
        "made": "How it was made",
    }


def _parts_title(scores: Scores) -> str:
    grouped = any(model.groups is not None for model in scores.models)
    if grouped and scores.seeds:
        return "Groups and trainings"
    return "Groups" if grouped else "Trainings"


def part_tables(scores: Scores) -> list[Table]:
    """Tables of groups and trainings; none if nobody asked for them."""
    return [table for table in (group_table(scores), seeds_table(scores)) if table is not None]


def gauge(scores: Scores, first: Headline) -> dict[str, Any]:
    """The headline number on a scale; places in percent of its length."""
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


def ranking(scores: Scores) -> dict[str, Any]:
    """The table of models."""
    low = min(model.headline.low for model in scores.models)
    high = max(model.headline.high for model in scores.models)
    letters = sorted({letter for one in scores.ranking for letter in one.groups}, key=lambda x: (len(x), x))
    lacking = sorted(scores.results.incomplete.items())
    return {
        "words": _ranking_words(scores),
        "heads": [
            {"title": metric_title(name, scores.baseline), "better": metrics[name].better}
            for name in scores.models[0].metrics
        ],
        "low": low,
        "high": high,
        "aligned": len(letters) <= _ALIGNED,
        "rows": [
            _ranking_row(scores, number, model, letters, (low, high))
            for number, model in enumerate(scores.models)
        ],
        "lacking": ", ".join(f"{name} lacks {counted(n, 'condition')}" for name, n in lacking),
    }


def _ranking_row(
    scores: Scores, number: int, model: ModelScores, letters: list[str], ends: tuple[float, float]
) -> dict[str, Any]:
    ranked = next(one for one in scores.ranking if one.name == model.model)
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
    """An interval between two ends, in percent of their distance."""
    span = (high - low) or 1.0
    return {
        "left": 100 * (estimate.low - low) / span,
        "width": 100 * (estimate.high - estimate.low) / span,
        "dot": 100 * (estimate.value - low) / span,
    }


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


def heatmap(scores: Scores) -> dict[str, Any]:
    """The errors of all models, which can be read without scripts."""
    several, published = len(scores.models) > 1, scores.suite.severities == "published"
    heads: list[dict[str, Any]] = [{"title": "clean", "column": None}] if scores.models[0].clean else []
    heads += [{"title": words(name), "column": i} for i, name in enumerate(scores.suite.corruptions)]
    title = "All models, the mean over severities" if several else "The mean over severities"
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


def base_title(scores: Scores) -> str:
    """The baseline's short name; empty without one."""
    return "" if scores.baseline is None else base_name(scores.baseline)
