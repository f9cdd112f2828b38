"""Scores as a notebook shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaufort._core.pages import render_table
from beaufort.metrics import metrics

if TYPE_CHECKING:
    from beaufort.results.scores import ModelScores, Scores

_ARROWS = {"lower": " ↓", "higher": " ↑"}


def scores_html(scores: Scores) -> str:
    """A row a model: its place, the headline numbers, maybe the clean accuracy, in percent with intervals."""
    named = list(scores.models[0].metrics)
    places = {one.name: one.place for one in scores.ranking}
    heads = [f"{scores.metric_title(name)}{_ARROWS.get(metrics[name].better or '', '')}" for name in named]
    if scores.with_clean:
        heads.append("Clean accuracy ↑")
    rows = [
        [places[one.model], one.model, *_shown(one), *([f"{one.clean:.1%}"] if scores.with_clean else [])]
        for one in scores.models
    ]
    return render_table(
        f"{scores.suite.title}, {scores.images:,} images of {scores.results.dataset}; in brackets "
        f"{100 * scores.level:g} % intervals",
        ["Place", "Model", *heads],
        rows,
        scores.notes,
    )


def _shown(one: ModelScores) -> list[str]:
    return [metrics[name].shown(value) for name, value in one.metrics.items()]
