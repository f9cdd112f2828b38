"""Scores for programs: JSON with the keys that lm-evaluation-harness writes, and CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from beaufort import __version__
from beaufort._core.text import csv_text, spreadsheet_cell
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.results import ModelScores, Scores
from beaufort.results.score_tables import COLUMNS, tidy_rows
from beaufort.suites.frames import frames_shift_name

_FILTER = "none"
"""Name of lm-evaluation-harness for predictions that are not filtered."""


def to_json(scores: Scores) -> str:
    """Return one model as an object, or several in a list `models`, best first."""
    objects = [_as_results(scores, model) for model in scores.models]
    seeds = {"seeds": [asdict(one) for one in scores.seeds]} if scores.seeds else {}
    whole = objects[0] if len(objects) == 1 else {"models": objects, **seeds}
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _as_results(scores: Scores, model: ModelScores) -> dict[str, Any]:
    """Return the object of one model.

    The suite is a group; its tasks are the clean images, each condition, and each corruption.
    """
    suite, results, space = scores.suite, scores.results, scores.results.space(model.model)
    tasks = _tasks(scores, model)
    counts = {"original": model.images + model.unread, "effective": next(iter(model.conditions.values())).n}
    times = [str(one["time"]) for one in results.origins if one.get("time")]
    commits = [str(one["git"]) for one in results.origins if one.get("git")]
    return {
        "results": tasks,
        "group_subtasks": {suite.name: [name for name in tasks if name != suite.name]},
        "configs": {suite.name: _config(scores)},
        "versions": dict.fromkeys(tasks, suite.version),
        "higher_is_better": {name: _directions(values) for name, values in tasks.items()},
        "n-samples": dict.fromkeys(tasks, counts),
        "config": {
            "model": model.model,
            "model_digest": model.digest,
            "seed": results.setting.seed,
            "level": scores.level,
            "labels": {
                "convention": "all" if space.identity else space.convention,
                "sets": results.by_sets,
                "about": str(space),
            },
            "clusters": None if scores.clusters == scores.images else scores.clusters,
        },
        "git_hash": max(commits, default=None),
        "date": _timestamp(max(times, default="")),
        "beaufort_version": __version__,
        "notes": list(scores.notes),
        **({} if model.groups is None else {"groups": asdict(model.groups)}),
    }


def _tasks(scores: Scores, model: ModelScores) -> dict[str, dict[str, Any]]:
    name = scores.suite.name
    group: dict[str, Any] = {"alias": name}
    for metric, estimate in model.metrics.items():
        key = "acc" if metric == "mean_accuracy" else metric
        group |= _numbers(key, estimate, scores.pairs.forms[model.model][metric].standard_error)
    tasks = {name: group}
    for corruption in model.corruptions:
        tasks[f"{name}/{corruption}"] = {"alias": f" - {corruption}"}
    by_corruption = {"error": model.corruptions, "ce": model.ce, "relative_ce": model.relative_ce}
    for key, estimates in by_corruption.items():
        for corruption, estimate in estimates.items():
            tasks[f"{name}/{corruption}"] |= _numbers(key, estimate)
    for kind, by_sequence in model.movement.items():
        for sequence, estimate in by_sequence.items():
            tasks[f"{name}/{frames_shift_name(sequence)}"] |= _numbers(kind, estimate)
    for condition, accuracy in model.conditions.items():
        short = "clean" if condition.clean else str(condition).partition("/")[2]  # fog@3; fog if published
        p, n = accuracy.value, accuracy.n
        spread = math.sqrt(p * (1 - p) / (n - 1)) if n > 1 else None
        task = tasks.setdefault(f"{name}/{short}", {"alias": f" - {short}"})
        task |= _numbers("acc", accuracy, spread) | _numbers("acc5", model.top5[condition])
    return tasks


def _numbers(key: str, estimate: Estimate, spread: float | None = None) -> dict[str, float]:
    numbers = {f"{key},{_FILTER}": estimate.value}
    if spread is not None:
        numbers[f"{key}_stderr,{_FILTER}"] = spread
    return {**numbers, f"{key}_low,{_FILTER}": estimate.low, f"{key}_high,{_FILTER}": estimate.high}


def _directions(values: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether higher is better, for numbers that have a direction."""
    plain = (key.partition(",")[0] for key in values if "," in key)
    named = {key: "accuracy" if key in ("acc", "acc5") else key for key in plain if not key.endswith(_ENDS)}
    better = {key: metrics[name].better for key, name in named.items()}
    return {key: way == "higher" for key, way in better.items() if way is not None}


_ENDS = ("_stderr", "_low", "_high")


def _config(scores: Scores) -> dict[str, Any]:
    results, baseline = scores.results, scores.baseline
    return {
        "task": scores.suite.name,
        "dataset_name": results.dataset,
        "dataset_digest": results.setting.data,
        "suite_digest": scores.suite.digest,
        "baseline": None if baseline is None else {"name": baseline.name, "source": baseline.source},
        "metadata": {"version": scores.suite.version, **scores.suite.facts()},
        **({"left_out": dict(sorted(results.incomplete.items()))} if results.incomplete else {}),
    }


def _timestamp(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def to_csv(scores: Scores) -> str:
    """Return all numbers of all models as CSV; fractions and ratios, not rounded."""
    return csv_text(COLUMNS, ((spreadsheet_cell(row[0]), *row[1:]) for row in tidy_rows(scores)))
