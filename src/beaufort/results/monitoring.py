"""Robustness during training: the numbers of one model, for any logger."""

from __future__ import annotations

from typing import Any

from beaufort.data.objects import Data
from beaufort.evaluation import Conditions, RunOptions
from beaufort.models import as_model
from beaufort.results.run import evaluate
from beaufort.results.tracking import scalars


def robustness(
    model: Any,
    suite: Conditions,
    data: Data,
    *,
    limit: int | None = None,
    seed: int = 0,
    options: RunOptions | None = None,
    **model_options: Any,
) -> dict[str, float]:
    """Return the numbers of a model on a suite, to be logged every few epochs of its training.

    The keys are the metrics (`mce`, `mce_low`, `mce_high`), `clean_accuracy` and `error/fog` for each
    corruption; proportions are in [0, 1]. Predictions are kept in memory only. A torch module stays on its
    device and is left in the mode it was in.

    Args:
        model: a torch module, a function or a `Model`, as for `as_model`.
        suite: a suite or its name, as for `evaluate`.
        data: the images and labels, as for `evaluate`.
        limit: number of images; the same ones in every call.
        seed: seed of the corruptions and of the choice of images.
        options: further options of the evaluation.
        **model_options: options of `as_model`, such as `mean` and `std`.
    """
    found = evaluate(as_model(model, **model_options), suite, data, limit=limit, seed=seed, options=options)
    return {name.partition("/")[2]: value for name, value in scalars(found.scores(calibration=False)).items()}
