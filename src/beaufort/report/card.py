"""A section of a model card: Hugging Face's `model-index` for machines, a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from beaufort import __version__
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.report.headline import about, headline
from beaufort.report.markdown import escape_markdown, markdown_table
from beaufort.report.tables import baseline_words, corruption_table, headline_table
from beaufort.results import ModelScores, Scores


def to_card(scores: Scores) -> str:
    """The front matter of a model card with every model's results, and a section to paste below it.

    Values in `model-index` are percent, as the tables'.
    """
    return f"{front_matter([scores])}\n## Robustness\n\n{card_section(scores)}"


def front_matter(parts: Sequence[Scores]) -> str:
    """Every model's results on all data sets, as `model-index`."""
    results: dict[str, list[dict[str, Any]]] = {}
    for scores in parts:
        for model in scores.models:
            results.setdefault(model.model, []).append(_result(scores, model))
    index = {"model-index": [{"name": name, "results": found} for name, found in results.items()]}
    return f"---\n{yaml.safe_dump(index, sort_keys=False, allow_unicode=True, width=100)}---\n"


def card_section(scores: Scores) -> str:
    """What people read about one data set, without a heading."""
    sentences = [headline(scores, model).sentence for model in scores.models[:1]]
    parts = [
        *(escape_markdown(sentence) for sentence in sentences),
        f"{escape_markdown(about(scores))} {escape_markdown(baseline_words(scores).replace('`', ''))} "
        f"Measured with Beaufort {__version__}; in brackets {100 * scores.level:g} % intervals.",
        *(escape_markdown(note) for note in scores.notes),
        markdown_table(headline_table(scores)),
        escape_markdown(corruption_table(scores).caption),
        markdown_table(corruption_table(scores)),
    ]
    return "\n\n".join(parts) + "\n"


def _result(scores: Scores, model: ModelScores) -> dict[str, Any]:
    suite = scores.suite
    numbers = [_metric(name, scores.metric_title(name), value) for name, value in model.metrics.items()]
    if model.clean is not None and scores.with_clean:
        numbers.append(_metric("accuracy", "Clean accuracy", model.clean))
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


def _metric(kind: str, title: str, estimate: Estimate) -> dict[str, Any]:
    times, unit = (100, " (%)") if metrics[kind].in_percent else (1, "")
    low, high = round(times * estimate.low, 2), round(times * estimate.high, 2)
    return {
        "type": kind,
        "name": f"{title}{unit}",
        "value": round(times * estimate.value, 2),
        "args": {"low": low, "high": high, "level": estimate.level, "n": estimate.n},
    }
