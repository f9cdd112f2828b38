"""Arguments of `evaluate`: models, suites, conditions and seeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from beaufort._core.errors import OptionError
from beaufort.corruptions import members_of, validate_seed
from beaufort.data.objects import describe_object
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.models import Model, as_model
from beaufort.suites import (
    SUITE_NAMES,
    Suite,
    get_suite,
    registered_suites,
    suite_from_corruptions,
    with_own_name,
)
from beaufort.suites.conditions import Condition

ModelSource: TypeAlias = str | os.PathLike[str] | Model | LazyModel | Callable[..., Any]
"""A string for `load_model`, a `Model`, a torch module, or a function."""
Models: TypeAlias = ModelSource | Iterable[ModelSource]
"""A model, or a list of them."""
Conditions: TypeAlias = str | Path | Suite | Condition | Sequence[Condition] | Sequence[str]
"""A suite, its name or file; a list of conditions; or a list of corruption names."""

_MODEL = (
    "a model must be a string as in `beaufort ls models`, a Model, a torch module, or a function from uint8 "
    "images (n, h, w, c) to logits (n, classes)"
)
_SUITE = (
    "suite must be a suite, its name or file, a list of conditions, or a list of corruption names such as "
    "['fog', 'snow']"
)
_LARGEST_SEED = 2**63 - 1
"""Limit of the 64-bit integers in the tables of a store."""


def validate_store_seed(seed: int) -> int:
    """Return the seed as an `int`; an error if it is not an integer that a store can keep."""
    found = validate_seed(seed)
    if abs(found) > _LARGEST_SEED:
        raise OptionError(f"seed must be an integer from -(2**63 - 1) to 2**63 - 1, got {found!r:.60}")
    return found


def as_lazy_models(models: Models) -> list[LazyModel]:
    """Return the models, each of which is loaded when it is needed."""
    if _is_one(models):
        return [_model(models)]
    if isinstance(models, Mapping) or not isinstance(models, Iterable):
        raise OptionError(f"{_MODEL}, or a list of these; got {describe_object(models)}")
    found = [_model(one) for one in models]
    if not found:
        raise OptionError("models must not be empty")
    return found


def _is_one(models: Models) -> bool:
    return isinstance(models, str | os.PathLike | LazyModel | Model) or callable(models)


def _model(model: Any) -> LazyModel:
    if isinstance(model, str | os.PathLike):
        return LazyModel.of(str(model))
    if isinstance(model, LazyModel):
        return model
    if isinstance(model, type) or not (isinstance(model, Model) or callable(model)):
        raise OptionError(f"{_MODEL}; got {describe_object(model)}")
    return LazyModel.of(as_model(model))


def as_suite(suite: Conditions, prepare: str | None = None) -> Suite | list[Condition]:
    """Return a suite, or a list of conditions without a suite.

    Args:
        suite: as `evaluate` takes it.
        prepare: `none` for the suite without preparation of images.
    """
    found = _suite(suite)
    if prepare is None or not isinstance(found, Suite):
        return found
    if found.parts:
        raise OptionError(f"prepare requires a suite of one dataset; {found} has several")
    return found.unprepared()


def _suite(suite: Conditions) -> Suite | list[Condition]:
    if isinstance(suite, Suite):
        return with_own_name(suite)
    if isinstance(suite, str) and members_of(suite) and suite not in (*SUITE_NAMES, *registered_suites):
        return suite_from_corruptions([suite])
    if isinstance(suite, str | Path):
        return get_suite(suite)
    if isinstance(suite, Condition):
        return [suite]
    given: list[Any] = list(suite) if isinstance(suite, Iterable) else []
    if given and all(isinstance(one, Condition) for one in given):
        return given
    if given and all(isinstance(one, str) for one in given):
        return suite_from_corruptions(given)
    raise OptionError(f"{_SUITE}; got {describe_object(suite)}")
