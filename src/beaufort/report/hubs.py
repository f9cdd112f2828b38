"""Scores in the formats that hubs read: Hugging Face's evaluation results, and Every Eval Ever.

Hugging Face shows `.eval_results/*.yaml` of a model repository on the page of the model, and on the
leaderboard of the dataset repository that declares the tasks in `eval.yaml`. Every Eval Ever collects a JSON
file per evaluation, and a JSON Lines file with its instances, which are images here. Values are not rounded.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from beaufort import __version__
from beaufort._core.errors import OptionError
from beaufort._core.files import unused, write_bytes
from beaufort._core.validation import validate_choice, validate_output_directory
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.report.markdown import card_section, front_matter
from beaufort.report.wording import class_name
from beaufort.results import Linear, ModelScores, Scores
from beaufort.store import folder_name
from beaufort.suites.conditions import Condition

RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
"""How the evaluator is related to the model, in Every Eval Ever."""

_SCHEMA = "0.2.2"
"""Version of the schema of Every Eval Ever."""
_CLEAN = "clean-accuracy"


def export_huggingface(
    scores: Sequence[Scores], output: Path | str, *, dataset: str, url: str | None = None
) -> Path:
    """Write the files of a dataset repository and of model repositories on the Hugging Face Hub.

    `dataset/eval.yaml` declares a task for each metric. `models/MODEL/.eval_results/SUITE.yaml` has the
    values of a model, with their intervals in `notes`, and `models/MODEL/README.md` the front matter and a
    section for its card. Percentages are not rounded.

    Args:
        scores: the scores of each dataset of a suite.
        output: a new or empty directory.
        dataset: id of the dataset repository, `ORGANIZATION/NAME`.
        url: address of the published results, such as a bundle.
    """
    folder = _new_directory(output)
    if dataset.count("/") != 1 or dataset.strip("/") != dataset:
        raise OptionError(f"dataset must be ORGANIZATION/NAME, got {dataset!r}")
    tasks = [{"id": task, "config": "default", "split": "test"} for task in _tasks(scores)]
    first = scores[0]
    title = first.results.part_of or first.suite.title
    about = {
        "name": title,
        "description": f"{title}, with {100 * first.level:g} % intervals over images.",
        "evaluation_framework": "beaufort",
        "tasks": tasks,
    }
    _write_yaml(folder / "dataset" / "eval.yaml", about)
    file = f"{folder_name(first.results.part_of or first.suite.name)}.yaml"
    for name, directory in _directories(scores):
        entries = [
            _entry(one, scored, metric, value, dataset, several=len(scores) > 1, url=url)
            for one in scores
            for scored in one.models
            if scored.model == name
            for metric, value in _headline_numbers(one, scored)
        ]
        _write_yaml(folder / "models" / directory / ".eval_results" / file, entries)
        section = "\n".join(map(card_section, scores))
        card = f"{front_matter(scores, only=name, exact=True)}\n## Robustness\n\n{section}"
        write_bytes(folder / "models" / directory / "README.md", card.encode())
    return folder


def export_every_eval_ever(
    scores: Sequence[Scores],
    output: Path | str,
    *,
    organization: str,
    developer: str = "",
    relationship: str = "other",
    url: str | None = None,
    instances: bool = True,
) -> Path:
    """Write a record of Every Eval Ever for each model, and its predictions as instances.

    Args:
        scores: the scores of each dataset of a suite.
        output: a new or empty directory; files are `data/SUITE/DEVELOPER/MODEL/UUID.json` and `.jsonl`.
        organization: the organization that provides the results.
        developer: the organization that provides the models; `unknown` if empty.
        relationship: one of `RELATIONSHIPS`.
        url: address of the organization.
        instances: whether to write the predictions: about 700 bytes for each image and condition.
    """
    validate_choice("relationship", relationship, RELATIONSHIPS)
    if not organization:
        raise OptionError("organization must be the name of the provider of the results")
    folder = _new_directory(output)
    first = scores[0]
    suite = first.results.part_of or first.suite.name
    now = f"{time.time():.6f}"
    for name, directory in _directories(scores):
        model_id = f"{developer or 'unknown'}/{name}"
        evaluation = f"{suite}/{model_id}/{now}"
        key = "/".join([evaluation, *(one.results.setting.data for one in scores)])
        path = folder / "data" / folder_name(suite) / folder_name(developer or "unknown") / directory
        file = uuid.uuid5(uuid.NAMESPACE_URL, key)
        both = [(one, scored) for one in scores for scored in one.models if scored.model == name]
        times = [str(origin["time"]) for one, _ in both for origin in one.results.origins if "time" in origin]
        record: dict[str, Any] = {
            "schema_version": _SCHEMA,
            "evaluation_id": evaluation,
            "retrieved_timestamp": now,
            "source_metadata": {
                "source_name": "Beaufort",
                "source_type": "evaluation_run",
                "source_organization_name": organization,
                **({"source_organization_url": url} if url else {}),
                "evaluator_relationship": relationship,
            },
            "eval_library": {"name": "beaufort", "version": __version__},
            "model_info": {
                "name": name,
                "id": model_id,
                **({"developer": developer} if developer else {}),
                "additional_details": {"digest": both[0][1].digest or "none"},
            },
            "evaluation_results": [one for scores, scored in both for one in _results(scores, scored)],
            **({"evaluation_timestamp": max(times)} if times else {}),
        }
        if instances:
            lines = [
                json.dumps(row, ensure_ascii=False)
                for one, scored in both
                for row in _instances(one, scored, evaluation, model_id)
            ]
            content = ("\n".join(lines) + "\n").encode()
            write_bytes(path / f"{file}.jsonl", content)
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{file}.jsonl",
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(content).hexdigest(),
                "total_rows": len(lines),
            }
        write_bytes(path / f"{file}.json", (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())
    return folder


def _new_directory(output: Path | str) -> Path:
    folder = validate_output_directory(output)
    if folder.is_dir() and any(folder.iterdir()):
        raise OptionError(f"output must be a new or empty directory, got {folder}")
    return folder


def _directories(scores: Sequence[Scores]) -> Iterator[tuple[str, str]]:
    """Yield the models, each with the name of its directory."""
    taken: set[str] = set()
    for name in dict.fromkeys(model.model for one in scores for model in one.models):
        directory = unused(folder_name(name), lambda name: name.casefold() in taken)
        taken.add(directory.casefold())
        yield name, directory


def _write_yaml(path: Path, content: Any) -> None:
    write_bytes(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100).encode())


# Hugging Face


def _headline_numbers(scores: Scores, model: ModelScores) -> Iterator[tuple[str, Estimate]]:
    yield from model.metrics.items()
    if model.clean is not None and scores.with_clean:
        yield _CLEAN, model.clean


def _task(scores: Scores, metric: str, *, several: bool) -> str:
    short = metric.replace("_", "-")
    return f"{scores.suite.name}-{short}" if several else short


def _tasks(scores: Sequence[Scores]) -> Iterable[str]:
    several = len(scores) > 1
    found = (
        _task(one, metric, several=several)
        for one in scores
        for model in one.models
        for metric, _ in _headline_numbers(one, model)
    )
    return dict.fromkeys(found)


def _entry(
    scores: Scores,
    model: ModelScores,
    metric: str,
    value: Estimate,
    dataset: str,
    *,
    several: bool,
    url: str | None,
) -> dict[str, Any]:
    percent = metric == _CLEAN or metrics[metric].in_percent
    low, number, high = ((100 * x if percent else x) for x in (value.low, value.value, value.high))
    title = "clean accuracy" if metric == _CLEAN else scores.metric_title(metric)
    unit = ", in percent" if percent else ""
    times = [str(origin["time"])[:10] for origin in scores.results.origins if origin.get("time")]
    return {
        "dataset": {"id": dataset, "task_id": _task(scores, metric, several=several)},
        "value": number,
        **({"date": max(times)} if times else {}),
        **({"source": {"url": url, "name": "Predictions and scores"}} if url else {}),
        "notes": (
            f"{title}{unit}; {100 * value.level:g} % interval [{low!r}, {high!r}], n = {value.n}; "
            f"{scores.suite} on {scores.results.dataset} (sha256:{scores.results.setting.data}), "
            f"model {model.digest or 'without digest'}; beaufort {__version__}"
        ),
    }


# Every Eval Ever


def _results(scores: Scores, model: ModelScores) -> Iterator[dict[str, Any]]:
    suite = scores.suite.name
    forms = scores.pairs.forms[model.model]
    for name, value in model.metrics.items():
        yield _result(scores, suite, name, value, _ends(forms[name], value))
    for corruption, value in model.corruptions.items():
        yield _result(scores, f"{suite}/{corruption}", "error", value, (0.0, 1.0))
    for corruption, value in model.ce.items():
        ends = _ends(model.ce_forms[corruption], value)
        yield _result(scores, f"{suite}/{corruption}", "ce", value, ends)
    for condition, value in model.conditions.items():
        yield _result(scores, _condition_name(scores, condition), "accuracy", value, (0.0, 1.0))
    for condition, value in model.top5.items():
        yield _result(scores, _condition_name(scores, condition), "accuracy5", value, (0.0, 1.0))


def _ends(form: Linear, value: Estimate) -> tuple[float, float]:
    """Return the smallest and the largest value that a number can have."""
    low, high = (end if math.isfinite(end) else value.value for end in form.bounds)
    return min(low, value.low), max(high, value.high)


def _condition_name(scores: Scores, condition: Condition) -> str:
    return f"{scores.suite.name}/{condition.done or 'clean'}"


def _result(
    scores: Scores, name: str, metric: str, value: Estimate, ends: tuple[float, float]
) -> dict[str, Any]:
    known = metrics["accuracy" if metric == "accuracy5" else metric]
    title = "Top-5 accuracy" if metric == "accuracy5" else known.title
    results = scores.results
    return {
        "evaluation_result_id": f"{name}/{metric}",
        "evaluation_name": name,
        "source_data": {
            "dataset_name": results.dataset,
            "source_type": "other",
            "additional_details": {"digest": f"sha256:{results.setting.data}", "suite": str(scores.suite)},
        },
        "metric_config": {
            "evaluation_description": f"{known.summary} {scores.suite.title}.",
            "metric_id": f"beaufort.{metric}",
            "metric_name": title,
            "metric_unit": "proportion" if known.unit == "fraction" else known.unit,
            "lower_is_better": known.better == "lower",
            "score_type": "continuous",
            "min_score": ends[0],
            "max_score": ends[1],
        },
        "score_details": {
            "score": value.value,
            "uncertainty": {
                "confidence_interval": {
                    "lower": value.low,
                    "upper": value.high,
                    "confidence_level": value.level,
                    "method": "exact, over images" if not value.exact else "exact by definition",
                },
                "num_samples": value.n,
            },
        },
    }


def _instances(
    scores: Scores, model: ModelScores, evaluation: str, model_id: str
) -> Iterator[dict[str, Any]]:
    """Yield a row for each image and condition."""
    predictions, classes = scores.predictions([model.model])[model.model], scores.results.classes
    for row, condition in enumerate(predictions.conditions):
        name = _condition_name(scores, condition)
        for place, image in enumerate(predictions.ids):
            label = predictions.labels[place]
            valid = [label] if predictions.label_sets is None else predictions.label_sets[place]
            reference = [class_name(classes, int(one)) for one in valid if one >= 0]
            found = class_name(classes, int(predictions.top[row, place, 0]))
            right = bool(predictions.correct[row, place])
            raw = f"{image} ({condition.done or 'clean'})"
            yield {
                "schema_version": f"instance_level_eval_{_SCHEMA}",
                "evaluation_id": evaluation,
                "model_id": model_id,
                "evaluation_name": name,
                "evaluation_result_id": f"{name}/accuracy",
                "sample_id": image,
                "sample_hash": hashlib.sha256((raw + "".join(reference)).encode()).hexdigest(),
                "interaction_type": "single_turn",
                "input": {"raw": raw, "reference": reference},
                "output": {"raw": [found]},
                "answer_attribution": [
                    {
                        "turn_idx": 0,
                        "source": "output.raw",
                        "extracted_value": found,
                        "extraction_method": "argmax",
                        "is_terminal": True,
                    }
                ],
                "evaluation": {"score": float(right), "is_correct": right},
            }
