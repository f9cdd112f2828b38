"""How long a plan takes."""

from __future__ import annotations

import time

import numpy as np

from beaufort.evaluation.backends import Threads
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.planning import Plan, Setup
from beaufort.models import Model
from beaufort.suites.shifts import Demanding


def cost(planned: Plan) -> float:
    """About how many seconds the rest of a plan takes here: one batch of each model, timed.

    Attacks count with all of their steps; where a model is fooled soon, it takes less.
    """
    todo: dict[LazyModel, dict[int, int]] = {}
    for work in planned.works:
        if work.gaps:
            passes = shift.passes if isinstance(shift := work.condition.shift, Demanding) else 1
            one = todo.setdefault(work.model, {})
            one[work.place] = one.get(work.place, 0) + passes * work.images
    seconds = 0.0
    for model, places in todo.items():
        seconds += _seconds_an_image(model.load(), planned.setups[min(places)]) * sum(places.values())
        model.let_go()
    return seconds


def _seconds_an_image(model: Model, setup: Setup) -> float:
    first = setup.first_image()
    batch = np.repeat(first[None], min(Threads.batch_size(first.size), setup.count), axis=0)
    model(batch)  # the first time is not like the others
    start = time.perf_counter()
    model(batch)
    return (time.perf_counter() - start) / len(batch)
