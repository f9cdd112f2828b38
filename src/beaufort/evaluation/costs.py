"""Latency and memory of models, measured in turns, as ratios to a reference."""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.plugins import load_plugins
from beaufort._core.validation import validate_count
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.metrics.stats import Estimate
from beaufort.models import Model, ModelError

ROUNDS = 100
"""Number of rounds, if the time allows."""
FEWEST_ROUNDS = 10
SECONDS = 60.0
"""Time after which no further round begins."""
_WARM_UP = 3
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class ModelCost:
    """Time and memory of one model.

    Times are medians over rounds, with distribution-free intervals (order statistics).
    """

    model: str
    seconds: Estimate
    """Elapsed time per image, with preprocessing."""
    cpu_seconds: Estimate
    """Processor time per image, of all threads."""
    ratio: Estimate
    """Median over rounds of the elapsed time divided by that of the reference in the same round."""
    cpu_ratio: Estimate
    memory: int | None
    """Bytes of main memory at the peak, beyond those of Python before the library and the model are loaded;
    None where the system has no /proc."""
    memory_ratio: float | None
    batch_size: int
    device: str


def measure_costs(
    models: Sequence[str | Model | LazyModel], images: Bytes, *, rounds: int = ROUNDS, level: float = 0.95
) -> tuple[ModelCost, ...]:
    """Measure the latency and the memory of models; the first is the reference of all ratios.

    Each model is loaded in a process of its own. In every round, each model predicts the images once, one
    after the other and in rotating order, so that a change of the machine's speed affects all of them alike.

    Args:
        models: the models, as for `load_model`, or any that can be pickled.
        images: uint8 images `(n, h, w, c)` of one call.
        rounds: number of rounds; fewer if they take more than a minute, but at least 10.
        level: confidence level of intervals over rounds.
    """
    rounds = max(FEWEST_ROUNDS, validate_count("rounds", rounds))
    lazy = [LazyModel.of(model) for model in models]
    times: list[NDArray[np.float64]] = []
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(_worker(model, images)) for model in lazy]
        known = [_answer(worker, model) for worker, model in zip(workers, lazy, strict=True)]
        begun = time.monotonic()
        while len(times) < rounds and (len(times) < FEWEST_ROUNDS or time.monotonic() - begun < SECONDS):
            row = np.empty((len(lazy), 2))
            for step in range(len(lazy)):
                place = (step + len(times)) % len(lazy)
                workers[place].send(True)
                row[place] = _answer(workers[place], lazy[place])
            times.append(row / len(images))
        memory: list[int | None] = []
        for worker, model in zip(workers, lazy, strict=True):
            worker.send(False)
            memory.append(_answer(worker, model))
    table = np.stack(times)
    ratios = table / table[:, :1]
    costs = []
    for place, (name, device) in enumerate(known):
        own, reference = memory[place], memory[0]
        costs.append(
            ModelCost(
                name,
                _median(table[:, place, 0], level),
                _median(table[:, place, 1], level),
                _median(ratios[:, place, 0], level),
                _median(ratios[:, place, 1], level),
                own,
                own / reference if own is not None and reference else None,
                len(images),
                device,
            )
        )
    return tuple(costs)


def _median(values: NDArray[np.float64], level: float) -> Estimate:
    """Return the median; the interval is between the order statistics that a fair coin would reach."""
    ordered = np.sort(values)
    n = len(ordered)
    skipped = int((bdtr(np.arange(n), n, 0.5) <= (1 - level) / 2).sum())
    low, high = ordered[max(0, skipped - 1)], ordered[min(n - 1, n - skipped)]
    return Estimate(float(np.median(ordered)), float(low), float(high), n, level)


@contextlib.contextmanager
def _worker(model: LazyModel, images: Bytes) -> Iterator[Any]:
    """Start a process with a model, and yield the pipe to it."""
    try:
        content = pickle.dumps((model, images))
    except Exception as error:  # pickling can raise any error
        raise OptionError(
            f"the time of {_name(model)} cannot be measured, because it cannot be sent to another process "
            f"({type(error).__name__}: {error!s:.100}); pass the model as a string"
        ) from None
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True, name=f"time of {_name(model)}")
    process.start()
    theirs.close()
    try:
        ours.send_bytes(content)
        yield ours
    finally:
        ours.close()
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()


def _name(model: LazyModel) -> str:
    return model.text or model.spec.name


def _answer(worker: Any, model: LazyModel) -> Any:
    """Return what a process sends, and raise its error."""
    try:
        found = worker.recv()
    except (EOFError, OSError):
        raise ModelError(
            f"the process that measured {_name(model)} ended; in a script, call evaluate under "
            "`if __name__ == '__main__':`"
        ) from None
    if isinstance(found, BaseException):
        raise found
    return found


def _serve(pipe: Any) -> None:
    """Load a model, and predict and send times until told to stop; then send the memory."""
    with contextlib.suppress(EOFError, OSError):
        load_plugins()
        before = _resident("VmRSS")
        lazy, images = pickle.loads(pipe.recv_bytes())
        try:
            model = lazy.load()
            for _ in range(_WARM_UP):
                model(images)
            pipe.send((model.spec.name, str(getattr(model, "device", "") or "unknown")))
            while pipe.recv():
                start, cpu = time.perf_counter(), time.process_time()
                model(images)
                pipe.send((time.perf_counter() - start, time.process_time() - cpu))
            peak = _resident("VmHWM")
            pipe.send(None if peak is None or before is None else max(0, peak - before))
        except Exception as error:  # of any library
            known = isinstance(error, BeaufortError)
            pipe.send(error if known else ModelError(f"{type(error).__name__}: {error!s:.300}"))


def _resident(name: str) -> int | None:
    """Return a number of bytes from the status of this process; None if the system has none."""
    with contextlib.suppress(OSError):
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(f"{name}:"):
                return 1024 * int(line.split()[1])
    return None
