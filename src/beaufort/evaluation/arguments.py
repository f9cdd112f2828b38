"""What `evaluate` is given: one model or many, a suite or names of corruptions, data in any usual form."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_count
from beaufort.corruptions import members_of, validate_seed
from beaufort.data import Dataset, load_dataset
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.objects import dataset_of_items, dataset_of_pair
from beaufort.models import Model, as_model
from beaufort.suites import SUITE_NAMES, Suite, get_suite, own_suites, suite_of_corruptions, with_own_name
from beaufort.suites.conditions import Condition


class Items(Protocol):
    """Items `(image, label)` by number, as those of a torch `Dataset`."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class Loader(Protocol):
    """What has a data set, as a torch `DataLoader`."""

    @property
    def dataset(self) -> Any: ...


ModelSource: TypeAlias = str | os.PathLike[str] | Model | LazyModel | Callable[..., Any]
"""A text for `load_model`, a `Model`, a torch module, or a function."""
Models: TypeAlias = ModelSource | Iterable[ModelSource]
"""A model, or a list of them."""
DataSource: TypeAlias = Dataset | str | os.PathLike[str] | Items | Loader
"""A `Dataset`, a text for `load_dataset`, `(images, labels)`, a torch `Dataset` or `DataLoader`."""
Data: TypeAlias = DataSource | Mapping[str, DataSource]
"""One data set, or several by the names that a suite has for them."""
Conditions: TypeAlias = str | Path | Suite | Condition | Sequence[Condition] | Sequence[str]
"""A suite, its name or file; a list of conditions, or of names of corruptions."""

_MODEL = (
    "a model must be a text as in `beaufort ls models`, a Model, a torch module, or a function from uint8 "
    "images (n, h, w, c) to logits (n, classes)"
)
_SUITE = (
    "suite must be a suite, its name or file, a list of conditions, or a list of names of corruptions, "
    "as ['fog', 'snow']"
)
_DATA = (
    "data must be a path or a name as in `beaufort ls datasets`, (images, labels), a torch Dataset or "
    "DataLoader, or a Dataset of Beaufort"
)


_LARGEST_SEED = 2**63 - 1
"""The largest of a 64-bit integer, which is what the tables of a store have for it."""


def find_seed(seed: int) -> int:
    """The seed as an `int`; an error if it is no whole number that a store can keep."""
    found = validate_seed(seed)
    if abs(found) > _LARGEST_SEED:
        raise OptionError(f"seed must be an integer from -(2**63 - 1) to 2**63 - 1, got {found!r:.60}")
    return found


def find_count(name: str, value: int | None) -> int | None:
    """A number of things as an `int`, None if nothing is said; an error if it is no whole number from 1."""
    return None if value is None else validate_count(name, value)


def find_models(models: Models) -> list[LazyModel]:
    """The models, each of which is loaded when it is needed."""
    if _is_one(models):
        return [_model(models)]
    if isinstance(models, Mapping) or not isinstance(models, Iterable):
        raise OptionError(f"{_MODEL}, or a list of these; got {_described(models)}")
    found = [_model(one) for one in models]
    if not found:
        raise OptionError("models must be at least one, got none")
    return found


def _is_one(models: Models) -> bool:
    return isinstance(models, str | os.PathLike | LazyModel | Model) or callable(models)


def _model(model: Any) -> LazyModel:
    if isinstance(model, str | os.PathLike):
        return LazyModel.of(str(model))
    if isinstance(model, LazyModel):
        return model
    if isinstance(model, type) or not (isinstance(model, Model) or callable(model)):
        raise OptionError(f"{_MODEL}; got {_described(model)}")
    return LazyModel.of(as_model(model))


def find_suite(suite: Conditions, prepare: str | None = None) -> Suite | list[Condition]:
    """A suite, or a list of conditions that are of none.

    Args:
        suite: as `evaluate` takes it.
        prepare: `none` for the same with pictures that are left as they are.
    """
    found = _suite(suite)
    if prepare is None:
        return found
    if prepare != "none":
        raise OptionError(f"prepare must be 'none', or not be given, got {prepare!r:.60}")
    if not isinstance(found, Suite):
        return found
    if found.parts:
        raise OptionError(f"prepare must not be given with a suite of several data sets, got it with {found}")
    return found.unprepared()


def _suite(suite: Conditions) -> Suite | list[Condition]:
    if isinstance(suite, Suite):
        return with_own_name(suite)
    if isinstance(suite, str) and members_of(suite) and suite not in (*SUITE_NAMES, *own_suites):
        return suite_of_corruptions([suite])
    if isinstance(suite, str | Path):
        return get_suite(suite)
    if isinstance(suite, Condition):
        return [suite]
    given: list[Any] = list(suite) if isinstance(suite, Iterable) else []
    if given and all(isinstance(one, Condition) for one in given):
        return given
    if given and all(isinstance(one, str) for one in given):
        return suite_of_corruptions(given)
    raise OptionError(f"{_SUITE}; got {_described(suite)}")


def find_dataset(data: DataSource, *, strict: bool = False) -> Dataset:
    """The data set that is meant."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str | os.PathLike):
        return load_dataset(str(data), strict=strict)
    if isinstance(data, tuple | list):
        if len(data) != 2:
            raise OptionError(f"{_DATA}; got {_described(data)}")
        return dataset_of_pair(*data)
    items: object = data.dataset if _is_loader(data) else data
    if not isinstance(items, Mapping) and hasattr(items, "__getitem__") and hasattr(items, "__len__"):
        if not (hasattr(items, "dtype") or hasattr(items, "dtypes")):  # an array, a tensor, a data frame
            return dataset_of_items(items, strict=strict)
        raise OptionError(f"{_DATA}; got {_described(items)} without labels")
    hint = "; collect it into (images, labels)" if hasattr(items, "__iter__") else ""
    raise OptionError(f"{_DATA}, with a length and items by number; got {_described(items)}{hint}")


def _is_loader(data: object) -> TypeGuard[Loader]:
    """Whether it is a torch `DataLoader`; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(data, torch.utils.data.DataLoader)


def _described(thing: Any) -> str:
    """What came, short enough for a message."""
    kind = type(thing).__name__
    if isinstance(thing, type):
        return f"the class {thing.__name__}, not an object of it"
    if hasattr(thing, "shape"):
        return f"an array of shape {tuple(thing.shape)}"
    if isinstance(thing, list | tuple):
        kinds = ", ".join(dict.fromkeys(type(one).__name__ for one in thing))
        return f"a {kind} of {len(thing)} ({kinds})" if thing else f"an empty {kind}"
    return f"an object of type {kind}"
