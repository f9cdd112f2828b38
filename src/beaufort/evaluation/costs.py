"""How long a plan takes."""

from __future__ import annotations

import time

import numpy as np

from beaufort.evaluation.backends import Threads
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.planning import Plan

__all__ = ["cost"]


def cost(planned: Plan) -> float:
    """About how many seconds the rest of a plan takes here: one batch of each model, timed."""
    setup = planned.setup
    todo: dict[LazyModel, int] = {}
    for work in planned.works:
        if work.gaps:
            todo[work.model] = todo.get(work.model, 0) + work.images
    if not todo:
        return 0.0
    first = setup.first_image()
    batch = np.repeat(first[None], min(Threads.batch_size(first.size), setup.count), axis=0)
    seconds = 0.0
    for lazy, images in todo.items():
        model = lazy.load()
        model(batch)  # the first time is not like the others
        start = time.perf_counter()
        model(batch)
        seconds += (time.perf_counter() - start) / len(batch) * images
        lazy.let_go()
    return seconds
