"""Predictions of models for a mined set, from the ordinary evaluation and its store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beaufort.data import Dataset
from beaufort.data.labels import Grouping, LabelError, label_maps, read_grouping
from beaufort.mining.names import display_name
from beaufort.mining.plan import MiningError

if TYPE_CHECKING:  # evaluation needs pyarrow, which generating images does not
    from beaufort.evaluation import Progress
    from beaufort.results import Run
    from beaufort.store import Store
    from beaufort.suites import Suite

OTHER = -1
"""The category of an output that belongs to none."""

_ZERO_SHOT = "open_clip:"
_PROMPT = "A photo of a {}"


@dataclass(frozen=True, eq=False)
class SetPredictions:
    """Predictions of several models for the images of a set, in one order."""

    models: tuple[str, ...]
    categories: tuple[str, ...]
    ids: tuple[str, ...]
    labels: NDArray[np.int64]
    """The intended category of each image, by its place."""
    predicted: NDArray[np.int64]
    """`(models, images)`: the predicted category, `OTHER` for an output that belongs to none."""
    confidence: NDArray[np.float32]
    """`(models, images)`: the probability of that prediction."""
    runners_up: NDArray[np.int64]
    """`(models, images)`: the most probable category that is not the intended one; `OTHER` if unknown."""

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """`(models, images)`: whether the prediction is not the intended category."""
        wrong: NDArray[np.bool_] = self.predicted != self.labels
        return wrong

    def row(self, model: str) -> int:
        """Return the row of a model."""
        if model not in self.models:
            raise MiningError(f"unknown model {model!r}; there are {', '.join(self.models)}")
        return self.models.index(model)

    def name_of(self, category: int) -> str:
        """Return a category's name, or what stands for none."""
        return "(no category)" if category == OTHER else self.categories[category]


def mined_suite() -> Suite:
    """Return the suite that predictions for mined sets are stored under: the images as they are."""
    from beaufort.suites import Suite

    return Suite(
        name="mined",
        version=1,
        dataset="mined",
        title="A mined set",
        notes="Images that were made for categories, as they are. What was chosen by models' failures is no "
        "fair test of those models.",
    )


def predict_set(
    models: Sequence[Any],
    data: Dataset,
    store: str | Path | Store,
    *,
    labels: Grouping | str | None = None,
    convention: str | None = None,
    batch_size: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> SetPredictions:
    """Run models on a set, except where the store has their predictions; the order of models is kept.

    Args:
        models: texts for `load_model`, or whatever `evaluate` takes. Models of open_clip choose among the
            names of the categories, with the prompt "A photo of a …".
        data: the set.
        store: where predictions are stored.
        labels: the outputs of the other models that count as each category, the name of a label map, or a
            JSON file; names decide by default.
        convention: `all`, so that an output of no category is a failure, or `restricted` to the categories;
            `all` if labels are given.
        batch_size: as for `evaluate`.
        progress: as for `evaluate`.
    """
    from beaufort.evaluation import LazyModel, RunOptions
    from beaufort.results import evaluate

    if not models:
        raise MiningError("at least one model is required")
    labels = find_labels(labels)
    names = [display_name(category) for category in data.classes]
    plain, zero_shot = [], []
    is_zero_shot = [isinstance(one, str) and one.startswith(_ZERO_SHOT) for one in models]
    for one, by_name in zip(models, is_zero_shot, strict=True):
        if by_name:
            zero_shot.append(LazyModel(one, {"classes": names, "templates": (_PROMPT,)}))
        else:
            plain.append(one)
    found: dict[bool, list[_ModelPredictions]] = {False: [], True: []}
    if plain:
        convention = convention or ("all" if labels is not None else None)
        try:
            options = RunOptions(convention=convention, batch_size=batch_size)
            done = evaluate(
                plain, mined_suite(), data, store, labels=labels, options=options, progress=progress
            )
        except LabelError as error:
            raise error.without("--classes", "--labels identity") from None
        found[False] = _model_predictions(done, data)
    if zero_shot:
        places = {category: (place,) for place, category in enumerate(data.classes)}
        options = RunOptions(convention="restricted", batch_size=batch_size)
        done = evaluate(
            zero_shot, mined_suite(), data, store, labels=places, options=options, progress=progress
        )
        found[True] = _model_predictions(done, data)
    # In the order in which models were given: callers tell surrogates from others by it.
    rows = {by_name: iter(some) for by_name, some in found.items()}
    ordered = [next(rows[by_name]) for by_name in is_zero_shot]
    model_names = [one.model for one in ordered]
    if twice := next((name for name in model_names if model_names.count(name) > 1), None):
        raise MiningError(f"two models have the name {twice!r}; each must have a name of its own")
    return SetPredictions(
        tuple(model_names),
        data.classes,
        tuple(data.ids),
        data.labels,
        np.stack([one.predicted for one in ordered]),
        np.stack([one.confidence for one in ordered]),
        np.stack([one.runner_up for one in ordered]),
    )


def find_labels(labels: Grouping | str | None) -> Grouping | None:
    """Return the outputs of each category by the name of a label map or from a JSON file."""
    if not isinstance(labels, str):
        return labels
    return label_maps[labels].grouping if labels in label_maps else read_grouping(labels)


@dataclass(frozen=True)
class _ModelPredictions:
    model: str
    predicted: NDArray[np.int64]
    confidence: NDArray[np.float32]
    runner_up: NDArray[np.int64]


def _model_predictions(done: Run, data: Dataset) -> list[_ModelPredictions]:
    """Return the predictions of each model, in the order in which models were given."""
    if done.problems:
        first = done.problems[0]
        raise MiningError(
            f"{len(done.problems)} images of {data.name} cannot be read (first: {first.id}: {first.message})"
        )
    if done.failures:
        raise MiningError(f"a model failed: {done.failures[0]}")
    results = done.scores(calibration=False).results
    order = {one: place for place, one in enumerate(data.ids)}
    found = []
    for result in done.results:
        answers = results.predictions(result.model)
        places = np.array([order[one] for one in answers.ids])
        top = np.empty((len(places), answers.top.shape[2]), np.int64)
        confidence = np.empty(len(places), np.float32)
        top[places], confidence[places] = answers.top[0], answers.confidence[0]
        top[top >= len(data.classes)] = OTHER
        found.append(_ModelPredictions(result.model, top[:, 0], confidence, _runners_up(top, data.labels)))
    return found


def _runners_up(top: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each image the most probable category that is not the intended one."""
    usable = (top != OTHER) & (top != labels[:, None])
    first = top[np.arange(len(top)), usable.argmax(axis=1)]
    return np.where(usable.any(axis=1), first, OTHER)
