"""Details of a gate: the versions of both models, and their difference under each corruption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from beaufort.metrics.stats import Estimate
from beaufort.results.results import Results
from beaufort.results.scores import Scores


@dataclass(frozen=True)
class ModelVersion:
    """What identifies the version of a model."""

    name: str
    digest: str
    """SHA-256 of the model, empty if unknown."""
    source: str
    """Model as passed to the run, empty if unknown."""
    commit: str
    """Git commit of the working directory of the run, empty if unknown."""
    time: str
    """Time of the last prediction."""


@dataclass(frozen=True)
class ErrorChange:
    """The error of a model under one corruption, and how it differs from that of the reference."""

    corruption: str
    """Name of the corruption; `clean` for clean images."""
    error: Estimate
    reference: Estimate | None
    difference: Estimate | None
    """Error of the model minus that of the reference, adjusted for all rows (Bonferroni)."""


@dataclass(frozen=True)
class VerdictDetails:
    """Details of a gate on one dataset."""

    versions: tuple[ModelVersion, ...]
    """Of the model, and of the reference if there is one."""
    changes: tuple[ErrorChange, ...]


def verdict_details(
    scores: Scores,
    results: Results,
    reference: Results | None,
    new: str,
    old: str,
    *,
    always_valid: bool = False,
) -> VerdictDetails:
    """Return the details of a gate.

    Args:
        scores: scores of both models.
        results: results of the model.
        reference: results of the reference.
        new: name of the model in `scores`.
        old: name of the reference in `scores`; the model's without one.
        always_valid: as for `gate`.
    """
    parts = [results] if reference is None else [results, reference]
    versions = tuple(_version(part, part.models[0]) for part in parts)
    return VerdictDetails(
        versions, tuple(_changes(scores, new, None if reference is None else old, always_valid))
    )


def _changes(scores: Scores, new: str, old: str | None, always_valid: bool) -> Iterator[ErrorChange]:
    models = {model.model: model for model in scores.models}
    rows = {
        name: {**({"clean": model.clean_form} if model.clean_form else {}), **model.error_forms}
        for name, model in models.items()
    }
    each = 1 - (1 - scores.level) / max(1, len(rows[new]))
    for name, form in rows[new].items():
        other = rows[old][name] if old is not None else None
        yield ErrorChange(
            name,
            form.estimate(scores.level, always_valid=always_valid),
            None if other is None else other.estimate(scores.level, always_valid=always_valid),
            None if other is None else (form - other).estimate(each, always_valid=always_valid),
        )


def _version(results: Results, name: str) -> ModelVersion:
    cell = next(iter(results.cells[name].values()))
    origin = max(results.origins, key=lambda one: str(one.get("time", "")), default={})
    own_name, digest = str(cell.model.get("name", name)), str(cell.model.get("digest") or "")
    source = _source(origin.get("command"), own_name)
    return ModelVersion(own_name, digest, source, str(origin.get("git") or ""), str(origin.get("time") or ""))


def _source(command: Any, name: str) -> str:
    """Return the value of `--model` that a command evaluated under a name.

    >>> _source(["beaufort", "run", "--model", "nets/net.onnx", "--model=other.onnx"], "net")
    'nets/net.onnx'
    """
    if not isinstance(command, list):
        return ""
    words = list(map(str, command))
    found = [after for word, after in pairwise(words) if word == "--model"]
    found += [word.removeprefix("--model=") for word in words if word.startswith("--model=")]
    return next((one for one in found if name in one), found[0] if len(found) == 1 else "")
