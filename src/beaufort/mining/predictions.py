"""Predictions of models for a mined set, from the evaluation and its store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.validation import validate_unique
from beaufort.data import Dataset
from beaufort.data.labels import Grouping, LabelError, LabelSpace, class_names, label_maps, read_grouping
from beaufort.mining.names import display_name
from beaufort.mining.plan import MiningError

if TYPE_CHECKING:  # evaluation needs pyarrow, which generating images does not
    from beaufort.evaluation import Progress
    from beaufort.models import ModelSpec
    from beaufort.results import Run
    from beaufort.store import Store
    from beaufort.suites import Suite

OTHER = -1
"""Index for no category."""

_IMAGENET, _IMAGENET_OUTPUTS = "imagenet-1k", 1000
_ZERO_SHOT = "open_clip:"
_PROMPT = "A photo of a {}"


@dataclass(frozen=True, eq=False)
class SetPredictions:
    """Predictions of models for the images of a set."""

    models: tuple[str, ...]
    categories: tuple[str, ...]
    ids: tuple[str, ...]
    labels: NDArray[np.int64]
    """Index of the intended category of each image."""
    predicted: NDArray[np.int64]
    """`(models, images)`: index of the predicted category, or of another output after the categories."""
    confidence: NDArray[np.float32]
    """`(models, images)`: probability of the prediction."""
    runners_up: NDArray[np.int64]
    """`(models, images)`: the most probable category that is not the label; `OTHER` if unknown."""
    others: tuple[tuple[str, ...], ...] = ()
    """For each model, the names of its outputs that belong to no category."""

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """`(models, images)`: whether the prediction is wrong."""
        wrong: NDArray[np.bool_] = self.predicted != self.labels
        return wrong

    def row(self, model: str) -> int:
        """Return the row of a model."""
        if model not in self.models:
            raise MiningError(f"unknown model {model!r}; models are {', '.join(self.models)}")
        return self.models.index(model)

    def name(self, model: str, place: int) -> str:
        """Return the name of the category, or of the other class, that a model predicts for an image."""
        row = self.row(model)
        index = int(self.predicted[row, place])
        if index < len(self.categories):
            return self.categories[index]
        name = self.others[row][index - len(self.categories)]
        return f"{name} (no category)" if name in self.categories else name


def mined_suite() -> Suite:
    """Return the suite of predictions for mined sets, which has only clean images."""
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
    """Run models on a set, reusing stored predictions, and return predictions in the order of the models.

    Args:
        models: models as for `evaluate`. Models of open_clip choose among the names of the categories, with
            the prompt "A photo of a …".
        data: the set.
        store: where predictions are stored.
        labels: outputs of the other models that count as each category, the name of a label map, or a JSON
            file; matched by name by default.
        convention: `all`, so that an output of no category is a failure, or `restricted` to the categories;
            `all` by default with labels.
        batch_size: as for `evaluate`.
        progress: as for `evaluate`.
    """
    from beaufort.evaluation import LazyModel, RunOptions
    from beaufort.results import evaluate

    if not models:
        raise MiningError("at least one model is required")
    labels = find_labels(labels)
    names = [display_name(category) for category in data.classes]
    is_zero_shot = [isinstance(one, str) and one.startswith(_ZERO_SHOT) for one in models]
    by_name = {category: (place,) for place, category in enumerate(data.classes)}
    found: dict[int, _ModelPredictions] = {}
    for zero_shot in sorted(set(is_zero_shot)):
        places = [place for place, one in enumerate(is_zero_shot) if one == zero_shot]
        group, group_labels = [models[place] for place in places], labels
        group_convention = convention or ("all" if labels is not None else None)
        if zero_shot:
            group = [LazyModel(one, {"classes": names, "templates": (_PROMPT,)}) for one in group]
            group_labels, group_convention = by_name, "restricted"
        group = [LazyModel(one) if isinstance(one, str) else one for one in group]
        options = RunOptions(convention=group_convention, batch_size=batch_size)
        try:
            run = evaluate(
                group, mined_suite(), data, store, labels=group_labels, options=options, progress=progress
            )
        except LabelError as error:
            raise error.without("--classes", "--labels identity") from None
        found |= dict(zip(places, _model_predictions(run, data, group), strict=True))
    # In the order in which models were passed, because callers tell surrogates from others by it.
    ordered = [found[place] for place in range(len(models))]
    return SetPredictions(
        tuple(validate_unique("names of models", [one.model for one in ordered], MiningError)),
        data.classes,
        tuple(data.ids),
        data.labels,
        np.stack([one.predicted for one in ordered]),
        np.stack([one.confidence for one in ordered]),
        np.stack([one.runner_up for one in ordered]),
        tuple(one.others for one in ordered),
    )


def find_labels(labels: Grouping | str | None) -> Grouping | None:
    """Return the outputs of each category, from a label map or a JSON file if a name is passed."""
    if not isinstance(labels, str):
        return labels
    return label_maps[labels].grouping if labels in label_maps else read_grouping(labels)


class _ModelPredictions(NamedTuple):
    model: str
    predicted: NDArray[np.int64]
    confidence: NDArray[np.float32]
    runner_up: NDArray[np.int64]
    others: tuple[str, ...]


def _model_predictions(run: Run, data: Dataset, models: Sequence[Any]) -> Iterator[_ModelPredictions]:
    """Yield the predictions of each model in the order of the images."""
    if run.problems:
        first = run.problems[0]
        raise MiningError(
            f"{len(run.problems)} images of {data.name} cannot be read (first: {first.id}: {first.message})"
        )
    if run.failures:
        raise MiningError(f"a model failed: {run.failures[0]}")
    results = run.scores(calibration=False).results
    order = {one: place for place, one in enumerate(data.ids)}
    for result, model in zip(run.results, models, strict=True):
        predictions = results.predictions(result.model)
        places = np.array([order[one] for one in predictions.ids])
        top = np.empty((len(places), predictions.top.shape[2]), np.int64)
        confidence = np.empty(len(places), np.float32)
        top[places], confidence[places] = predictions.top[0], predictions.confidence[0]
        wrong = (top < len(data.classes)) & (top != data.labels[:, None])
        runner_up = np.where(wrong.any(axis=1), top[np.arange(len(top)), wrong.argmax(axis=1)], OTHER)
        others = _other_names(model.spec, results.space(result.model), len(data.classes))
        yield _ModelPredictions(result.model, top[:, 0], confidence, runner_up, others)


def _other_names(spec: ModelSpec, space: LabelSpace, categories: int) -> tuple[str, ...]:
    """Return the names of the outputs of a model that belong to no category.

    Models of 1,000 unnamed outputs are taken for models of ImageNet.
    """
    names = spec.class_names
    if names is None and (spec.label_space == _IMAGENET or spec.classes == _IMAGENET_OUTPUTS):
        names = class_names(_IMAGENET)
    rest = space.competing if space.outputs is not None else range(categories, spec.classes or 0)
    return tuple(names[output] if names else f"output {output}" for output in rest)
