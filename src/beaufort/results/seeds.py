"""Several trainings of one recipe: the spread over seeds beside the interval over photos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown
from beaufort.metrics.stats import Estimate
from beaufort.results.linear import Linear


@dataclass(frozen=True)
class SeedSpread:
    """One metric of several trainings."""

    mean: Estimate
    """The mean over the trainings, with its interval over photos for just these trainings."""
    deviation: float
    """The standard deviation over the trainings."""
    lowest: float
    highest: float


@dataclass(frozen=True)
class Seeds:
    """Several trainings of one recipe."""

    name: str
    models: tuple[str, ...]
    metrics: Mapping[str, SeedSpread]


def spread_over_seeds(
    forms: Mapping[str, Mapping[str, Linear]], seeds: Mapping[str, Sequence[str]], level: float
) -> tuple[Seeds, ...]:
    """The mean and the spread of each metric over the models that each name stands for."""
    return tuple(_seeds(forms, name, models, level) for name, models in seeds.items())


def _seeds(
    forms: Mapping[str, Mapping[str, Linear]], name: str, models: Sequence[str], level: float
) -> Seeds:
    for model in models:
        if model not in forms:
            raise OptionError(unknown("model", model, dict.fromkeys(forms)))
    if len(set(models)) < 2:
        raise OptionError(f"seeds of {name!r} must be at least two models, got {', '.join(models) or 'none'}")
    chosen = list(dict.fromkeys(models))
    return Seeds(
        name,
        tuple(chosen),
        {metric: _spread([forms[model][metric] for model in chosen], level) for metric in forms[chosen[0]]},
    )


def _spread(parts: Sequence[Linear], level: float) -> SeedSpread:
    values = [part.value for part in parts]
    mean = reduce(add, parts) * (1 / len(parts))
    return SeedSpread(mean.estimate(level), float(np.std(values, ddof=1)), min(values), max(values))
