"""Prediction and scoring of batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beaufort._core.arrays import Images, on_host
from beaufort.data.labels import LabelSpace
from beaufort.evaluation.backends import explain_device_errors
from beaufort.evaluation.batches import Batch
from beaufort.models import ChatClassifier, Model, ModelError, StatefulModel
from beaufort.models.filtered import FilteredModel
from beaufort.models.network import Network
from beaufort.models.scoring import (
    PredictionScores,
    are_probabilities,
    score_logits,
    score_tensor,
    unpack_scores,
)
from beaufort.store import PredictionsError, table_of
from beaufort.suites.shifts import ModelShift

BatchScores = tuple[PredictionScores, NDArray[np.float32] | None]
"""Scores of a batch, and its logits if they are kept."""


def predict(
    model: Model,
    images: Images,
    batch: Batch,
    labels: NDArray[np.int64],
    space: LabelSpace,
    *,
    seed: int,
    keep_logits: bool,
) -> Callable[[], BatchScores]:
    """Run a model on a batch; the returned function waits for the scores, which are in the label space.

    A network that takes tensors runs on its device, which scores the logits as well, without waiting.
    Other models are run at once. Kept logits are those of the model, before the label space.
    """
    condition = batch.condition
    model = _for_images(model, batch.ids, labels, space)
    if condition.needs_model:  # images depend on the model, as in an attack
        assert isinstance(condition.shift, ModelShift)
        logits = condition.shift.predict(model, images, ids=batch.ids, labels=labels, space=space, seed=seed)
    elif isinstance(model, Network) and model.takes_tensors(images):
        from beaufort._core.device import upload
        from beaufort.models.tensors import copy_to_host

        with explain_device_errors(f"{model.spec.name} on {len(images)} images", only_memory=True):
            found = model.predict_tensors(images)
            _check_classes(model, found.shape, space)
            if labels.ndim == 1:
                scores = copy_to_host(score_tensor(space.apply(found), upload(labels, found.device)))
                suspect = None if space.identity else copy_to_host(are_probabilities(found))
                kept = copy_to_host(found) if keep_logits else None
                return lambda: (
                    _marked(unpack_scores(scores()), None if suspect is None else suspect()),
                    None if kept is None else kept(),
                )
        logits = found.float().cpu().numpy()  # label sets are scored on the CPU
    elif isinstance(model, FilteredModel):
        each = [np.asarray(one, np.float32) for one in model.view_logits(on_host(images))]
        _check_classes(model, each[0].shape, space)
        own = np.logical_and.reduce([are_probabilities(one) for one in each])  # not visible in the mean
        scored, logits_kept = _scored(model.mean_logits(each), labels, space, keep_logits=keep_logits)
        return lambda: (_marked(scored, own), logits_kept)
    elif isinstance(model, StatefulModel):
        logits = model.adapt(on_host(images))
    else:
        logits = model(on_host(images))
    _check_classes(model, np.shape(logits), space)
    result = _scored(np.asarray(logits, np.float32), labels, space, keep_logits=keep_logits)
    return lambda: result


def _for_images(model: Model, ids: Sequence[str], labels: NDArray[np.int64], space: LabelSpace) -> Model:
    """Return a chat model that knows the ids and labels of the images; other models unchanged."""
    if isinstance(model, FilteredModel):
        inner = _for_images(model.model, ids, labels, space)
        return model if inner is model.model else replace(model, model=inner)
    return model.for_images(ids, labels, space) if isinstance(model, ChatClassifier) else model


def _check_classes(model: Model, shape: tuple[int, ...], space: LabelSpace) -> None:
    if len(shape) == 2 and space.count is not None and shape[1] != space.count:
        raise ModelError(
            f"{model.spec.name} must return {space.count} logits per image, as at the start of the run, got "
            f"{shape[1]}"
        )


def _scored(
    logits: NDArray[np.float32], labels: NDArray[np.int64], space: LabelSpace, *, keep_logits: bool
) -> BatchScores:
    scores = score_logits(space.apply(logits), labels)
    suspect = None if space.identity else are_probabilities(logits)
    return _marked(scores, suspect), logits if keep_logits else None


def _marked(scores: PredictionScores, suspect: NDArray[np.bool_] | None) -> PredictionScores:
    """Return the scores with `are_probabilities` of all outputs, not only those in the label space."""
    return scores if suspect is None else scores._replace(are_probabilities=suspect)


def predictions(
    ids: Sequence[str],
    labels: Sequence[int] | NDArray[Any],
    logits: NDArray[Any],
    *,
    keep_logits: bool = False,
    label_sets: NDArray[Any] | None = None,
) -> pa.Table:
    """Return the table of predictions, as it is stored, from logits `(images, classes)`.

    A logit of -inf stands for an impossible class. `label_sets` has the valid classes of each image, padded
    with -1, if there can be several.
    """
    logits = np.asarray(logits, np.float32)
    single = np.asarray(labels, np.int64)
    if logits.ndim != 2 or not len(ids) == len(single) == len(logits):
        raise PredictionsError(
            f"logits must have shape (images, classes), with a row for each of {len(ids)} ids and "
            f"{len(single)} labels, got shape {logits.shape}"
        )
    scores = score_logits(logits, single if label_sets is None else label_sets)
    return table_of(ids, single, scores, logits if keep_logits else None, label_sets)
