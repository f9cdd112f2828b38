"""What models say to a mined set: the ordinary evaluation, its answers in the ordinary store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beaufort.data import Dataset
from beaufort.data.labels import Grouping, LabelError
from beaufort.mining.names import display_name
from beaufort.mining.plan import MiningError

if TYPE_CHECKING:  # evaluation needs pyarrow, which making images does not
    from beaufort.evaluation import Evaluation, LazyModel, Progress
    from beaufort.store import Store
    from beaufort.suites import Suite

OTHER = -1
"""The category of an answer that belongs to none."""

_ZERO_SHOT = "open_clip:"
_PROMPT = "A photo of a {}"


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Answers of several models to the images of a set, in one order."""

    models: tuple[str, ...]
    categories: tuple[str, ...]
    ids: tuple[str, ...]
    labels: NDArray[np.int64]
    """The intended category of each image, by its place."""
    predicted: NDArray[np.int64]
    """`(models, images)`: the category that was answered, `OTHER` for an output that belongs to none."""
    confidence: NDArray[np.float32]
    """`(models, images)`: the probability of that answer."""
    runners_up: NDArray[np.int64]
    """`(models, images)`: the most probable category that is not the intended one; `OTHER` if unknown."""

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """`(models, images)`: whether the answer is not the intended category."""
        wrong: NDArray[np.bool_] = self.predicted != self.labels
        return wrong

    def row(self, model: str) -> int:
        """The row of a model."""
        if model not in self.models:
            raise MiningError(f"a model must be one of {', '.join(self.models)}, got {model!r}")
        return self.models.index(model)

    def name_of(self, category: int) -> str:
        """A category's name, or what stands for none."""
        return "(no category)" if category == OTHER else self.categories[category]


def mined_suite() -> Suite:
    """The suite that answers to mined sets are stored under: the images as they are."""
    from beaufort.suites import Suite

    return Suite(
        name="mined",
        version=1,
        dataset="mined",
        title="A mined set",
        notes="Images that were made for categories, as they are. What was chosen by models' failures is no "
        "fair test of those models.",
    )


def ask_models(
    models: Sequence[Any],
    data: Dataset,
    store: str | Path | Store,
    *,
    labels: Grouping | None = None,
    convention: str | None = None,
    batch_size: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Verdicts:
    """Show a set to models; what the store has is not asked again. Answers are in the order of the models.

    Args:
        models: texts for `load_model`, or whatever `evaluate` takes. Models of open_clip choose among the
            names of the categories, with the prompt "A photo of a …".
        data: the set.
        store: keeps the answers.
        labels: the outputs of the other models that count as each category; names decide if not given.
        convention: `all`, so that an output of no category is a failure, or `restricted` to the categories;
            `all` if labels are given.
        batch_size: as for `evaluate`.
        progress: as for `evaluate`.
    """
    from beaufort.evaluation import evaluate

    if not models:
        raise MiningError("there must be at least one model, got none")
    zero_shot = [isinstance(one, str) and one.startswith(_ZERO_SHOT) for one in models]
    places = {category: (place,) for place, category in enumerate(data.classes)}
    named = [_zero_shot(one, data.classes) for one, by_name in zip(models, zero_shot, strict=True) if by_name]
    plain = [one for one, by_name in zip(models, zero_shot, strict=True) if not by_name]
    convention = convention or ("all" if labels is not None else None)
    options: dict[str, Any] = {"batch_size": batch_size, "progress": progress}
    first: dict[str, _Answered] = {}
    second: dict[str, _Answered] = {}
    if plain:
        try:
            asked = evaluate(
                plain, mined_suite(), data, store, labels=labels, convention=convention, **options
            )
        except LabelError as error:
            raise error.without("--classes", "--labels identity") from None
        first = _answered(asked, data, ())
    if named:
        asked = evaluate(named, mined_suite(), data, store, labels=places, convention="restricted", **options)
        second = _answered(asked, data, first)
    # In the order in which models were given: callers tell surrogates from others by it.
    answers = {False: iter(first.items()), True: iter(second.items())}
    return _joined(dict(next(answers[by_name]) for by_name in zero_shot), data)


@dataclass(frozen=True)
class _Answered:
    predicted: NDArray[np.int64]
    confidence: NDArray[np.float32]
    runner_up: NDArray[np.int64]


def _zero_shot(text: str, categories: Sequence[str]) -> LazyModel:
    from beaufort.evaluation import LazyModel

    names = [display_name(category) for category in categories]
    return LazyModel(text, {"classes": names, "templates": (_PROMPT,)})


def _answered(done: Evaluation, data: Dataset, before: Collection[str]) -> dict[str, _Answered]:
    """What each model said, in the order in which models were given."""
    if done.problems:
        first = done.problems[0]
        raise MiningError(
            f"every image of {data.name} must be readable, got {len(done.problems)} that are not (first: "
            f"{first.id}: {first.message})"
        )
    if done.failures:
        raise MiningError(f"every model must answer, got {done.failures[0]}")
    names = [result.model for result in done.results]
    if twice := next((name for name in names if names.count(name) > 1 or name in before), None):
        raise MiningError(f"each model must have a name of its own, got {twice!r} twice")
    results = done.scores(calibration=False).results
    order = {one: place for place, one in enumerate(data.ids)}
    found = {}
    for name in names:
        answers = results.predictions(name)
        places = np.array([order[one] for one in answers.ids])
        top = np.empty((len(places), answers.top.shape[2]), np.int64)
        confidence = np.empty(len(places), np.float32)
        top[places], confidence[places] = answers.top[0], answers.confidence[0]
        top[top >= len(data.classes)] = OTHER
        found[name] = _Answered(top[:, 0], confidence, _runners_up(top, data.labels))
    return found


def _runners_up(top: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each image the first of the most probable answers that is a category, and not the intended one."""
    usable = (top != OTHER) & (top != labels[:, None])
    first = top[np.arange(len(top)), usable.argmax(axis=1)]
    return np.where(usable.any(axis=1), first, OTHER)


def _joined(found: Mapping[str, _Answered], data: Dataset) -> Verdicts:
    return Verdicts(
        tuple(found),
        data.classes,
        tuple(data.ids),
        data.labels,
        np.stack([one.predicted for one in found.values()]),
        np.stack([one.confidence for one in found.values()]),
        np.stack([one.runner_up for one in found.values()]),
    )
