"""Markdown reports, and sections of model cards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml

from beaufort import __version__
from beaufort._core.text import counted
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.report.headline import about, headline
from beaufort.report.summary_tables import (
    Table,
    baseline_words,
    corruption_table,
    headline_table,
    optional_tables,
)
from beaufort.report.wording import ARROWS, value_and_bounds
from beaufort.results import ModelScores, Scores

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$!])")


def to_markdown(scores: Scores) -> str:
    """Return the headline in words, the headline table, and the error under each corruption."""
    first = headline(scores, scores.models[0])
    ranking = headline_table(scores)
    before, tick, after = baseline_words(scores).partition("`")  # the baseline's name stays as code
    lacking = sorted(scores.results.incomplete.items())
    each = ", ".join(f"{name} lacks {counted(n, 'condition')}" for name, n in lacking)
    omitted = (
        [escape_markdown(f"Omitted, because their predictions are incomplete: {each}.")] if lacking else []
    )
    paragraphs = [
        f"**{escape_markdown(first.sentence)}** {escape_markdown(first.standing)}".rstrip(),
        f"{escape_markdown(ranking.caption)} {escape_markdown(before)}{tick}{after}",
        *map(escape_markdown, scores.notes),
        markdown_table(ranking),
        *omitted,
        *captioned_tables([corruption_table(scores), *optional_tables(scores).values()]),
    ]
    return "\n\n".join(paragraphs) + "\n"


def captioned_tables(tables: Iterable[Table]) -> Iterator[str]:
    """Yield the caption of each table as a paragraph, then the table."""
    for table in tables:
        yield escape_markdown(table.caption)
        yield markdown_table(table)


def markdown_table(table: Table) -> str:
    """Return a table, with arrows for the direction of better values."""
    marks = table.marks or ("",) * len(table.header)
    header = [f"{escape_markdown(t)}{ARROWS[m]}" for t, m in zip(table.header, marks, strict=True)]
    numbers = [not isinstance(cell, str) for cell in table.rows[0]]
    rule = ["---:" if number else "---" for number in numbers]
    lines = [header, rule, *([_cell(cell) for cell in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape_markdown(text: str) -> str:
    r"""Escape Markdown and HTML, and join lines.

    >>> print(escape_markdown("a_b|<i>"))
    a\_b\|\<i\>
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _cell(cell: str | Estimate | None) -> str:
    if isinstance(cell, Estimate):
        return " ".join(value_and_bounds(cell)).rstrip()
    return "–" if cell is None else escape_markdown(cell)


def to_card(scores: Scores) -> str:
    """Return the front matter of a model card with the results of all models, and a section.

    Values in `model-index` are in percent.
    """
    return f"{front_matter([scores])}\n## Robustness\n\n{card_section(scores)}"


def front_matter(parts: Sequence[Scores], *, only: str | None = None, exact: bool = False) -> str:
    """Return the results on all datasets as `model-index`: of all models or one, rounded unless `exact`."""
    results: dict[str, list[dict[str, Any]]] = {}
    for scores in parts:
        for model in scores.models:
            if only in (None, model.model):
                results.setdefault(model.model, []).append(_result(scores, model, None if exact else 2))
    index = {"model-index": [{"name": name, "results": found} for name, found in results.items()]}
    return f"---\n{yaml.safe_dump(index, sort_keys=False, allow_unicode=True, width=100)}---\n"


def card_section(scores: Scores) -> str:
    """Return the section about one dataset, without a heading."""
    parts = [
        escape_markdown(headline(scores, scores.models[0]).sentence),
        f"{escape_markdown(about(scores))} {escape_markdown(baseline_words(scores).replace('`', ''))} "
        f"Measured with Beaufort {__version__}; brackets contain {100 * scores.level:g} % intervals.",
        *map(escape_markdown, scores.notes),
        markdown_table(headline_table(scores)),
        *captioned_tables([corruption_table(scores)]),
    ]
    return "\n\n".join(parts) + "\n"


def _result(scores: Scores, model: ModelScores, digits: int | None) -> dict[str, Any]:
    suite = scores.suite
    numbers = [
        _metric(name, scores.metric_title(name), value, digits) for name, value in model.metrics.items()
    ]
    if model.clean is not None and scores.with_clean:
        numbers.append(_metric("accuracy", "Clean accuracy", model.clean, digits))
    return {
        "task": {"type": "image-classification", "name": "Image Classification"},
        "dataset": {
            "name": f"{suite.title}, on {scores.results.dataset}",
            "type": suite.name,
            "revision": f"sha256:{scores.results.setting.data}",
            "args": {"suite": str(suite), "suite_digest": suite.digest, "images": scores.images},
        },
        "metrics": numbers,
    }


def _metric(kind: str, title: str, estimate: Estimate, digits: int | None) -> dict[str, Any]:
    times, unit = (100, " (%)") if metrics[kind].in_percent else (1, "")
    low, value, high = (times * x for x in (estimate.low, estimate.value, estimate.high))
    if digits is not None:
        low, value, high = (round(x, digits) for x in (low, value, high))
    return {
        "type": kind,
        "name": f"{title}{unit}",
        "value": value,
        "args": {"low": low, "high": high, "level": estimate.level, "n": estimate.n},
    }
